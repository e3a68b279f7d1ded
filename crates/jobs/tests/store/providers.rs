use std::time::Duration;

use uuid::Uuid;
use wakeline_jobs::{
    provider::{NewProvider, Provider, ProviderFilter, ProviderRegistered},
    worker::Owned,
};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{ALL, Ground, named, new_provider, page},
};

const NAME: &str = "r:filesystem:a:b/c";

pub(crate) async fn it_is_as_it_was_registered(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let new = NewProvider {
        schema: r#"{"path":{"type":"string"}}"#.to_owned(),
        content_type: "application/x-msgpack".to_owned(),
        ttl: Some(Duration::from_millis(1_500)),
        ..new_provider(NAME, ground.anna, Some(worker))
    };
    let registered = ground
        .store
        .register_provider(new.clone())
        .commit_alone()
        .await
        .unwrap();
    let ProviderRegistered::Done { provider, is_new } = registered else {
        panic!("{registered:?}");
    };
    let expected = Provider {
        id: provider.id,
        name: named(NAME),
        schema: new.schema,
        content_type: new.content_type,
        user: ground.anna,
        worker: Some(worker),
        created_at: provider.created_at,
        version: 1,
        ttl: new.ttl,
    };
    assert_eq!((&provider, is_new), (&expected, true));
    let known = ground.store.provider(provider.id).await.unwrap();
    assert_eq!(known, Some(expected));
    assert_eq!(ground.store.provider(Uuid::new_v4()).await.unwrap(), None);
}

pub(crate) async fn who_registers_without_a_worker_gets_one(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.provider(NAME, None).await.worker.unwrap();
    let owner = ground.store.worker_owner(worker).await.unwrap();
    assert_eq!(owner, Some(ground.anna));
    let internal = ground.provider("@internal:filesystem:a", None).await;
    assert_eq!(internal.worker, None, "the server's own has none");
    assert_eq!(ground.store.workers(ALL).await.unwrap().total, 1);
}

pub(crate) async fn every_registration_counts(database: Database) {
    let ground = Ground::new(database).await;
    let first = ground.provider(NAME, None).await;
    let worker = ground.worker().await;
    for version in 2..5 {
        let new = NewProvider {
            content_type: "text/plain".to_owned(),
            ttl: Some(Duration::ZERO),
            ..new_provider(NAME, ground.anna, Some(worker))
        };
        let registered = ground
            .store
            .register_provider(new)
            .commit_alone()
            .await
            .unwrap();
        let expected = Provider {
            version,
            worker: Some(worker),
            content_type: "text/plain".to_owned(),
            ttl: Some(Duration::ZERO),
            ..first.clone()
        };
        let expected = ProviderRegistered::Done {
            provider: expected,
            is_new: false,
        };
        assert_eq!(registered, expected);
    }
    let gone = ground
        .store
        .remove_provider(first.id, None)
        .commit_alone()
        .await
        .unwrap();
    assert!(matches!(gone, Owned::Done(_)));
    let again = ground.provider(NAME, None).await;
    assert_ne!(again.id, first.id, "what the old one answered is not its");
}

pub(crate) async fn only_a_superuser_takes_over(database: Database) {
    let ground = Ground::new(database).await;
    let first = ground.provider(NAME, None).await;
    let bens = new_provider(NAME, ground.ben, None);
    let refused = ground
        .store
        .register_provider(bens.clone())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(refused, ProviderRegistered::Foreign);
    let workers = ground.store.workers(ALL).await.unwrap();
    assert_eq!(workers.total, 1, "no worker was made for it");
    let known = ground.store.provider(first.id).await.unwrap();
    assert_eq!(known.as_ref(), Some(&first));
    let bens = NewProvider {
        is_superuser: true,
        ..bens
    };
    let taken = ground
        .store
        .register_provider(bens)
        .commit_alone()
        .await
        .unwrap();
    let ProviderRegistered::Done { provider, is_new } = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(
        (provider.id, provider.version, is_new),
        (first.id, 2, false)
    );
    assert_eq!(provider.user, ground.ben);
    let annas = new_provider(NAME, ground.anna, None);
    let refused = ground
        .store
        .register_provider(annas)
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(refused, ProviderRegistered::Foreign);
    // It went over to Ben's worker, and stays when Anna's goes.
    ground.remove(first.worker.unwrap()).await;
    assert!(ground.store.provider(first.id).await.unwrap().is_some());
}

pub(crate) async fn a_worker_of_nobody_or_another_is_refused(database: Database) {
    let ground = Ground::new(database).await;
    let annas = ground.worker().await;
    for worker in [annas, Uuid::new_v4()] {
        let new = NewProvider {
            is_superuser: true,
            ..new_provider(NAME, ground.ben, Some(worker))
        };
        let refused = ground
            .store
            .register_provider(new)
            .commit_alone()
            .await
            .unwrap();
        assert_eq!(refused, ProviderRegistered::NoWorker);
    }
    let found = ground.store.find_providers(vec![named(NAME)]).await;
    assert_eq!(found.unwrap(), [None]);
}

