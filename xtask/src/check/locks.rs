//! A panic must not spread by a lock: code that takes a `Mutex` or `RwLock` of the standard library
//! after a panic goes on with its content (`unwrap_or_else(PoisonError::into_inner)`).

use super::rust_text::RustText;
use super::sources::Source;

/// Calls that take a lock of the standard library. tokio's locks are awaited and never poisoned.
const TAKES: [&str; 3] = [".lock()", ".read()", ".write()"];
const PANICS: [&str; 2] = [".unwrap()", ".expect("];
/// Crates that are no part of the server: a panic there may end the process.
const TOOLS: [&str; 3] = ["bench", "testbed", "xtask"];

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut failures = Vec::new();
    for source in sources {
        if source.is_test() || TOOLS.contains(&source.crate_name()) {
            continue;
        }
        let code = RustText::outside_tests(&source.text).code;
        for line in panics(&code) {
            failures.push(format!(
                "{}:{line}: a poisoned lock panics here: take it with \
                 `unwrap_or_else(PoisonError::into_inner)`",
                source.path
            ));
        }
    }
    failures
}

/// The lines of the calls that take a lock and panic if it is poisoned.
fn panics(code: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for take in TAKES {
        for (at, _) in code.match_indices(take) {
            let rest = code[at + take.len()..].trim_start();
            if PANICS.iter().any(|panic| rest.starts_with(panic)) {
                lines.push(code[..at].matches('\n').count() + 1);
            }
        }
    }
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(path: &str, text: &str) -> usize {
        check(&[Source::new(path, text)]).len()
    }

    #[test]
    fn a_lock_that_panics_is_a_failure_wherever_its_line_breaks() {
        let path = "crates/queue/src/a.rs";
        assert_eq!(failures(path, "a.lock().unwrap();"), 1);
        assert_eq!(failures(path, "a\n    .read()\n    .expect(\"x\");"), 1);
        let recovers = "a.lock().unwrap_or_else(PoisonError::into_inner);";
        assert_eq!(failures(path, recovers), 0);
        assert_eq!(failures(path, "a.lock().await; // a.lock().unwrap()"), 0);
    }

    #[test]
    fn tests_and_tools_may_panic() {
        let text = "a.lock().unwrap();";
        assert_eq!(failures("crates/queue/tests/a.rs", text), 0);
        assert_eq!(failures("crates/bench/src/a.rs", text), 0);
        let inline = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(failures("crates/queue/src/a.rs", &inline), 0);
    }
}
