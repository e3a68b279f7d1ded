//! Fields and parameters that no route knows: what a request says is done or refused, never ignored.

use std::{
    collections::BTreeSet,
    fmt::Display,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// How alike two names are, from 0 to 1, for one to be taken for the other mistyped.
const ALIKE: f64 = 0.6;
/// Unknown names that are logged, once each.
const MAX_LOGGED: usize = 1_000;
/// Characters of an unknown name that are shown.
const MAX_SHOWN: usize = 40;

/// Whether unknown names are only logged (`http.unknown_fields = "warn"`). Of the process, because a
/// body is read where no configuration is.
static ONLY_WARNS: AtomicBool = AtomicBool::new(false);
static IGNORED: RwLock<Vec<&[IgnoredName]>> = RwLock::new(Vec::new());
static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Stands for all names: the query or body is the caller's own data.
pub const ANY: &str = "*";

/// A name that a known client sends and that has no meaning here.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredName {
    /// The struct of the body, or the path of the route whose query it is.
    pub of: &'static str,
    pub name: &'static str,
    /// Which client sends it, and why it may be ignored.
    pub reason: &'static str,
}

impl IgnoredName {
    fn count(&self, times: u64) {
        metrics::counter!("wakeline_ignored_fields_total", "of" => self.of, "name" => self.name)
            .increment(times);
    }
}

/// Whether any name may come in this place.
#[must_use]
pub fn is_open(of: &str) -> bool {
    is_ignored(of, ANY)
}

/// Declares what a door's clients send and it ignores. Each row is counted from then on, so that one
/// that no client needs any more is seen.
pub fn ignore_names(names: &'static [IgnoredName]) {
    for row in names {
        row.count(0);
    }
    let mut ignored = IGNORED.write().unwrap_or_else(PoisonError::into_inner);
    if !ignored.iter().any(|known| std::ptr::eq(*known, names)) {
        ignored.push(names);
    }
}

/// From now on unknown names are logged and counted instead of refused.
pub fn only_warn_of_unknown_names() {
    ONLY_WARNS.store(true, Ordering::Relaxed);
}

/// For `/metrics`.
pub(crate) fn describe_metrics() {
    metrics::describe_counter!(
        "wakeline_unknown_fields_total",
        "Fields and parameters that no route knows and that were ignored (http.unknown_fields)"
    );
    metrics::describe_counter!(
        "wakeline_ignored_fields_total",
        "Fields and parameters that known clients send and that have no meaning here, by place and name"
    );
}

/// Why an unknown name is refused; `None` if it may be ignored. `known` are the names that are known
/// in its place.
pub fn refusal<N: AsRef<str>>(of: &str, name: &str, known: &[N]) -> Option<UnknownName> {
    if is_ignored(of, name) {
        return None;
    }
    let unknown = UnknownName {
        name: shown(name),
        nearest: nearest(name, known),
    };
    if ONLY_WARNS.load(Ordering::Relaxed) {
        unknown.warn(of);
        return None;
    }
    Some(unknown)
}

fn is_ignored(of: &str, name: &str) -> bool {
    let ignored = IGNORED.read().unwrap_or_else(PoisonError::into_inner);
    let mut names = ignored.iter().copied().flatten();
    let row = names.find(|ignored| ignored.of == of && [name, ANY].contains(&ignored.name));
    if let Some(row) = row {
        row.count(1);
    }
    row.is_some()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    pub nearest: Option<String>,
}

impl Display for UnknownName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("no such field")?;
        if let Some(nearest) = &self.nearest {
            write!(out, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

impl UnknownName {
    fn warn(&self, of: &str) {
        metrics::counter!("wakeline_unknown_fields_total").increment(1);
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MAX_LOGGED && logged.insert(format!("{of} {}", self.name)) {
            let name = &self.name;
            tracing::warn!("{of}: `{name}` was ignored: {self} (http.unknown_fields)");
        }
    }
}

/// The known name that is most like this one, if any is.
pub fn nearest<N: AsRef<str>>(name: &str, known: &[N]) -> Option<String> {
    let name = shown(name).to_lowercase();
    let alike =
        |known: &N| strsim::normalized_damerau_levenshtein(&name, &known.as_ref().to_lowercase());
    let best = known
        .iter()
        .map(|known| (alike(known), known))
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(alike, _)| *alike >= ALIKE)
        .map(|(_, known)| known.as_ref().to_owned())
}

fn shown(name: &str) -> String {
    let short: String = name.chars().take(MAX_SHOWN).collect();
    let more = if short.len() < name.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["queue", "payload", "transactionId", "traceId"];

    #[test]
    fn the_nearest_known_name_is_shown() {
        for (name, nearest) in [
            ("paylod", Some("payload")),
            ("transaction_id", Some("transactionId")),
            ("Queue", Some("queue")),
            ("colour", None),
            ("", None),
        ] {
            let refused = refusal("Item", name, &KNOWN).unwrap();
            assert_eq!(refused.nearest.as_deref(), nearest, "{name}");
        }
        let long = refusal("Item", &"x".repeat(1_000), &KNOWN).unwrap();
        assert_eq!(long.name.chars().count(), MAX_SHOWN + 1);
    }

    #[test]
    fn a_name_that_a_client_sends_is_ignored_in_its_place_only() {
        const NAMES: &[IgnoredName] = &[IgnoredName {
            of: "OneBody",
            name: "extra",
            reason: "the test sends it",
        }];
        ignore_names(NAMES);
        assert_eq!(refusal("OneBody", "extra", &KNOWN), None);
        assert!(refusal("OtherBody", "extra", &KNOWN).is_some());
    }
}
