use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use http::StatusCode;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wakeline_jobs::{user::UserDeletion, users::WorkerRemover};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    database::Database,
    test_door::{GuardedDoor, PASSWORD, TestDoor, guarded},
};

pub(crate) async fn a_deleted_user_is_not_let_in(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let path = format!("DELETE /v1/auth/users/{ada}");
    let deleted = door.ask(&path, Some(&admin)).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.refusal(), r#"401 {"detail":"Unauthorized"}"#);
    let login = door.login("ada@example.com", PASSWORD).await;
    assert_eq!(login.status, StatusCode::BAD_REQUEST);
    let again = door.ask(&path, Some(&admin)).await;
    assert_eq!(again.refusal(), r#"404 {"detail":"Not Found"}"#);
    // Another user, with an id of its own.
    assert_ne!(door.register("ada@example.com").await, ada);
}

/// Removes workers as the door does, and records which.
#[derive(Debug)]
struct Remover {
    database: Arc<Database>,
    left: Mutex<Vec<Uuid>>,
    /// A worker that this user gets while the first one is removed.
    latecomer: Mutex<Option<Uuid>>,
    /// A permit for each removal that has begun.
    began: Semaphore,
    /// How many removals may continue.
    turns: Semaphore,
}

impl Remover {
    fn new(database: &Arc<Database>, latecomer: Option<Uuid>, turns: usize) -> Arc<Self> {
        Arc::new(Self {
            database: database.clone(),
            left: Mutex::default(),
            latecomer: Mutex::new(latecomer),
            began: Semaphore::new(0),
            turns: Semaphore::new(turns),
        })
    }
}

impl WorkerRemover for Remover {
    fn remove_worker_of_user(&self, worker: Uuid) -> BoxFuture<'_, ()> {
        async move {
            self.began.add_permits(1);
            self.turns.acquire().await.unwrap().forget();
            self.database.remove_worker(worker).await;
            self.left.lock().unwrap().push(worker);
            let user = self.latecomer.lock().unwrap().take();
            if let Some(user) = user {
                self.database.add_worker(user).await;
            }
        }
        .boxed()
    }
}

pub(crate) async fn the_workers_of_a_user_are_removed_before_it_is_deleted(database: Database) {
    let database = Arc::new(database);
    let door = TestDoor::new(&database, guarded()).await;
    let ada = door.register("ada@example.com").await;
    let bob = door.register("bob@example.com").await;
    let admin = door.token("admin@example.com").await;
    let mut workers = vec![
        database.add_worker(ada).await,
        database.add_worker(ada).await,
    ];
    let other = database.add_worker(bob).await;
    let remover = Remover::new(&database, Some(ada), 3);
    door.users.set_worker_remover(remover.clone());
    let path = format!("DELETE /v1/auth/users/{ada}");
    let deleted = door.ask(&path, Some(&admin)).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let mut left = remover.left.lock().unwrap().clone();
    assert_eq!(left.len(), 3, "the latecomer too");
    left.truncate(2);
    left.sort();
    workers.sort();
    assert_eq!(left, workers);
    let store = database.store().await;
    assert_eq!(store.workers_of_user(bob).await.unwrap(), [other]);
    assert_eq!(store.user(ada).await.unwrap(), None);
}

