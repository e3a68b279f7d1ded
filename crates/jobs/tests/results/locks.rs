//! Who has been asked what.

use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::ProviderRequest,
    results::{ReadyCheck, ResultBackend},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{
    LONG, PROVIDER, SHORT, TestNode, begin, found, key, of_version, put, request, state,
};

async fn asked(backend: &dyn ResultBackend) -> Vec<ProviderRequest> {
    backend.in_flight(PROVIDER, 1).await.unwrap()
}

pub(crate) async fn a_question_is_asked_once(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(!begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    assert!(begin(&*node, &of_version(2, "a"), LONG).await);
}

pub(crate) async fn a_mark_is_seen_by_those_who_look(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    let looks = node.get(vec![key("b"), key("a"), key("a")]).await;
    let looks = looks.unwrap();
    assert!(looks.iter().all(|state| state.answer.is_none()));
    assert_eq!(looks[0].in_flight, None);
    assert_eq!(looks[1].in_flight, looks[2].in_flight);
    let left = looks[1].in_flight.unwrap();
    assert!(left <= LONG && !left.is_zero(), "{left:?}");
}

pub(crate) async fn a_mark_whose_time_is_over_is_taken_over(node: TestNode) {
    let (first, second) = (request(&key("a")), request(&key("a")));
    assert!(node.begin(first.clone(), SHORT).done().await);
    eventually("the end of a mark", async || {
        state(&*node, &key("a")).await.in_flight.is_none()
    })
    .await;
    assert_eq!(asked(&*node).await, []);
    assert!(node.begin(second.clone(), LONG).done().await);
    assert_eq!(asked(&*node).await, std::slice::from_ref(&second));
    // The first holder cannot end the lock of the second.
    node.end(key("a"), Some(first.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*node).await, [second]);
}

pub(crate) async fn an_answer_takes_the_mark_off(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    put(&*node, &key("a"), "one", LONG).await;
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert!(state(&*node, &key("b")).await.in_flight.is_some());
    let left: Vec<_> = asked(&*node).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].key, key("b"));
}

pub(crate) async fn what_has_been_answered_is_not_asked(node: TestNode) {
    put(&*node, &key("a"), "one", LONG).await;
    assert!(!begin(&*node, &key("a"), LONG).await);
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert_eq!(asked(&*node).await, []);
}

pub(crate) async fn what_was_answered_and_is_over_is_asked_again(node: TestNode) {
    put(&*node, &key("a"), "one", SHORT).await;
    eventually("the end of an answer", async || {
        found(&*node, &key("a")).await.is_none()
    })
    .await;
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn the_same_time_again_is_the_same_mark(node: TestNode) {
    let request = request(&key("a"));
    assert!(node.begin(request.clone(), LONG).done().await);
    assert!(node.begin(request.clone(), LONG).done().await);
    assert_eq!(asked(&*node).await, std::slice::from_ref(&request));
    put(&*node, &key("a"), "one", LONG).await;
    assert!(!node.begin(request, LONG).done().await);
}

pub(crate) async fn a_mark_is_taken_off_by_its_own_token_only(node: TestNode) {
    let (mine, other) = (request(&key("a")), request(&key("a")));
    assert!(node.begin(mine.clone(), LONG).done().await);
    node.end(key("a"), Some(other.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*node).await, std::slice::from_ref(&mine));
    node.end(key("a"), Some(mine.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*node).await, []);
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn a_mark_is_taken_off_without_a_token(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    node.end(key("a"), None, Wakes::none()).done().await;
    // One that is not there is no mistake.
    node.end(key("a"), None, Wakes::none()).done().await;
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert!(!begin(&*node, &key("b"), LONG).await);
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn what_is_in_flight_is_told_oldest_first(node: TestNode) {
    let requests: Vec<_> = ["m", "a", "z", "b"]
        .map(|hash| request(&key(hash)))
        .to_vec();
    for (at, request) in requests.iter().enumerate() {
        // The longest mark first, so that its end is no substitute for its beginning.
        let ttl = LONG / u32::try_from(at + 1).unwrap();
        assert!(node.begin(request.clone(), ttl).done().await);
    }
    assert_eq!(asked(&*node).await, requests);
}

pub(crate) async fn what_is_in_flight_belongs_to_a_registration(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &of_version(2, "b"), LONG).await);
    let second = node.in_flight(PROVIDER, 2).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].key, of_version(2, "b"));
    assert_eq!(node.in_flight(PROVIDER, 3).await.unwrap(), []);
}

pub(crate) async fn a_ready_check_holds_for_an_answer_or_an_unsent_request(node: TestNode) {
    let check = async || {
        let at = |version, hash: Option<&str>| ReadyCheck {
            provider: PROVIDER,
            version,
            hash: hash.map(str::to_owned),
        };
        let at = vec![at(1, Some("a")), at(1, None), at(1, Some("b")), at(2, None)];
        node.are_ready(at).await.unwrap()
    };
    assert_eq!(node.are_ready(Vec::new()).await.unwrap(), [false; 0]);
    // Nobody has asked.
    assert_eq!(check().await, [true, false, true, false]);
    assert!(begin(&*node, &key("a"), LONG).await);
    assert_eq!(check().await, [false, true, true, false]);
    put(&*node, &key("a"), "one", LONG).await;
    assert_eq!(check().await, [true, false, true, false]);
    assert!(begin(&*node, &key("b"), SHORT).await);
    eventually("the end of a mark", async || {
        check().await[1..3] == [false, true]
    })
    .await;
}
