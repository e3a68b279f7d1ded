use futures_util::future::join;
use http::StatusCode;
use serde_json::json;
use wakeline_jobs::{
    Error,
    users::{Settings, Users},
};
use wakeline_testkit::{CommitAlone, local_bus};

use crate::{
    database::Database,
    test_door::{GuardedDoor, PASSWORD, TestDoor, guarded, open},
    tokens::known_secret,
};

pub(crate) async fn all_nodes_share_the_generated_secret(database: Database) {
    let one = TestDoor::new(&database, open());
    let (one, two) = join(one, TestDoor::new(&database, open())).await;
    let token = one.guest().await;
    assert_eq!(
        two.ask("GET /caller", Some(&token)).await.status,
        StatusCode::OK
    );
    drop((one, two));
    let later = TestDoor::new(&database, open()).await;
    let answer = later.ask("GET /caller", Some(&token)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let store = database.store().await;
    let secret = store.secret(vec![0; 32]).done().await;
    assert_eq!(secret.len(), 32);
    assert_ne!(secret, [0; 32]);
}

pub(crate) async fn a_configured_secret_is_used_instead(database: Database) {
    let made = TestDoor::new(&database, open()).await;
    let configured = TestDoor::new(&database, known_secret()).await;
    let again = TestDoor::new(&database, known_secret()).await;
    let (one, two) = (made.guest().await, configured.guest().await);
    let taken = async |door: &TestDoor, token: &str| {
        door.ask("GET /caller", Some(token)).await.status == StatusCode::OK
    };
    assert!(taken(&made, &one).await && !taken(&configured, &one).await);
    assert!(taken(&again, &two).await && !taken(&made, &two).await);
}

pub(crate) async fn the_configured_admin_is_created_and_reset_at_each_start(door: GuardedDoor) {
    let token = door.token("admin@example.com").await;
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    let expected = json!({
        "id": me.id(), "email": "admin@example.com",
        "is_active": true, "is_superuser": true, "is_verified": true,
    });
    assert_eq!(me.body, expected);

    // Another start with the same settings invalidates no token.
    let again = TestDoor::new(&door.database, guarded()).await;
    let me = again.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.body, expected);

    // The admin's fields that were changed meanwhile are reset to the settings.
    let off = json!({ "is_active": false, "is_superuser": false, "is_verified": false });
    let path = format!("PATCH /v1/auth/users/{}", me.id());
    again.tell(&path, Some(&token), off).await;
    let again = TestDoor::new(&door.database, guarded()).await;
    let me = again.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.body, expected);

    let settings = Settings {
        admin: Some(("Admin@example.com".to_owned(), "another horse".to_owned())),
        ..open()
    };
    let changed = TestDoor::new(&door.database, settings).await;
    let login = async |password| changed.login("admin@example.com", password).await.status;
    assert_eq!(login("another horse").await, StatusCode::OK);
    assert_eq!(login(PASSWORD).await, StatusCode::BAD_REQUEST);
    let old = changed.ask("GET /caller", Some(&token)).await;
    assert_eq!(old.status, StatusCode::UNAUTHORIZED);
}

pub(crate) async fn an_invalid_admin_is_refused(database: Database) {
    for (email, password) in [("admin", PASSWORD), ("admin@example.com", "short")] {
        let settings = Settings {
            admin: Some((email.to_owned(), password.to_owned())),
            ..open()
        };
        assert!(!format!("{settings:?}").contains(password));
        let opened = Users::open(database.store().await, local_bus(), settings).await;
        assert!(matches!(opened, Err(Error::InvalidFields(_))), "{email}");
    }
}