pub(crate) async fn they_are_found_by_name(database: Database) {
    let ground = Ground::new(database).await;
    let one = ground.provider("r:fs:a", None).await;
    let other = ground.provider("@global:fs:a", None).await;
    let names = ["r:fs:a", "nowhere:fs:a", "@global:fs:a", "r:fs:a", "r:fs:A"];
    let found = ground.store.find_providers(names.map(named).to_vec()).await;
    let expected = [Some(one.clone()), None, Some(other), Some(one), None];
    assert_eq!(found.unwrap(), expected);
    let none = ground.store.find_providers(Vec::new()).await.unwrap();
    assert_eq!(none, []);
}

pub(crate) async fn they_are_listed_newest_first(database: Database) {
    let ground = Ground::new(database).await;
    let mut all = Vec::new();
    for name in ["r:fs:a", "@global:fs:a", "other:fs:a", "r:fs:b"] {
        all.insert(0, ground.provider(name, None).await);
    }
    all.remove(1);
    let list = |scopes: &[&str], page| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        ground.store.providers(Vec::into(scopes), page)
    };
    let seen = list(&["r", "@global"], ALL).await.unwrap();
    assert_eq!((&seen.items, seen.total), (&all, 3));
    let part = list(&["r", "@global"], page(1, 1)).await.unwrap();
    assert_eq!((part.items, part.total), (vec![all[1].clone()], 3));
    let none = list(&["r"], page(0, 0)).await.unwrap();
    assert_eq!((none.items.len(), none.total), (0, 2));
    let nothing = list(&["nowhere"], ALL).await.unwrap();
    assert_eq!((nothing.items.len(), nothing.total), (0, 0));
}

pub(crate) async fn of_the_servers_own_only_some_are_listed(database: Database) {
    let ground = Ground::new(database).await;
    for name in ["r:fs:a", "@internal:fs:a", "@internal:fs:b", "other:fs:b"] {
        ground.provider(name, None).await;
    }
    let list = async |rooms: &[&str], internal: Option<&[&str]>| {
        let filter = ProviderFilter {
            rooms: rooms.iter().map(ToString::to_string).collect(),
            internal: internal.map(|names| names.iter().map(|name| named(name)).collect()),
        };
        let seen = ground.store.providers(filter, ALL).await.unwrap();
        let names: Vec<_> = seen.items.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(names.len() as i64, seen.total);
        names.join(" ")
    };
    let both = ["r", "@internal"];
    let all = "@internal:fs:b @internal:fs:a r:fs:a";
    assert_eq!(list(&both, None).await, all);
    let one: &[&str] = &["@internal:fs:b", "other:fs:b"];
    assert_eq!(list(&both, Some(one)).await, "@internal:fs:b r:fs:a");
    assert_eq!(list(&both, Some(&[])).await, "r:fs:a");
    assert_eq!(list(&["r"], Some(one)).await, "r:fs:a");
}

pub(crate) async fn only_its_owner_removes_and_touches_it(database: Database) {
    let ground = Ground::new(database).await;
    let provider = ground.provider(NAME, None).await;
    let (anna, ben) = (Some(ground.anna), Some(ground.ben));
    let touch = |id, user| ground.store.touch_provider(id, user);
    let remove = |id, user| ground.store.remove_provider(id, user);
    assert_eq!(
        touch(provider.id, ben).commit_alone().await.unwrap(),
        Owned::Foreign
    );
    assert_eq!(
        remove(provider.id, ben).commit_alone().await.unwrap(),
        Owned::Foreign
    );
    let done = Owned::Done(provider.clone());
    assert_eq!(touch(provider.id, anna).commit_alone().await.unwrap(), done);
    assert_eq!(touch(provider.id, None).commit_alone().await.unwrap(), done);
    assert_eq!(
        remove(provider.id, anna).commit_alone().await.unwrap(),
        done
    );
    assert_eq!(
        touch(provider.id, anna).commit_alone().await.unwrap(),
        Owned::NotFound
    );
    assert_eq!(
        remove(provider.id, None).commit_alone().await.unwrap(),
        Owned::NotFound
    );
    let internal = ground.provider("@internal:fs:a", None).await;
    let touched = touch(internal.id, None).commit_alone().await.unwrap();
    assert_eq!(touched, Owned::Done(internal), "it has no heart, and lives");
}

pub(crate) async fn the_newest_of_a_category_is_found(database: Database) {
    let ground = Ground::new(database).await;
    let newest = async |room: &str| {
        let found = ground.store.newest_provider(room.to_owned(), "frames");
        found.await.unwrap().map(|provider| provider.name.name)
    };
    assert_eq!(newest("r").await, None);
    for name in ["r:frames:a", "r:frames:b", "r:fs:c", "s:frames:d"] {
        ground.provider(name, None).await;
    }
    assert_eq!(newest("r").await.as_deref(), Some("b"));
    assert_eq!(newest("s").await.as_deref(), Some("d"));
}
