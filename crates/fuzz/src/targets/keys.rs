//! Public keys of issuers: PEM, and the key set that an issuer's server answers.

use wakeline_server::fuzzing::count_keys;
use wakeline_web::token::Key;

/// Those that are used of one set.
const MOST_KEYS: usize = 32;

pub fn run(input: &[u8]) {
    if let Ok(count) = count_keys(input) {
        assert!(count <= MOST_KEYS);
    }
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    match Key::from_pem(text) {
        Ok(Key::Secret(_)) => panic!("a public key is no secret"),
        Ok(Key::Rsa { n, e }) => assert!(n.len() >= 256 && !e.is_empty()),
        Ok(Key::Ed25519(key)) => assert_eq!(key.len(), 32),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
