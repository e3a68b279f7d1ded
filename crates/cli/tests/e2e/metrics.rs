//! Prometheus' text form, read strictly.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Metrics {
    /// What each name was declared to be.
    types: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

#[derive(Debug)]
pub(crate) struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Metrics {
    /// Panics at whatever a scraper would stumble over.
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line must end");
        let mut metrics = Self {
            types: BTreeMap::new(),
            samples: Vec::new(),
        };
        let mut helped = "";
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').expect("a name and a description").0;
            } else if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').expect("a name and a type");
                assert_eq!(helped, name, "it has no description");
                assert!(
                    ["counter", "gauge", "histogram", "summary"].contains(&kind),
                    "{line}"
                );
                let before = metrics.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "declared twice: {name}");
            } else {
                let sample = sample(line);
                assert!(metrics.kind(&sample.name).is_some(), "not declared: {line}");
                metrics.samples.push(sample);
            }
        }
        metrics
    }

    /// What a sample's name was declared as, with or without a histogram's endings.
    pub(crate) fn kind(&self, name: &str) -> Option<&str> {
        let known = |name: &str| self.types.get(name).map(String::as_str);
        let parts = ["_bucket", "_sum", "_count"].iter();
        let mut whole = parts.filter_map(|part| known(name.strip_suffix(part)?));
        known(name).or_else(|| whole.find(|kind| *kind == "histogram"))
    }

    /// The sum of the samples that have all of `labels`; `None` if there is no such sample.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &Sample| {
            let mut wanted = labels.iter();
            sample.name == name
                && wanted
                    .all(|(label, value)| sample.labels.get(*label).is_some_and(|v| v == value))
        };
        let found: Vec<f64> = self
            .samples
            .iter()
            .filter(|s| has(s))
            .map(|s| s.value)
            .collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = match series.split_once('{') {
        None => (series, BTreeMap::new()),
        Some((name, rest)) => (
            name,
            labels(rest.strip_suffix('}').expect("a closing brace")),
        ),
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    assert!(!name.is_empty() && name.chars().all(legal), "{line}");
    Sample {
        name: name.to_owned(),
        labels,
        value: value
            .parse()
            .unwrap_or_else(|_| panic!("not a number: {line}")),
    }
}

fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label");
        let (value, rest) = quoted(rest);
        assert_eq!(labels.insert(name.to_owned(), value), None, "twice: {name}");
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
    labels
}

/// The text up to the closing quote, and the rest after it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect("an escaped character").1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    panic!("no closing quote: {text}");
}
