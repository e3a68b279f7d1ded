use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, future::BoxFuture};
use http::StatusCode;
use uuid::Uuid;
use wakeline_jobs::users::Leaving;

use crate::{
    database::Database,
    door::{Door, PASSWORD, guarded},
};

pub(crate) async fn a_deleted_user_is_nobody(database: Database) {
    let door = Door::new(&database, guarded()).await;
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

/// Removes workers as the door does, and says which.
#[derive(Debug)]
struct Remover {
    database: Arc<Database>,
    left: Mutex<Vec<Uuid>>,
    /// Another one comes while the first leaves.
    latecomer: Mutex<Option<Uuid>>,
}

impl Leaving for Remover {
    fn leaving(&self, worker: Uuid) -> BoxFuture<'_, ()> {
        async move {
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

pub(crate) async fn its_workers_leave_first(database: Database) {
    let database = Arc::new(database);
    let door = Door::new(&database, guarded()).await;
    let ada = door.register("ada@example.com").await;
    let bob = door.register("bob@example.com").await;
    let admin = door.token("admin@example.com").await;
    let mut workers = vec![
        database.add_worker(ada).await,
        database.add_worker(ada).await,
    ];
    let other = database.add_worker(bob).await;
    let remover = Arc::new(Remover {
        database: database.clone(),
        left: Mutex::default(),
        latecomer: Mutex::new(Some(ada)),
    });
    door.users.on_leaving(remover.clone());
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

pub(crate) async fn workers_that_stay_keep_the_user(database: Database) {
    let door = Door::new(&database, guarded()).await;
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let worker = database.add_worker(ada).await;
    // Nobody removes it.
    let path = format!("DELETE /v1/auth/users/{ada}");
    let answer = door.ask(&path, Some(&admin)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.text("type"), "urn:wakeline:workers-left");
    let store = database.store().await;
    assert_eq!(store.workers_of_user(ada).await.unwrap(), [worker]);
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.refusal(), r#"401 {"detail":"Unauthorized"}"#);
    database.remove_worker(worker).await;
    let answer = door.ask(&path, Some(&admin)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}
