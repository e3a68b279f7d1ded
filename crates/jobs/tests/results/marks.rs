//! Who has been asked what.

use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::Request,
    results::{Glance, Results},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::place::{
    LONG, PROVIDER, Place, SHORT, begin, found, key, look, of_version, put, request,
};

async fn asked(place: &dyn Results) -> Vec<Request> {
    place.in_flight(PROVIDER, 1).await.unwrap()
}

pub(crate) async fn a_question_is_asked_once(place: Place) {
    let place = place.node().await;
    assert!(begin(&*place, &key("a"), LONG).await);
    assert!(!begin(&*place, &key("a"), LONG).await);
    assert!(begin(&*place, &key("b"), LONG).await);
    assert!(begin(&*place, &of_version(2, "a"), LONG).await);
}

pub(crate) async fn a_mark_is_seen_by_those_who_look(place: Place) {
    let place = place.node().await;
    assert!(begin(&*place, &key("a"), LONG).await);
    let looks = place.look(vec![key("b"), key("a"), key("a")]).await;
    let looks = looks.unwrap();
    assert!(looks.iter().all(|look| look.answer.is_none()));
    assert_eq!(looks[0].in_flight, None);
    assert_eq!(looks[1].in_flight, looks[2].in_flight);
    let left = looks[1].in_flight.unwrap();
    assert!(left <= LONG && !left.is_zero(), "{left:?}");
}

pub(crate) async fn a_mark_whose_time_is_over_is_taken_over(place: Place) {
    let place = place.node().await;
    let (first, second) = (request(&key("a")), request(&key("a")));
    assert!(
        place
            .begin(first.clone(), SHORT)
            .commit_alone()
            .await
            .unwrap()
    );
    eventually("the end of a mark", async || {
        look(&*place, &key("a")).await.in_flight.is_none()
    })
    .await;
    assert_eq!(asked(&*place).await, []);
    assert!(
        place
            .begin(second.clone(), LONG)
            .commit_alone()
            .await
            .unwrap()
    );
    assert_eq!(asked(&*place).await, std::slice::from_ref(&second));
    // Whoever was the first has nothing to say any more.
    place
        .end(key("a"), Some(first.token), Wakes::none())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(asked(&*place).await, [second]);
}

pub(crate) async fn an_answer_takes_the_mark_off(place: Place) {
    let place = place.node().await;
    assert!(begin(&*place, &key("a"), LONG).await);
    assert!(begin(&*place, &key("b"), LONG).await);
    put(&*place, &key("a"), "one", LONG).await;
    assert_eq!(look(&*place, &key("a")).await.in_flight, None);
    assert!(look(&*place, &key("b")).await.in_flight.is_some());
    let left: Vec<_> = asked(&*place).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].key, key("b"));
}

pub(crate) async fn what_has_been_answered_is_not_asked(place: Place) {
    let place = place.node().await;
    put(&*place, &key("a"), "one", LONG).await;
    assert!(!begin(&*place, &key("a"), LONG).await);
    assert_eq!(look(&*place, &key("a")).await.in_flight, None);
    assert_eq!(asked(&*place).await, []);
}

pub(crate) async fn what_was_answered_and_is_over_is_asked_again(place: Place) {
    let place = place.node().await;
    put(&*place, &key("a"), "one", SHORT).await;
    eventually("the end of an answer", async || {
        found(&*place, &key("a")).await.is_none()
    })
    .await;
    assert!(begin(&*place, &key("a"), LONG).await);
}

pub(crate) async fn the_same_time_again_is_the_same_mark(place: Place) {
    let place = place.node().await;
    let request = request(&key("a"));
    assert!(
        place
            .begin(request.clone(), LONG)
            .commit_alone()
            .await
            .unwrap()
    );
    assert!(
        place
            .begin(request.clone(), LONG)
            .commit_alone()
            .await
            .unwrap()
    );
    assert_eq!(asked(&*place).await, std::slice::from_ref(&request));
    put(&*place, &key("a"), "one", LONG).await;
    assert!(!place.begin(request, LONG).commit_alone().await.unwrap());
}

pub(crate) async fn a_mark_is_taken_off_by_its_own_token_only(place: Place) {
    let place = place.node().await;
    let (mine, other) = (request(&key("a")), request(&key("a")));
    assert!(
        place
            .begin(mine.clone(), LONG)
            .commit_alone()
            .await
            .unwrap()
    );
    place
        .end(key("a"), Some(other.token), Wakes::none())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(asked(&*place).await, std::slice::from_ref(&mine));
    place
        .end(key("a"), Some(mine.token), Wakes::none())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(asked(&*place).await, []);
    assert!(begin(&*place, &key("a"), LONG).await);
}

pub(crate) async fn a_mark_is_taken_off_without_a_token(place: Place) {
    let place = place.node().await;
    assert!(begin(&*place, &key("a"), LONG).await);
    assert!(begin(&*place, &key("b"), LONG).await);
    place
        .end(key("a"), None, Wakes::none())
        .commit_alone()
        .await
        .unwrap();
    // One that is not there is no mistake.
    place
        .end(key("a"), None, Wakes::none())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(look(&*place, &key("a")).await.in_flight, None);
    assert!(!begin(&*place, &key("b"), LONG).await);
    assert!(begin(&*place, &key("a"), LONG).await);
}

pub(crate) async fn what_is_in_flight_is_told_oldest_first(place: Place) {
    let place = place.node().await;
    let requests: Vec<_> = ["m", "a", "z", "b"]
        .map(|hash| request(&key(hash)))
        .to_vec();
    for (at, request) in requests.iter().enumerate() {
        // The longest mark first, so that its end is no substitute for its beginning.
        let ttl = LONG / u32::try_from(at + 1).unwrap();
        assert!(
            place
                .begin(request.clone(), ttl)
                .commit_alone()
                .await
                .unwrap()
        );
    }
    assert_eq!(asked(&*place).await, requests);
}

pub(crate) async fn what_is_in_flight_belongs_to_a_registration(place: Place) {
    let place = place.node().await;
    assert!(begin(&*place, &key("a"), LONG).await);
    assert!(begin(&*place, &of_version(2, "b"), LONG).await);
    let second = place.in_flight(PROVIDER, 2).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].key, of_version(2, "b"));
    assert_eq!(place.in_flight(PROVIDER, 3).await.unwrap(), []);
}

pub(crate) async fn a_glance_tells_who_can_be_answered_or_is_asked(place: Place) {
    let place = place.node().await;
    let glance = async || {
        let at = |version, hash: Option<&str>| Glance {
            provider: PROVIDER,
            version,
            hash: hash.map(str::to_owned),
        };
        let at = vec![at(1, Some("a")), at(1, None), at(1, Some("b")), at(2, None)];
        place.glance(at).await.unwrap()
    };
    assert_eq!(place.glance(Vec::new()).await.unwrap(), [false; 0]);
    // Nobody has asked.
    assert_eq!(glance().await, [true, false, true, false]);
    assert!(begin(&*place, &key("a"), LONG).await);
    assert_eq!(glance().await, [false, true, true, false]);
    put(&*place, &key("a"), "one", LONG).await;
    assert_eq!(glance().await, [true, false, true, false]);
    assert!(begin(&*place, &key("b"), SHORT).await);
    eventually("the end of a mark", async || {
        glance().await[1..3] == [false, true]
    })
    .await;
}
