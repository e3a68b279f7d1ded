//! A wake goes to a dispatcher that can fetch the item, not to any.

use std::{collections::HashSet, time::Duration};

use duroxide::providers::{Provider, TagFilter};

use crate::fixture::*;

fn tags(tags: &[&str]) -> HashSet<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

#[tokio::test]
async fn an_activity_reaches_the_worker_with_its_tag() {
    let (fixture, provider, other) = Fixture::live_pair().await;
    // The workers that cannot fetch it have waited longer.
    let default = fetch_activity_of(&provider, LONG, None, TagFilter::DefaultOnly);
    let default = fixture.parked(&provider, default).await;
    let cpu = fetch_activity_of(&provider, LONG, None, TagFilter::Tags(tags(&["cpu"])));
    let cpu = fixture.parked(&provider, cpu).await;
    let gpu = TagFilter::DefaultAnd(tags(&["gpu", "tpu"]));
    let gpu = fixture
        .parked(&provider, fetch_activity_of(&provider, LONG, None, gpu))
        .await;
    schedule(&other, tagged("a", 2, None, Some("gpu"))).await;
    let (item, ..) = gpu.await.expect("it is woken");
    assert_eq!(item, tagged("a", 2, None, Some("gpu")));

    let any = fixture
        .parked(
            &provider,
            fetch_activity_of(&provider, LONG, None, TagFilter::Any),
        )
        .await;
    schedule(&other, tagged("a", 3, None, Some("unheard of"))).await;
    any.await.expect("it is woken");
    schedule(&other, activity("a", 4)).await;
    assert_eq!(default.await.expect("it is woken").0, activity("a", 4));
    schedule(&other, tagged("a", 5, None, Some("cpu"))).await;
    cpu.await.expect("it is woken");
}

#[tokio::test]
async fn an_activity_of_a_session_reaches_its_owner() {
    let (fixture, provider) = Fixture::with_provider().await;
    let other = fixture.direct().await;
    schedule(&provider, tagged("a", 2, Some("s"), None)).await;
    let owner = session("owner", LONG);
    let default = TagFilter::DefaultOnly;
    let (_, token, _) =
        fetch_activity_of(&provider, LONG, Some(owner.clone()), default.clone()).await;
    provider.ack_work_item(&token, None).await.expect("held");
    fixture.until_live(&provider).await;

    let stranger = fetch_activity_of(
        &provider,
        LONG,
        Some(session("stranger", LONG)),
        default.clone(),
    );
    let stranger = fixture.parked(&provider, stranger).await;
    let without = fixture
        .parked(&provider, fetch_activity(&provider, LONG))
        .await;
    let owners = fetch_activity_of(&provider, LONG, Some(owner), default);
    let owners = fixture.parked(&provider, owners).await;
    schedule(&other, tagged("a", 3, Some("s"), None)).await;
    let (item, ..) = owners.await.expect("it is woken");
    assert_eq!(item, tagged("a", 3, Some("s"), None));

    // A session without an owner is for any worker that may have sessions.
    schedule(&other, tagged("a", 4, Some("another"), None)).await;
    let (item, ..) = stranger.await.expect("it is woken");
    assert_eq!(item, tagged("a", 4, Some("another"), None));
    schedule(&other, activity("a", 5)).await;
    assert_eq!(without.await.expect("it is woken").0, activity("a", 5));
}

#[tokio::test]
async fn an_instance_reaches_the_dispatcher_that_can_replay_it() {
    let (fixture, provider) = Fixture::with_provider().await;
    let other = fixture.direct().await;
    begin_pinned(&provider, "a", 2).await;
    fixture.until_live(&provider).await;

    let of_version = |major: u64, poll: Duration| {
        let provider = provider.clone();
        async move {
            let got = provider
                .fetch_orchestration_item(LONG, poll, Some(&replays(major)))
                .await;
            got.expect("it can be fetched")
        }
    };
    let old = fixture
        .parked(&provider, of_version(1, Duration::from_secs(3)))
        .await;
    let new = fixture.parked(&provider, of_version(2, POLL)).await;
    enqueue(&other, timer("a", 2, Duration::ZERO).0).await;
    let (item, ..) = new.await.expect("no panic").expect("it is woken");
    assert_eq!(item.instance, "a");
    assert!(old.await.expect("no panic").is_none());
}
