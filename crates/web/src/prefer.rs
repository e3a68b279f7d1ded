//! `Prefer: wait=N` (RFC 7240): a client asks for its request to be held.

use std::{convert::Infallible, time::Duration};

use axum::extract::FromRequestParts;
use http::{HeaderValue, request::Parts};

/// The caller's preference, if it has one. One that cannot be read is ignored, as RFC 7240 says: a
/// preference is the one thing that a request may say in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    pub wait: Option<Duration>,
}

impl Prefer {
    /// The hold that was applied, for `Preference-Applied`: a longer one than the server allows is
    /// shortened.
    #[must_use]
    pub fn applied(self, hold: Duration) -> Option<HeaderValue> {
        self.wait?;
        HeaderValue::from_str(&format!("wait={}", hold.as_secs())).ok()
    }

    fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut preferences = values
            .flat_map(|value| value.split([',', ';']))
            .map(|preference| preference.split_once('=').unwrap_or((preference, "")));
        // RFC 7240: of several, the first counts.
        let wait = preferences.find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"));
        Self {
            wait: wait.and_then(|(_, value)| seconds(value.trim().trim_matches('"'))),
        }
    }
}

/// A number too large for its type is longer than any hold, and is shortened as one.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse::<u32>().unwrap_or(u32::MAX).into()))
}

impl<S: Send + Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let values = parts.headers.get_all("prefer").iter();
        Ok(Self::parse(values.filter_map(|value| value.to_str().ok())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(header: &str) -> Option<u64> {
        Prefer::parse([header].into_iter())
            .wait
            .map(|wait| wait.as_secs())
    }

    #[test]
    fn wait_is_found_among_other_preferences() {
        assert_eq!(wait("wait=10"), Some(10));
        assert_eq!(wait("respond-async, Wait = 5; foo=1, wait=9"), Some(5));
        assert_eq!(wait("return=minimal"), None);
    }

    #[test]
    fn a_wait_that_cannot_be_read_is_ignored() {
        for header in [
            "wait=-1",
            "wait=+1",
            "wait=soon",
            "wait",
            "wait=1.5",
            "wait=x, wait=5",
        ] {
            assert_eq!(wait(header), None, "{header}");
        }
    }

    #[test]
    fn a_wait_longer_than_any_hold_is_a_wait() {
        assert_eq!(wait("wait=99999999999999"), Some(u32::MAX.into()));
    }
}
