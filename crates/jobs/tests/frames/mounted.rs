use std::{
    io::Write,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::StatusCode;
use serde_json::json;
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::{Answer, AnswerBody, AnswerKey},
    results::{ResultBackend, Upload, UploadMemory, UploadOutcome, chunks::CHUNK_BYTES},
    store::sqlite::{MIGRATIONS, SqliteStore, system_clock},
};
use wakeline_testkit::CommitAlone;
use wakeline_testkit::SqliteDatabase;

use crate::{
    fixture::{Fixture, frame, frame_of},
    ports::{answer, provider},
};

const LONG: Duration = Duration::from_secs(60);

fn frame_answer(mark: &str) -> Answer {
    answer(false, frame(mark).bytes().clone())
}

/// A room whose provider has `count` frames and answers for those before `known`.
async fn mounted(fixture: &Fixture, frames: i64, known: i64) {
    fixture.make_room("room").await;
    fixture.mount("room", frames).await;
    for number in 0..known {
        fixture
            .ports
            .answer(number, frame_answer(&number.to_string()));
    }
}

pub(crate) async fn a_frame_that_is_not_stored_is_read_from_the_provider(fixture: Fixture) {
    mounted(&fixture, 10, 10).await;
    assert_eq!(
        fixture.get("/v1/rooms/room").await.json()["frame_count"],
        10
    );
    let one = fixture.get("/v1/rooms/room/frames/7?keys=mark").await;
    assert_eq!(one.marks(), ["7"]);
    assert_eq!(one.frames()[0].keys(), ["mark"]);
    assert_eq!(one.header("preference-applied"), None);
    // The request has the index only, so that reads with any keys share one answer.
    let requests = fixture.ports.requests.lock().unwrap().clone();
    let params = vec![("index".to_owned(), "7".to_owned())];
    assert_eq!(requests, [("room:frames:mount".to_owned(), params)]);
    let some = fixture
        .get_within(3, "/v1/rooms/room/frames?indices=9,0,9&keys=mark")
        .await;
    assert_eq!(some.marks(), ["9", "0", "9"]);
    assert_eq!(some.header("preference-applied"), Some("wait=3"));
    assert_eq!(
        fixture.get("/v1/rooms/room/frames?start=8").await.marks(),
        ["8", "9"]
    );
    let metadata = fixture.get("/v1/rooms/room/frames/2/metadata").await.json();
    assert_eq!(metadata["frame_id"], 2);
    let outside = fixture.get("/v1/rooms/room/frames/10").await;
    insta::assert_snapshot!(outside.json()["detail"], @r#""Frame 10 not found: the room has frames 0 to 9""#);
    // With two providers the newest one gets the request.
    fixture
        .ports
        .register(provider("room", "newer", crate::fixture::OTHER.id));
    fixture.get("/v1/rooms/room/frames/1").await.marks();
    let requests = fixture.ports.requests.lock().unwrap();
    assert_eq!(requests.last().unwrap().0, "room:frames:newer");
}

pub(crate) async fn a_read_is_held_until_the_provider_answers(fixture: Fixture) {
    mounted(&fixture, 3, 0).await;
    let reading = fixture.get_within(30, "/v1/rooms/room/frames?start=1");
    let answering = async {
        fixture.ports.wait_requested(2).await;
        fixture.ports.answer(2, frame_answer("two"));
        fixture.ports.answer(1, frame_answer("one"));
    };
    let (read, ()) = tokio::join!(reading, answering);
    assert_eq!(read.marks(), ["one", "two"]);
    assert_eq!(read.header("preference-applied"), Some("wait=30"));
    let timing = read.header("server-timing").unwrap();
    assert!(timing.starts_with("hold;dur="), "{timing}");
}

pub(crate) async fn a_batch_is_read_from_the_provider_concurrently_within_a_limit(
    fixture: Fixture,
) {
    let fixture = fixture.with_limits(|limits| limits.asked_at_once = 4);
    mounted(&fixture, 20, 20).await;
    let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(fixture.marks("room").await, expected);
    assert_eq!(fixture.ports.most_at_once.load(Ordering::SeqCst), 4);
}

pub(crate) async fn a_batch_that_is_not_answered_in_time_is_a_timeout(fixture: Fixture) {
    mounted(&fixture, 5, 4).await;
    for path in [
        "/v1/rooms/room/frames",
        "/v1/rooms/room/frames/4",
        "/v1/rooms/room/frames/4/metadata",
    ] {
        let late = fixture.get_within(0, path).await;
        assert_eq!(late.status, StatusCode::GATEWAY_TIMEOUT, "{path}");
        assert_eq!(late.header("retry-after"), Some("2"));
        assert_eq!(late.header("preference-applied"), None);
        assert_eq!(late.json()["type"], "/v1/problems/provider-timeout");
    }
    // The missing answer arrives.
    fixture.ports.answer(4, frame_answer("4"));
    assert_eq!(fixture.marks("room").await.len(), 5);
}

pub(crate) async fn a_batch_over_the_limit_of_bytes_is_refused_whole(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.asked_bytes = 150);
    mounted(&fixture, 5, 5).await;
    assert_eq!(
        fixture.get("/v1/rooms/room/frames?stop=2").await.marks(),
        ["0", "1"]
    );
    let refused = fixture.get("/v1/rooms/room/frames").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""these frames are more than 150 bytes together (jobs.asked_bytes); ask for fewer""#);
}

