//! `Prefer: wait=N` (RFC 7240): a client asks for its request to be held.

use std::time::Duration;

use axum::{extract::FromRequestParts, http::request::Parts};
use http::HeaderValue;

use crate::problem::Problem;

/// The caller's preference, if it has one.
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

    fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Result<Self, Problem> {
        for preference in values.flat_map(|value| value.split([',', ';'])) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            if !name.trim().eq_ignore_ascii_case("wait") {
                continue;
            }
            let seconds: u32 = value.trim().trim_matches('"').parse().map_err(|_| {
                Problem::invalid(
                    "Prefer",
                    "wait must be a whole number of seconds, 0 or more",
                )
            })?;
            // RFC 7240: of several, the first counts.
            return Ok(Self {
                wait: Some(Duration::from_secs(seconds.into())),
            });
        }
        Ok(Self::default())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Prefer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let values = parts.headers.get_all("prefer").iter();
        let texts = values
            .map(HeaderValue::to_str)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| Problem::invalid("Prefer", "the header is not readable as text"))?;
        Self::parse(texts.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(header: &str) -> Option<u64> {
        Prefer::parse([header].into_iter())
            .unwrap()
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
    fn a_wait_that_is_no_number_is_refused() {
        for header in ["wait=-1", "wait=soon", "wait", "wait=99999999999999"] {
            assert!(Prefer::parse([header].into_iter()).is_err(), "{header}");
        }
    }
}
