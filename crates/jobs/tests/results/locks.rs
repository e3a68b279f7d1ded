//! Who has been asked what.

use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::ProviderRequest,
    results::{ReadyCheck, ResultBackend},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{
    LONG, PROVIDER, SHORT, TestBackend, begin, found, key, of_version, put, request, state,
};

async fn asked(backend: &dyn ResultBackend) -> Vec<ProviderRequest> {
    backend.in_flight(PROVIDER, 1).await.unwrap()
}

pub(crate) async fn a_question_is_asked_once(backend: TestBackend) {
    let backend = backend.node().await;
    assert!(begin(&*backend, &key("a"), LONG).await);
    assert!(!begin(&*backend, &key("a"), LONG).await);
    assert!(begin(&*backend, &key("b"), LONG).await);
    assert!(begin(&*backend, &of_version(2, "a"), LONG).await);
}

pub(crate) async fn a_mark_is_seen_by_those_who_look(backend: TestBackend) {
    let backend = backend.node().await;
    assert!(begin(&*backend, &key("a"), LONG).await);
    let looks = backend.get(vec![key("b"), key("a"), key("a")]).await;
    let looks = looks.unwrap();
    assert!(looks.iter().all(|state| state.answer.is_none()));
    assert_eq!(looks[0].in_flight, None);
    assert_eq!(looks[1].in_flight, looks[2].in_flight);
    let left = looks[1].in_flight.unwrap();
    assert!(left <= LONG && !left.is_zero(), "{left:?}");
}

pub(crate) async fn a_mark_whose_time_is_over_is_taken_over(backend: TestBackend) {
    let backend = backend.node().await;
    let (first, second) = (request(&key("a")), request(&key("a")));
    assert!(backend.begin(first.clone(), SHORT).done().await);
    eventually("the end of a mark", async || {
        state(&*backend, &key("a")).await.in_flight.is_none()
    })
    .await;
    assert_eq!(asked(&*backend).await, []);
    assert!(backend.begin(second.clone(), LONG).done().await);
    assert_eq!(asked(&*backend).await, std::slice::from_ref(&second));
    // The first holder cannot end the lock of the second.
    backend
        .end(key("a"), Some(first.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*backend).await, [second]);
}

pub(crate) async fn an_answer_takes_the_mark_off(backend: TestBackend) {
    let backend = backend.node().await;
    assert!(begin(&*backend, &key("a"), LONG).await);
    assert!(begin(&*backend, &key("b"), LONG).await);
    put(&*backend, &key("a"), "one", LONG).await;
    assert_eq!(state(&*backend, &key("a")).await.in_flight, None);
    assert!(state(&*backend, &key("b")).await.in_flight.is_some());
    let left: Vec<_> = asked(&*backend).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].key, key("b"));
}

pub(crate) async fn what_has_been_answered_is_not_asked(backend: TestBackend) {
    let backend = backend.node().await;
    put(&*backend, &key("a"), "one", LONG).await;
    assert!(!begin(&*backend, &key("a"), LONG).await);
    assert_eq!(state(&*backend, &key("a")).await.in_flight, None);
    assert_eq!(asked(&*backend).await, []);
}

pub(crate) async fn what_was_answered_and_is_over_is_asked_again(backend: TestBackend) {
    let backend = backend.node().await;
    put(&*backend, &key("a"), "one", SHORT).await;
    eventually("the end of an answer", async || {
        found(&*backend, &key("a")).await.is_none()
    })
    .await;
    assert!(begin(&*backend, &key("a"), LONG).await);
}

pub(crate) async fn the_same_time_again_is_the_same_mark(backend: TestBackend) {
    let backend = backend.node().await;
    let request = request(&key("a"));
    assert!(backend.begin(request.clone(), LONG).done().await);
    assert!(backend.begin(request.clone(), LONG).done().await);
    assert_eq!(asked(&*backend).await, std::slice::from_ref(&request));
    put(&*backend, &key("a"), "one", LONG).await;
    assert!(!backend.begin(request, LONG).done().await);
}

pub(crate) async fn a_mark_is_taken_off_by_its_own_token_only(backend: TestBackend) {
    let backend = backend.node().await;
    let (mine, other) = (request(&key("a")), request(&key("a")));
    assert!(backend.begin(mine.clone(), LONG).done().await);
    backend
        .end(key("a"), Some(other.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*backend).await, std::slice::from_ref(&mine));
    backend
        .end(key("a"), Some(mine.token), Wakes::none())
        .done()
        .await;
    assert_eq!(asked(&*backend).await, []);
    assert!(begin(&*backend, &key("a"), LONG).await);
}

pub(crate) async fn a_mark_is_taken_off_without_a_token(backend: TestBackend) {
    let backend = backend.node().await;
    assert!(begin(&*backend, &key("a"), LONG).await);
    assert!(begin(&*backend, &key("b"), LONG).await);
    backend.end(key("a"), None, Wakes::none()).done().await;
    // One that is not there is no mistake.
    backend.end(key("a"), None, Wakes::none()).done().await;
    assert_eq!(state(&*backend, &key("a")).await.in_flight, None);
    assert!(!begin(&*backend, &key("b"), LONG).await);
    assert!(begin(&*backend, &key("a"), LONG).await);
}

pub(crate) async fn what_is_in_flight_is_told_oldest_first(backend: TestBackend) {
    let backend = backend.node().await;
    let requests: Vec<_> = ["m", "a", "z", "b"]
        .map(|hash| request(&key(hash)))
        .to_vec();
    for (at, request) in requests.iter().enumerate() {
        // The longest mark first, so that its end is no substitute for its beginning.
        let ttl = LONG / u32::try_from(at + 1).unwrap();
        assert!(backend.begin(request.clone(), ttl).done().await);
    }
    assert_eq!(asked(&*backend).await, requests);
}

pub(crate) async fn what_is_in_flight_belongs_to_a_registration(backend: TestBackend) {
    let backend = backend.node().await;
    assert!(begin(&*backend, &key("a"), LONG).await);
    assert!(begin(&*backend, &of_version(2, "b"), LONG).await);
    let second = backend.in_flight(PROVIDER, 2).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].key, of_version(2, "b"));
    assert_eq!(backend.in_flight(PROVIDER, 3).await.unwrap(), []);
}

pub(crate) async fn a_ready_check_holds_for_an_answer_or_an_unsent_request(backend: TestBackend) {
    let backend = backend.node().await;
    let check = async || {
        let at = |version, hash: Option<&str>| ReadyCheck {
            provider: PROVIDER,
            version,
            hash: hash.map(str::to_owned),
        };
        let at = vec![at(1, Some("a")), at(1, None), at(1, Some("b")), at(2, None)];
        backend.are_ready(at).await.unwrap()
    };
    assert_eq!(backend.are_ready(Vec::new()).await.unwrap(), [false; 0]);
    // Nobody has asked.
    assert_eq!(check().await, [true, false, true, false]);
    assert!(begin(&*backend, &key("a"), LONG).await);
    assert_eq!(check().await, [false, true, true, false]);
    put(&*backend, &key("a"), "one", LONG).await;
    assert_eq!(check().await, [true, false, true, false]);
    assert!(begin(&*backend, &key("b"), SHORT).await);
    eventually("the end of a mark", async || {
        check().await[1..3] == [false, true]
    })
    .await;
}
