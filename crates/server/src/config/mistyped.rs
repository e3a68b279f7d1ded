//! Suggestions for a mistyped name.

use super::settings::{SETTINGS, Setting};

const MAX_SUGGESTIONS: usize = 3;

/// From 0 (nothing in common) to 1 (equal).
const MIN_LIKENESS: f64 = 0.7;

/// `flat` is the name as one word, such as `http_max_bdy`.
pub(super) fn similar_settings(flat: &str) -> Vec<&'static Setting> {
    // The right name in the wrong section comes first: `max_body` at the top of the file, or `listen`
    // below `[http]`.
    let misplaced: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| is_tail(flat, &setting.flat()) || is_tail(&setting.flat(), flat))
        .take(MAX_SUGGESTIONS)
        .collect();
    if !misplaced.is_empty() {
        return misplaced;
    }
    let likeness =
        |setting: &Setting| strsim::normalized_damerau_levenshtein(flat, &setting.flat());
    SETTINGS
        .iter()
        .map(|setting| (likeness(setting), setting))
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, setting)| setting)
        .into_iter()
        .collect()
}

fn is_tail(short: &str, long: &str) -> bool {
    long.strip_suffix(short)
        .is_some_and(|head| head.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(flat: &str) -> Vec<&'static str> {
        similar_settings(flat)
            .iter()
            .map(|setting| setting.key)
            .collect()
    }

    #[test]
    fn a_slip_of_the_fingers_finds_the_nearest() {
        assert_eq!(keys("http_max_bdy"), ["http.max_body"]);
        assert_eq!(keys("http_default_hodl"), ["http.default_hold"]);
        assert_eq!(keys("auth_token"), ["auth.tokens"]);
        assert_eq!(keys("lisen"), ["listen"]);
    }

    #[test]
    fn the_right_name_in_the_wrong_section_finds_its_sections() {
        assert_eq!(keys("max_body"), ["http.max_body", "feeds.max_body"]);
        assert_eq!(keys("http_listen"), ["listen"]);
        assert_eq!(
            keys("max_batch"),
            ["sqlite.max_batch", "postgres.max_batch", "queue.max_batch"]
        );
    }

    #[test]
    fn nothing_alike_finds_nothing() {
        assert!(keys("favourite_colour").is_empty());
    }
}
