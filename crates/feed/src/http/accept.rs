//! The media type that the caller prefers.

use http::{HeaderMap, header};

/// The one of `offered` that fits the `Accept` header best, the first of several; `None` without a
/// header that fits any.
pub(super) fn preferred<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Option<&'a str> {
    let mut best: Option<(&'a str, f32)> = None;
    for offer in offered {
        // An exact type takes precedence over a family such as `text/*`.
        let judged = ranges(headers)
            .filter_map(|(range, quality)| Some((fits(range, offer)?, quality)))
            .max_by_key(|(exactness, _)| *exactness);
        if let Some((_, quality)) = judged
            && quality > best.map_or(0.0, |(_, known)| known)
        {
            best = Some((offer, quality));
        }
    }
    best.map(|(offer, _)| offer)
}

fn ranges(headers: &HeaderMap) -> impl Iterator<Item = (&str, f32)> {
    let values = headers.get_all(header::ACCEPT).into_iter();
    let ranges = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    ranges.map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let quality = parts
            .find_map(|part| part.strip_prefix("q="))
            .and_then(|quality| quality.parse().ok())
            .unwrap_or(1.0);
        (kind, quality)
    })
}

/// How exactly a range names a type; `None` if it does not.
fn fits(range: &str, offer: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(offer) {
        return Some(2);
    }
    if range == "*/*" {
        return Some(0);
    }
    let family = range.strip_suffix("/*")?;
    let of_it = offer.split('/').next()?.eq_ignore_ascii_case(family);
    of_it.then_some(1)
}

/// Whether `kind` would be taken: by name, by its family, or because anything is.
pub(super) fn takes(headers: &HeaderMap, kind: &str) -> bool {
    !headers.contains_key(header::ACCEPT) || preferred(headers, &[kind]).is_some()
}

/// Whether the header names `kind` itself.
pub(super) fn names(headers: &HeaderMap, kind: &str) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(accept: &str) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        preferred(&headers, &["text/csv", "application/json", "text/plain"])
    }

    #[test]
    fn the_preferred_media_type_of_the_client_is_chosen() {
        assert_eq!(choose("application/json"), Some("application/json"));
        assert_eq!(
            choose("text/plain;q=0.5, application/json"),
            Some("application/json")
        );
        assert_eq!(choose("text/*, application/json;q=0.9"), Some("text/csv"));
        assert_eq!(choose("image/png"), None);
        assert_eq!(choose("text/csv;q=0, */*;q=0.1"), Some("application/json"));
    }
}
