//! As much of the Prometheus text format as it takes to sum a metric over its labels.

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    samples: Vec<(String, f64)>,
}

impl Metrics {
    /// Lines that are no samples are passed over: the text may be of another format altogether.
    pub(crate) fn parse(text: &str) -> Self {
        let samples = text.lines().filter_map(sample).collect();
        Self { samples }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.samples.extend(other.samples);
    }

    /// Over all label sets; `None` when there is no sample of that name.
    pub(crate) fn sum(&self, name: &str) -> Option<f64> {
        let mut values = self
            .samples
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| *value);
        let first = values.next()?;
        Some(values.fold(first, |sum, value| sum + value))
    }
}

fn sample(line: &str) -> Option<(String, f64)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    // A label's value may hold a brace or a space, so the labels end at the last brace.
    let values = match rest.rfind('}') {
        Some(end) if rest.starts_with('{') => &rest[end + 1..],
        _ => rest,
    };
    let value = values.split_whitespace().next()?.parse().ok()?;
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP wakeline_statements_total Statements sent to the store
# TYPE wakeline_statements_total counter
wakeline_statements_total{door=\"queue\",kind=\"write\"} 12
wakeline_statements_total{door=\"queue\",kind=\"a } b\"} 3 1700000000000
wakeline_statements_total_created 99
process_resident_memory_bytes 1.3135872e7
wakeline_waiters 10000
broken{
";

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let metrics = Metrics::parse(TEXT);
        assert_eq!(metrics.sum("wakeline_statements_total"), Some(15.0));
        assert_eq!(
            metrics.sum("process_resident_memory_bytes"),
            Some(13_135_872.0)
        );
        assert_eq!(metrics.sum("wakeline_waiters"), Some(10_000.0));
    }

    #[test]
    fn a_missing_metric_has_no_sum() {
        assert_eq!(Metrics::parse(TEXT).sum("wakeline"), None);
        assert_eq!(
            Metrics::parse(r#"{"cpu":{"system":0},"uptime":5}"#).sum("uptime"),
            None
        );
    }

    #[test]
    fn the_metrics_of_two_nodes_are_summed() {
        let mut metrics = Metrics::parse("wakeline_waiters 3\n");
        metrics.extend(Metrics::parse("wakeline_waiters 4\n"));
        assert_eq!(metrics.sum("wakeline_waiters"), Some(7.0));
    }
}
