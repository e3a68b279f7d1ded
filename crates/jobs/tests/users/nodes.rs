use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::{BoxFuture, join, join_all};
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_jobs::{
    store::{self, Commit, Query, Row, StoreFuture, Value},
    user::{UserChange, UserChangeOutcome, UserDeletion},
    users::{UserChanges, Users},
};
use wakeline_store::Error;
use wakeline_testkit::{eventually, local_bus};

use crate::{
    database::Database,
    test_door::{PASSWORD, TestDoor, open},
};

pub(crate) async fn one_of_two_concurrent_registrations_succeeds(database: Database) {
    let one = TestDoor::new(&database, open()).await;
    let two = TestDoor::new(&database, open()).await;
    for round in 0..3 {
        let body = json!({ "email": format!("ada{round}@example.com"), "password": PASSWORD });
        let register = |door: &TestDoor| {
            let (door, body) = (door.clone(), body.clone());
            async move { door.tell("POST /v1/auth/register", None, body).await.status }
        };
        let (one, two) = join(register(&one), register(&two)).await;
        let mut both = [one, two];
        both.sort();
        assert_eq!(both, [StatusCode::CREATED, StatusCode::BAD_REQUEST]);
    }
}

pub(crate) async fn a_change_on_another_node_takes_effect_soon(database: Database) {
    let one = TestDoor::new(&database, open()).await;
    let two = TestDoor::new(&database, open()).await;
    let ada = one.register("ada@example.com").await;
    let token = one.token("ada@example.com").await;
    assert_eq!(
        one.ask("GET /caller", Some(&token)).await.status,
        StatusCode::OK
    );
    let off = UserChanges {
        is_active: Some(false),
        ..UserChanges::default()
    };
    two.users.change(ada, off).await.unwrap();
    // Another node reads its cached users again every five seconds.
    eventually("the change to be seen", async || {
        one.ask("GET /caller", Some(&token)).await.status != StatusCode::OK
    })
    .await;
}

/// The real store, with a count of its reads of users.
#[derive(Debug)]
struct CountingStore {
    store: Arc<dyn store::Users>,
    questions: AtomicU64,
}

impl Query for CountingStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>> {
        if kind == "user" {
            self.questions.fetch_add(1, Ordering::Relaxed);
        }
        self.store.rows(kind, statement, parameters)
    }

    fn written_rows(
        &self,
        commit: Commit,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        self.store.written_rows(commit, statement, parameters)
    }
}

impl store::Users for CountingStore {
    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChangeOutcome> {
        self.store.change_user(user, change)
    }
    fn delete_user(&self, user: Uuid) -> Write<UserDeletion> {
        self.store.delete_user(user)
    }
    fn sweep_guests(&self, older: Duration, limit: i64) -> Write<i64> {
        self.store.sweep_guests(older, limit)
    }
}

pub(crate) async fn a_cached_user_costs_no_read_of_the_store(database: Database) {
    let counting = Arc::new(CountingStore {
        store: database.store().await,
        questions: AtomicU64::new(0),
    });
    let users = Users::open(counting.clone(), local_bus(), open())
        .await
        .unwrap();
    let door = TestDoor::of(Arc::new(users));
    let token = door.guest().await;
    let began = Instant::now();
    for _ in 0..10 {
        let asking = (0..100).map(|_| door.ask("GET /caller", Some(&token)));
        for answer in join_all(asking).await {
            assert_eq!(answer.status, StatusCode::OK);
        }
    }
    // At most one read in five seconds.
    let most = 1 + began.elapsed().as_secs() / 5;
    let questions = counting.questions.load(Ordering::Relaxed);
    assert!((1..=most).contains(&questions), "{questions} of {most}");
}
