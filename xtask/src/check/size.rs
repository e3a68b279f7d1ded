//! Long files: a warning, because where to split is a decision, not a count.

use super::sources::Source;

const LINES: usize = 500;

pub(crate) fn over_limit(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|source| !source.is_test())
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(source, lines)| format!("{}: {lines} lines, over {LINES}", source.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_over_the_limit_is_named_and_a_test_may_be_long() {
        let source = |path, lines| Source::new(path, &"\n".repeat(lines));
        let found = over_limit(&[
            source("crates/wake/src/long.rs", LINES + 1),
            source("crates/wake/src/fits.rs", LINES),
            source("crates/wake/tests/long.rs", LINES + 1),
        ]);
        assert_eq!(found, ["crates/wake/src/long.rs: 501 lines, over 500"]);
    }
}
