//! Where keys come from: the configuration, and a key set over HTTP and HTTPS.

use std::{fs, time::Instant};

use wakeline_testbed::{
    free_port,
    issuer::{KeySet, SigningKey},
};

use super::{SECRET, TOKEN, as_admin, call, status};
use crate::{
    fixture::Fixture,
    server::{Serve, until},
    wire::get,
};

/// Where an answer is to come from the issuer, it may take its time: this machine may be busy.
fn with_keys_of(serve: Serve, set: &KeySet) -> Serve {
    let flags = ["--auth-jwt-jwks-timeout", "60s", "--auth-jwt-jwks-url"];
    serve.flags(&flags).flags(&[&set.url()])
}

#[tokio::test]
async fn each_algorithm_is_checked_with_its_own_key() {
    let fixture = Fixture::sqlite();
    let (rsa, eddsa) = (SigningKey::rs256("rsa"), SigningKey::eddsa("ed"));
    let secret = SigningKey::hs256("s", SECRET.as_bytes());
    let file = fixture.data().join("issuer.pem");
    fs::write(&file, rsa.public_pem()).unwrap();
    let set = KeySet::http(&[&rsa, &eddsa]).unwrap();
    let path = file.display().to_string();
    let pem = eddsa.public_pem();
    // The configured setting, and the key whose tokens are accepted.
    for (settings, known) in [
        (vec![("SECRET", SECRET)], [true, false, false]),
        (vec![("PUBLIC_KEY", path.as_str())], [false, true, false]),
        (vec![("PUBLIC_KEY", pem.as_str())], [false, false, true]),
        (vec![("JWKS_URL", &set.url())], [false, true, true]),
        (
            vec![("JWKS_URL", &set.url()), ("ALGORITHM", "EdDSA")],
            [false, false, true],
        ),
        (
            vec![("SECRET", SECRET), ("JWKS_URL", &set.url())],
            [true, true, true],
        ),
    ] {
        let mut serve = fixture.serve();
        serve = serve.env("WAKELINE_AUTH_JWT_JWKS_TIMEOUT", "60s");
        for (name, value) in &settings {
            serve = serve.env(&format!("WAKELINE_AUTH_JWT_{name}"), value);
        }
        let server = serve.start().await;
        for (key, known) in [&secret, &rsa, &eddsa].into_iter().zip(known) {
            let expected = if known { 200 } else { 401 };
            let found = status(&server, &as_admin(key)).await;
            assert_eq!(found, expected, "{key:?} with {settings:?}");
        }
        // The public key, which anyone may have, used as if it were a secret.
        for (id, public) in [("rsa", &rsa), ("ed", &eddsa)] {
            for form in public.public_forms() {
                let confused = SigningKey::hs256(id, &form);
                assert_eq!(status(&server, &as_admin(&confused)).await, 401);
            }
        }
    }
}

/// The first request may go to any door; so may the one after the issuer has changed its keys.
#[tokio::test]
async fn a_request_to_the_jobs_door_fetches_the_issuers_keys_too() {
    let (first, second) = (SigningKey::eddsa("first"), SigningKey::eddsa("second"));
    let set = KeySet::http(&[&first]).unwrap();
    let server = with_keys_of(Fixture::sqlite().serve(), &set).start().await;
    let workers = async |key: &SigningKey| {
        let listed = call(&server, get("/v1/joblib/workers"), &as_admin(key)).await;
        listed.status
    };
    assert_eq!(workers(&first).await, 200);
    set.publish(&[&second]);
    until("the new key is known", async || {
        (workers(&second).await == 200).then_some(())
    })
    .await;
    // A user's own login needs none of the issuer's keys.
    assert_eq!(server.get("/v1/auth/jwt/login").await.status, 405);
}