pub(crate) async fn a_problem_of_the_provider_is_the_answer_of_the_read(fixture: Fixture) {
    mounted(&fixture, 3, 2).await;
    let problem = json!({
        "type": "/v1/problems/provider-execution-failed",
        "title": "Bad Request", "status": 400, "detail": "no such step",
    });
    fixture.ports.answer(2, answer(true, problem.to_string()));
    for path in [
        "/v1/rooms/room/frames/2",
        "/v1/rooms/room/frames",
        "/v1/rooms/room/frames/2/metadata",
    ] {
        let failed = fixture.get(path).await;
        assert_eq!(failed.json(), problem, "{path}");
        assert_eq!(failed.status, StatusCode::BAD_REQUEST);
    }
    // A problem of a type that is not known here is passed on unchanged.
    let own =
        json!({ "type": "/of/its/own", "title": "Gone", "status": 410, "detail": "d", "at": 3 });
    fixture.ports.answer(2, answer(true, own.to_string()));
    let failed = fixture.get("/v1/rooms/room/frames/2").await;
    assert_eq!((failed.status, failed.json()), (StatusCode::GONE, own));
    assert_eq!(
        failed.header("content-type"),
        Some("application/problem+json")
    );
    fixture.ports.answer(2, answer(true, "not even JSON"));
    let failed = fixture.get("/v1/rooms/room/frames/2").await;
    assert_eq!(
        failed.json()["type"],
        "/v1/problems/provider-execution-failed"
    );
}

pub(crate) async fn an_answer_that_is_no_frame_is_a_failure_of_the_provider(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.frame.bytes = 100);
    mounted(&fixture, 3, 0).await;
    fixture.ports.answer(0, answer(false, &b"\x91\x80"[..]));
    fixture.ports.answer(1, answer(false, vec![0xc0; 101]));
    let mut texts = Vec::new();
    for number in 0..2 {
        let failed = fixture
            .get(&format!("/v1/rooms/room/frames/{number}"))
            .await;
        assert_eq!(failed.status, StatusCode::BAD_REQUEST);
        texts.push(failed.json()["detail"].to_string());
    }
    insta::assert_snapshot!(texts.join("\n"), @r#"
    "Provider 'room:frames:mount' answered frame 0 with bytes that are no frame: not a frame as MessagePack: a map is expected"
    "Provider 'room:frames:mount' answered 101 bytes, and a frame has at most 100 (jobs.frame_bytes)"
    "#);
    // The keys required of uploads are not required of providers.
    let bare = frame_of(&[("mark", b"bare")]);
    fixture.ports.answer(2, answer(false, bare.bytes().clone()));
    assert_eq!(
        fixture.get("/v1/rooms/room/frames/2").await.frames(),
        [bare]
    );
}

pub(crate) async fn an_answer_on_disk_is_read(fixture: Fixture) {
    mounted(&fixture, 1, 0).await;
    let mut file = tempfile::tempfile().unwrap();
    let bytes = frame("disk").bytes().clone();
    file.write_all(&bytes).unwrap();
    let body = AnswerBody::File(Arc::new(file), bytes.len() as u64);
    fixture.ports.answer(
        0,
        Answer {
            body,
            ..answer(false, "")
        },
    );
    for _ in 0..2 {
        assert_eq!(fixture.marks("room").await, ["disk"]);
    }
}

pub(crate) async fn an_answer_in_chunks_is_read(fixture: Fixture) {
    mounted(&fixture, 1, 0).await;
    let large = frame(&"x".repeat(3 * CHUNK_BYTES));
    let file = SqliteDatabase::new();
    let place = SqliteStore::new(file.open(&[MIGRATIONS]), system_clock());
    let key = AnswerKey {
        provider: Uuid::nil(),
        version: 1,
        hash: "a".to_owned(),
    };
    let upload = Upload {
        is_error: false,
        body: large.bytes().clone().into(),
        limit: 8 * CHUNK_BYTES as u64,
        patience: LONG,
        memory: UploadMemory::new(u64::MAX),
    };
    let kept = place
        .put(key.clone(), upload, LONG, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::Done);
    let looks = place.get(vec![key]).await.unwrap();
    let kept = looks[0].answer.clone().unwrap();
    assert!(matches!(kept.body, AnswerBody::Chunks(_)));
    fixture.ports.answer(0, kept);
    assert_eq!(
        fixture.get("/v1/rooms/room/frames/0").await.frames(),
        [large]
    );
}

pub(crate) async fn a_read_of_more_provider_frames_than_the_limit_is_refused(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.asked = 3);
    mounted(&fixture, 5, 5).await;
    assert_eq!(
        fixture
            .get("/v1/rooms/room/frames?stop=3")
            .await
            .marks()
            .len(),
        3
    );
    for query in ["", "?indices=0,1,2,3"] {
        let refused = fixture.get(&format!("/v1/rooms/room/frames{query}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains("jobs.asked_frames"), "{detail}");
    }
    assert_eq!(fixture.ports.requests.lock().unwrap().len(), 3);
}

pub(crate) async fn stored_frames_take_precedence_over_provider_frames(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    fixture.mount("room", 4).await;
    for number in 0..4 {
        fixture
            .ports
            .answer(number, frame_answer(&number.to_string()));
    }
    assert_eq!(fixture.marks("room").await, ["a", "b", "2", "3"]);
    let mixed = fixture.get("/v1/rooms/room/frames?indices=3,0,2,1").await;
    assert_eq!(mixed.marks(), ["3", "a", "2", "b"]);
    assert_eq!(fixture.get("/v1/rooms/room/frames/1").await.marks(), ["b"]);
}
