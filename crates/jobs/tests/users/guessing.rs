//! Callers that guess passwords, or send larger bodies than a login needs.

use std::net::IpAddr;

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{StatusCode, header};
use wakeline_testkit::{eventually, soon};
use wakeline_web::ClientAddress;

use crate::test_door::{Answer, OpenDoor, PASSWORD, TestDoor};

const HERE: &str = "192.0.2.1";
const ELSEWHERE: &str = "192.0.2.2";

async fn login_from(door: &TestDoor, address: &str, email: &str, password: &str) -> Answer {
    let form = format!("username={}&password={password}", email.replace('@', "%40"));
    let address: IpAddr = address.parse().unwrap();
    let request = Request::post("/v1/auth/jwt/login").extension(ClientAddress(address));
    door.request(request.body(Body::from(form)).unwrap()).await
}

/// Guesses until a login is refused unchecked. The answers before that are those of a wrong
/// password.
async fn refusal(door: &TestDoor, email: &str) -> Answer {
    for number in 0..10 {
        let guess = format!("guess number {number}");
        let answer = login_from(door, HERE, email, &guess).await;
        if answer.status != StatusCode::BAD_REQUEST {
            assert!(number >= 5, "refused after {number} guesses: {answer:?}");
            return answer;
        }
    }
    panic!("never refused")
}

pub(crate) async fn repeated_failed_logins_are_delayed_whether_the_account_exists_or_not(
    door: OpenDoor,
) {
    door.register("ada@example.com").await;
    let known = refusal(&door, "ada@example.com").await;
    let unknown = refusal(&door, "bob@example.com").await;
    let shown = |answer: &Answer| {
        // The delay may differ on a slow machine.
        let seconds = answer.headers[header::RETRY_AFTER].to_str().unwrap();
        let refusal = answer.refusal();
        refusal.replace(&format!("in {seconds} s"), "in {Retry-After} s")
    };
    assert_eq!(shown(&known), shown(&unknown));
    insta::assert_snapshot!(shown(&known), @r#"429 {"detail":"logins of this account failed too often from this address; the password was not checked, try again in {Retry-After} s","status":429,"title":"Too Many Requests","type":"/v1/problems/too-many-failed-logins"}"#);
    // The right password is not checked either until the delay is over.
    eventually("the delay to be over", async || {
        let answer = login_from(&door, HERE, "ada@example.com", PASSWORD).await;
        assert!(answer.status == 429 || answer.status == 200, "{answer:?}");
        answer.status == StatusCode::OK
    })
    .await;
    let mistyped = login_from(&door, HERE, "ada@example.com", "mistyped").await;
    assert_eq!(mistyped.status, StatusCode::BAD_REQUEST, "it begins anew");
}

pub(crate) async fn guesses_from_another_address_do_not_lock_the_owner_out(door: OpenDoor) {
    door.register("ada@example.com").await;
    refusal(&door, "ada@example.com").await;
    let owner = login_from(&door, ELSEWHERE, "Ada@example.com", PASSWORD).await;
    assert_eq!(owner.status, StatusCode::OK, "{owner:?}");
    // Other accounts are not delayed at the guesser's address.
    let other = login_from(&door, HERE, "bob@example.com", "guess").await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
}

pub(crate) async fn a_body_over_the_limit_is_refused_unread(door: OpenDoor) {
    let token = door.guest().await;
    for what in [
        "POST /v1/auth/jwt/login",
        "POST /v1/auth/register",
        "PATCH /v1/auth/users/me",
    ] {
        // The rest of the body never comes.
        let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 20_000]))]);
        let unfinished = Body::from_stream(begun.chain(stream::pending()));
        let answer = soon("a refusal", door.send(what, Some(&token), unfinished)).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(answer.refusal(), @r#"413 {"detail":"body: longer than 16384 bytes, the limit of this route; nothing was done","status":413,"title":"Payload Too Large","type":"/v1/problems/body-too-large"}"#);
        }
        let announced = Body::from(vec![b'x'; 20_000]);
        let announced = door.send(what, Some(&token), announced).await;
        assert_eq!(announced.refusal(), answer.refusal());
    }
}
