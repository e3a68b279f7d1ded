//! How deep JSON may be nested. A value that is passed through unparsed would otherwise break the
//! clients that parse it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problem::Problem;

/// Of the process, because a body is read where no configuration is.
static MAX_DEPTH: AtomicUsize = AtomicUsize::new(128);
/// Characters of the path in a refusal.
const MAX_SHOWN: usize = 200;

/// Sets how deep the bodies of this process may be nested (`http.max_depth`).
pub fn set_max_depth(depth: usize) {
    MAX_DEPTH.store(depth, Ordering::Relaxed);
}

/// Refuses a body that is nested too deep, in one pass over its bytes. Whether it is JSON is for its
/// reader to say.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Problem> {
    let most = MAX_DEPTH.load(Ordering::Relaxed);
    match first_deeper(bytes, most) {
        None => Ok(()),
        Some(at) => Err(Problem::invalid(
            &path(&bytes[..at]),
            format!(
                "nested more than {most} levels deep, the limit of this server (http.max_depth)"
            ),
        )),
    }
}

/// Where a level begins that is deeper than `most`.
fn first_deeper(bytes: &[u8], most: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_text(bytes, at),
            b'[' | b'{' => {
                depth += 1;
                if depth > most {
                    return Some(at);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The closing quote of the text that begins at `at`, or the end of the bytes.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// The place after these bytes, as `items[3].payload`.
fn path(bytes: &[u8]) -> String {
    // Of each open level the index of its element, or the name of its member.
    let mut levels: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_text(bytes, at).min(bytes.len());
                let text = String::from_utf8_lossy(&bytes[at + 1..end]);
                let rest = bytes.get(end + 1..).unwrap_or_default();
                if rest.trim_ascii_start().first() == Some(&b':')
                    && let Some(level) = levels.last_mut()
                {
                    *level = format!(".{text}");
                }
                at = end;
            }
            b'[' => levels.push("[0]".to_owned()),
            b'{' => levels.push(String::new()),
            b']' | b'}' => {
                levels.pop();
            }
            b',' => {
                if let Some(level) = levels.last_mut() {
                    let index = level
                        .strip_prefix('[')
                        .and_then(|rest| rest.strip_suffix(']'));
                    if let Some(index) = index.and_then(|index| index.parse::<usize>().ok()) {
                        *level = format!("[{}]", index + 1);
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    let whole = levels.concat();
    let whole = whole.trim_start_matches('.');
    if whole.is_empty() {
        return "body".to_owned();
    }
    let short: String = whole.chars().take(MAX_SHOWN).collect();
    let more = if short.len() < whole.len() { "…" } else { "" };
    format!("{short}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_inside_strings_are_no_levels() {
        for (text, depth) in [
            ("5", 0),
            ("[]", 1),
            (r#"{"a":[{},{"b":[]}]}"#, 4),
            (r#"["[[[", "\"[[", {"]]":1}]"#, 2),
            (r#"[[],[],[[]]]"#, 3),
        ] {
            assert_eq!(first_deeper(text.as_bytes(), depth), None, "{text}");
            if depth > 0 {
                assert!(first_deeper(text.as_bytes(), depth - 1).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn the_path_of_the_level_is_named_and_shortened() {
        let body = format!(
            r#"{{"a": 1, "items":[{{"x":"}}"}}, {{"payload": {}"#,
            "[".repeat(100_000)
        );
        let refused = check(body.as_bytes()).unwrap_err();
        let (field, rest) = refused.detail().split_once(": ").unwrap();
        assert!(field.starts_with("items[1].payload[0][0]"), "{field}");
        assert_eq!(field.chars().count(), MAX_SHOWN + 1);
        assert!(rest.contains("http.max_depth"), "{rest}");
        assert!(check("[".repeat(128).as_bytes()).is_ok());
        assert!(check("[".repeat(129).as_bytes()).is_err());
    }
}