#[tokio::test]
async fn an_unknown_key_id_causes_a_fetch_of_the_key_set_at_a_limited_rate() {
    let (first, second) = (SigningKey::eddsa("first"), SigningKey::eddsa("second"));
    let set = KeySet::http(&[&first]).unwrap();
    let server = with_keys_of(Fixture::sqlite().serve(), &set).start().await;
    assert_eq!(set.fetched(), 0, "nobody needed it yet");
    for _ in 0..3 {
        assert_eq!(status(&server, &as_admin(&first)).await, 200);
    }
    assert_eq!(set.fetched(), 1);
    // The key set has this key id, so a wrong signature is no reason to fetch it again.
    let forged = SigningKey::eddsa("first");
    assert_eq!(status(&server, &as_admin(&forged)).await, 401);
    assert_eq!(set.fetched(), 1);

    let began = Instant::now();
    set.publish(&[&second]);
    assert_eq!(status(&server, &as_admin(&second)).await, 200);
    assert_eq!(set.fetched(), 2);
    assert_eq!(status(&server, &as_admin(&first)).await, 401, "withdrawn");
    // Each token names another key; there is at most one fetch in ten seconds, however slow the
    // machine is.
    for n in 0..20 {
        let stranger = SigningKey::eddsa(&format!("stranger {n}"));
        assert_eq!(status(&server, &as_admin(&stranger)).await, 401);
    }
    let most = 2 + began.elapsed().as_secs() / 10;
    assert!(set.fetched() as u64 <= most, "{} looks", set.fetched());
    assert_eq!(status(&server, &as_admin(&second)).await, 200);
}

#[tokio::test]
async fn without_the_issuers_keys_a_signed_token_gets_503_and_not_401() {
    let key = SigningKey::eddsa("ed");
    let set = KeySet::http(&[]).unwrap();
    set.answer(500, String::new());
    let server = with_keys_of(Fixture::sqlite().serve(), &set)
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .env("WAKELINE_AUTH_TOKENS", TOKEN)
        .start()
        .await;
    let refused = call(&server, get("/v1/waits"), &as_admin(&key)).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), "1");
    let problem = refused.problem();
    assert_eq!(problem["type"], "urn:wakeline:keys-unavailable");
    assert!(server.log().contains("500"), "{}", server.log());
    // Tokens that need no key of the issuer are still accepted.
    let secret = SigningKey::hs256("s", SECRET.as_bytes());
    assert_eq!(status(&server, &as_admin(&secret)).await, 200);
    assert_eq!(status(&server, TOKEN).await, 200);
    assert_eq!(status(&server, "nonsense").await, 401);

    set.publish(&[&key]);
    until("the issuer's keys", async || {
        (status(&server, &as_admin(&key)).await == 200).then_some(())
    })
    .await;
    // Once fetched, the keys are used even when the issuer fails.
    drop(set);
    assert_eq!(status(&server, &as_admin(&key)).await, 200);
}

#[tokio::test]
async fn an_unreachable_issuer_gets_503() {
    let url = format!("http://127.0.0.1:{}/jwks.json", free_port().unwrap());
    let server = Fixture::sqlite()
        .serve()
        .flags(&["--auth-jwt-jwks-url", &url])
        .start()
        .await;
    let token = as_admin(&SigningKey::eddsa("ed"));
    assert_eq!(status(&server, &token).await, 503);
    assert_eq!(server.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_key_set_over_https_needs_a_trusted_certificate() {
    let fixture = Fixture::sqlite();
    let key = SigningKey::eddsa("ed");
    let (set, stranger) = (
        KeySet::https(&[&key]).unwrap(),
        KeySet::https(&[&key]).unwrap(),
    );
    let roots = fixture.data().join("roots.pem");
    fs::write(&roots, set.certificate()).unwrap();
    for (set, expected) in [(&set, 200), (&stranger, 503)] {
        let server = with_keys_of(fixture.serve(), set)
            .env("SSL_CERT_FILE", &roots.display().to_string())
            .start()
            .await;
        assert_eq!(
            status(&server, &as_admin(&key)).await,
            expected,
            "{}",
            server.log()
        );
    }
}