pub(crate) async fn a_deletion_whose_caller_hung_up_is_completed(database: Database) {
    let database = Arc::new(database);
    let door = TestDoor::new(&database, guarded()).await;
    let ada = door.register("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    database.add_worker(ada).await;
    let remover = Remover::new(&database, None, 0);
    door.users.set_worker_remover(remover.clone());
    let caller = tokio::spawn({
        let door = door.clone();
        let path = format!("DELETE /v1/auth/users/{ada}");
        async move { door.ask(&path, Some(&admin)).await }
    });
    remover.began.acquire().await.unwrap().forget();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    remover.turns.add_permits(1);
    let store = database.store().await;
    eventually("the deletion to go on to its end", async || {
        store.user(ada).await.unwrap().is_none()
    })
    .await;
}

pub(crate) async fn a_user_whose_workers_cannot_be_removed_is_not_deleted(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let worker = door.database.add_worker(ada).await;
    // No remover is set, so the worker is not removed.
    let path = format!("DELETE /v1/auth/users/{ada}");
    let answer = door.ask(&path, Some(&admin)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.text("type"), "urn:wakeline:workers-left");
    let store = door.database.store().await;
    assert_eq!(store.workers_of_user(ada).await.unwrap(), [worker]);
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.refusal(), r#"401 {"detail":"Unauthorized"}"#);
    door.database.remove_worker(worker).await;
    let answer = door.ask(&path, Some(&admin)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

pub(crate) async fn a_user_whose_worker_is_being_created_is_not_deleted(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let store = door.database.store().await;
    if !door.database.is_postgres() {
        // SQLite has one writer: the worker is created before or after the deletion.
        door.database.add_worker(ada).await;
        let deleted = store.delete_user(ada).commit_alone().await;
        assert_eq!(deleted, Ok(UserDeletion::HasWorkers));
        return;
    }
    let other = door.database.session().await;
    let making = format!(
        "BEGIN; INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
         VALUES (gen_random_uuid(), '{ada}', 0, 0)"
    );
    other.batch_execute(&making).await.unwrap();
    let deleting = tokio::spawn(async move { store.delete_user(ada).commit_alone().await });
    eventually("the deletion to wait", async || {
        door.database.is_write_blocked().await
    })
    .await;
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(deleting.await.unwrap(), Ok(UserDeletion::HasWorkers));
}

const SOON: Duration = Duration::from_micros(1);

async fn guest(door: &TestDoor) -> (Uuid, String) {
    let token = door.guest().await;
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    (me.id(), token)
}

pub(crate) async fn a_guest_is_deleted_when_its_time_is_over(door: GuardedDoor) {
    let (first, first_token) = guest(&door).await;
    let (second, _) = guest(&door).await;
    door.register("ada@example.com").await;
    let store = door.database.store().await;
    let day = Duration::from_secs(86_400);
    assert_eq!(store.sweep_guests(day, 10).done().await, 0);
    // The oldest guests first, and no more than the limit.
    assert_eq!(store.sweep_guests(SOON, 1).done().await, 1);
    assert!(store.user(first).await.unwrap().is_none());
    assert!(store.user(second).await.unwrap().is_some());
    assert_eq!(store.sweep_guests(SOON, 10).done().await, 1);
    assert!(store.user(second).await.unwrap().is_none());
    assert!(
        store
            .login("ada@example.com".to_owned())
            .await
            .unwrap()
            .is_some()
    );
    // On another node, which has not cached the user, its token belongs to an unknown user.
    let other = TestDoor::new(&door.database, guarded()).await;
    let me = other.ask("GET /v1/auth/users/me", Some(&first_token)).await;
    assert_eq!(me.refusal(), r#"401 {"detail":"Unauthorized"}"#);
}

pub(crate) async fn a_guest_with_a_worker_or_a_password_is_not_deleted(door: GuardedDoor) {
    let (works, _) = guest(&door).await;
    let (named, token) = guest(&door).await;
    let worker = door.database.add_worker(works).await;
    let password = serde_json::json!({ "password": PASSWORD });
    let me = "PATCH /v1/auth/users/me";
    let changed = door.tell(me, Some(&token), password).await;
    assert_eq!(changed.status, StatusCode::OK);
    let store = door.database.store().await;
    assert_eq!(store.sweep_guests(SOON, 10).done().await, 0);
    assert!(store.user(named).await.unwrap().is_some());
    door.database.remove_worker(worker).await;
    assert_eq!(store.sweep_guests(SOON, 10).done().await, 1);
    assert!(store.user(works).await.unwrap().is_none());
    assert!(store.user(named).await.unwrap().is_some());
}
