//! What a refusal repeats of a text that cannot be read.

/// The beginning of `text`, up to a string: what is quoted may be a fact's field, and callers log the
/// texts of refusals.
pub(crate) fn preview(text: &str, max_chars: usize) -> String {
    let start: String = text.chars().take(max_chars).collect();
    match start.split_once('"') {
        Some((before, _)) => format!("{before}\"…"),
        None => start,
    }
}
