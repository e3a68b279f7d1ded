//! In-flight locks: which requests have been sent to a provider.

use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::ProviderRequest,
    results::{ReadyCheck, ResultBackend},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{
    LONG, PROVIDER, SHORT, TestNode, begin, found, key, of_version, put, request, state,
};

async fn in_flight(backend: &dyn ResultBackend) -> Vec<ProviderRequest> {
    backend.in_flight(PROVIDER, 1).await.unwrap()
}

pub(crate) async fn a_key_is_locked_once(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(!begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    assert!(begin(&*node, &of_version(2, "a"), LONG).await);
}

pub(crate) async fn a_read_of_a_locked_key_returns_the_time_left_of_the_lock(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    let looks = node.get(vec![key("b"), key("a"), key("a")]).await;
    let looks = looks.unwrap();
    assert!(looks.iter().all(|state| state.answer.is_none()));
    assert_eq!(looks[0].in_flight, None);
    assert_eq!(looks[1].in_flight, looks[2].in_flight);
    let left = looks[1].in_flight.unwrap();
    assert!(left <= LONG && !left.is_zero(), "{left:?}");
}

pub(crate) async fn an_expired_lock_can_be_acquired_by_another_reader(node: TestNode) {
    let (first, second) = (request(&key("a")), request(&key("a")));
    assert!(node.begin(first.clone(), SHORT).done().await);
    eventually("the end of a mark", async || {
        state(&*node, &key("a")).await.in_flight.is_none()
    })
    .await;
    assert_eq!(in_flight(&*node).await, []);
    assert!(node.begin(second.clone(), LONG).done().await);
    assert_eq!(in_flight(&*node).await, std::slice::from_ref(&second));
    // The first holder cannot end the lock of the second.
    node.end(key("a"), Some(first.token), Wakes::none())
        .done()
        .await;
    assert_eq!(in_flight(&*node).await, [second]);
}

pub(crate) async fn an_answer_releases_the_lock_of_its_key(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    put(&*node, &key("a"), "one", LONG).await;
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert!(state(&*node, &key("b")).await.in_flight.is_some());
    let left: Vec<_> = in_flight(&*node).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].key, key("b"));
}

pub(crate) async fn an_answered_key_cannot_be_locked(node: TestNode) {
    put(&*node, &key("a"), "one", LONG).await;
    assert!(!begin(&*node, &key("a"), LONG).await);
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert_eq!(in_flight(&*node).await, []);
}

pub(crate) async fn a_key_whose_answer_expired_can_be_locked_again(node: TestNode) {
    put(&*node, &key("a"), "one", SHORT).await;
    eventually("the end of an answer", async || {
        found(&*node, &key("a")).await.is_none()
    })
    .await;
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn a_repeated_begin_of_the_same_request_keeps_its_lock(node: TestNode) {
    let request = request(&key("a"));
    assert!(node.begin(request.clone(), LONG).done().await);
    assert!(node.begin(request.clone(), LONG).done().await);
    assert_eq!(in_flight(&*node).await, std::slice::from_ref(&request));
    put(&*node, &key("a"), "one", LONG).await;
    assert!(!node.begin(request, LONG).done().await);
}

pub(crate) async fn a_lock_is_released_by_its_own_token_only(node: TestNode) {
    let (mine, other) = (request(&key("a")), request(&key("a")));
    assert!(node.begin(mine.clone(), LONG).done().await);
    node.end(key("a"), Some(other.token), Wakes::none())
        .done()
        .await;
    assert_eq!(in_flight(&*node).await, std::slice::from_ref(&mine));
    node.end(key("a"), Some(mine.token), Wakes::none())
        .done()
        .await;
    assert_eq!(in_flight(&*node).await, []);
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn a_lock_is_released_without_a_token_by_force(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    assert!(begin(&*node, &key("b"), LONG).await);
    node.end(key("a"), None, Wakes::none()).done().await;
    // The release of a lock that does not exist is no error.
    node.end(key("a"), None, Wakes::none()).done().await;
    assert_eq!(state(&*node, &key("a")).await.in_flight, None);
    assert!(!begin(&*node, &key("b"), LONG).await);
    assert!(begin(&*node, &key("a"), LONG).await);
}

pub(crate) async fn requests_in_flight_are_listed_oldest_first(node: TestNode) {
    let requests: Vec<_> = ["m", "a", "z", "b"]
        .map(|hash| request(&key(hash)))
        .to_vec();
    for (at, request) in requests.iter().enumerate() {
        // The longest lock first, so that the order by expiry is not the order by age.
        let ttl = LONG / u32::try_from(at + 1).unwrap();
        assert!(node.begin(request.clone(), ttl).done().await);
    }
    assert_eq!(in_flight(&*node).await, requests);
}

pub(crate) async fn requests_in_flight_are_listed_per_registration(node: TestNode) {
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
    // No request is in flight.
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
