//! Tokens that were verified: to verify a public key's signature takes longer than to parse a push,
//! and a client sends the same token until it ends.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use wakeline_web::Identity;

/// Tokens in the cache. When it is full it is emptied, and tokens are verified again as they come.
const MAX_TOKENS: usize = 1_000;
/// A longer token is verified each time.
const MAX_LENGTH: usize = 4 * 1024;

/// The time of the key set's fetch: a token must not outlive the key that has verified it.
pub(super) type KeysVersion = Option<Instant>;

#[derive(Default)]
pub(super) struct TokenCache {
    tokens: Mutex<HashMap<Box<str>, CachedToken>>,
}

struct CachedToken {
    identity: Identity,
    /// In seconds since 1970, the clock's skew included.
    until: u64,
    keys: KeysVersion,
}

impl TokenCache {
    pub(super) fn find(&self, token: &str, keys: KeysVersion, now: u64) -> Option<Identity> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = tokens.get(token)?;
        (cached.keys == keys && now < cached.until).then(|| cached.identity.clone())
    }

    pub(super) fn put(&self, token: &str, identity: &Identity, keys: KeysVersion, until: u64) {
        if token.len() > MAX_LENGTH {
            return;
        }
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_TOKENS {
            tokens.clear();
        }
        let identity = identity.clone();
        tokens.insert(
            token.into(),
            CachedToken {
                identity,
                until,
                keys,
            },
        );
    }
}

/// Hides the tokens, which are secrets.
impl std::fmt::Debug for TokenCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_cached_until_it_ends_or_the_keys_change() {
        let cache = TokenCache::default();
        let keys = Some(Instant::now());
        let someone = Identity {
            subject: Some("someone".to_owned()),
            ..Identity::ANONYMOUS
        };
        cache.put("t", &someone, keys, 100);
        assert_eq!(cache.find("t", keys, 99), Some(someone));
        assert_eq!(cache.find("t", keys, 100), None);
        assert_eq!(cache.find("t", None, 99), None);
        assert_eq!(cache.find("T", keys, 99), None);
    }

    #[test]
    fn the_cache_is_limited() {
        let cache = TokenCache::default();
        let tokens = (0..=MAX_TOKENS).map(|n| n.to_string());
        for token in tokens.chain(["x".repeat(MAX_LENGTH + 1)]) {
            cache.put(&token, &Identity::ANONYMOUS, None, 1);
            assert!(cache.tokens.lock().unwrap().len() <= MAX_TOKENS);
        }
        assert_eq!(cache.tokens.lock().unwrap().len(), 1);
    }
}
