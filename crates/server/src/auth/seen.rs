//! Tokens that were found good: a public key's signature takes longer to check than a push takes
//! to parse, and a client sends the same token until it ends.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use wakeline_web::Identity;

/// Tokens kept; past it, all are forgotten and checked again as they come.
const MAX_TOKENS: usize = 1_000;
/// A longer one is checked each time.
const MAX_LENGTH: usize = 4 * 1024;

/// Which key set was at hand: a token must not outlive the key that it was checked with.
pub(super) type Keys = Option<Instant>;

#[derive(Default)]
pub(super) struct Seen {
    good: Mutex<HashMap<Box<str>, Good>>,
}

struct Good {
    identity: Identity,
    /// In seconds since 1970, the clock's skew included.
    until: u64,
    keys: Keys,
}

impl Seen {
    pub(super) fn find(&self, token: &str, keys: Keys, now: u64) -> Option<Identity> {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let found = good.get(token)?;
        (found.keys == keys && now <= found.until).then(|| found.identity.clone())
    }

    pub(super) fn keep(&self, token: &str, identity: &Identity, keys: Keys, until: u64) {
        if token.len() > MAX_LENGTH {
            return;
        }
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= MAX_TOKENS {
            good.clear();
        }
        let identity = identity.clone();
        good.insert(
            token.into(),
            Good {
                identity,
                until,
                keys,
            },
        );
    }
}

/// A token is a secret, so none is shown.
impl std::fmt::Debug for Seen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Seen").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_token_is_known_until_it_ends_or_the_keys_change() {
        let seen = Seen::default();
        let keys = Some(Instant::now());
        let someone = Identity {
            subject: Some("someone".to_owned()),
            ..Identity::ANONYMOUS
        };
        seen.keep("t", &someone, keys, 100);
        assert_eq!(seen.find("t", keys, 100), Some(someone));
        assert_eq!(seen.find("t", keys, 101), None);
        assert_eq!(seen.find("t", None, 100), None);
        assert_eq!(seen.find("T", keys, 100), None);
    }

    #[test]
    fn what_is_kept_is_limited() {
        let seen = Seen::default();
        let tokens = (0..=MAX_TOKENS).map(|n| n.to_string());
        for token in tokens.chain(["x".repeat(MAX_LENGTH + 1)]) {
            seen.keep(&token, &Identity::ANONYMOUS, None, 1);
            assert!(seen.good.lock().unwrap().len() <= MAX_TOKENS);
        }
        assert_eq!(seen.good.lock().unwrap().len(), 1);
    }
}
