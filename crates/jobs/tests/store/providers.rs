use std::time::Duration;

use uuid::Uuid;
use wakeline_jobs::{
    provider::{NewProvider, Provider, ProviderFilter, ProviderRegistration},
    worker::OwnerOutcome,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, named, new_provider, page};

const NAME: &str = "r:filesystem:a:b/c";

pub(crate) async fn a_provider_has_the_fields_of_its_registration(fixture: Fixture) {
    let worker = fixture.worker().await;
    let new = NewProvider {
        schema: r#"{"path":{"type":"string"}}"#.to_owned(),
        content_type: "application/x-msgpack".to_owned(),
        ttl: Some(Duration::from_millis(1_500)),
        ..new_provider(NAME, fixture.anna, Some(worker))
    };
    let registered = fixture.store.register_provider(new.clone()).done().await;
    let ProviderRegistration::Done { provider, is_new } = registered else {
        panic!("{registered:?}");
    };
    let expected = Provider {
        id: provider.id,
        name: named(NAME),
        schema: new.schema,
        content_type: new.content_type,
        user: fixture.anna,
        worker: Some(worker),
        created_at: provider.created_at,
        version: 1,
        ttl: new.ttl,
    };
    assert_eq!((&provider, is_new), (&expected, true));
    let known = fixture.store.provider(provider.id).await.unwrap();
    assert_eq!(known, Some(expected));
    assert_eq!(fixture.store.provider(Uuid::new_v4()).await.unwrap(), None);
}

pub(crate) async fn a_registration_without_a_worker_creates_one(fixture: Fixture) {
    let worker = fixture.provider(NAME, None).await.worker.unwrap();
    let owner = fixture.store.worker_owner(worker).await.unwrap();
    assert_eq!(owner, Some(fixture.anna));
    let internal = fixture.provider("@internal:filesystem:a", None).await;
    assert_eq!(internal.worker, None, "the server's own has none");
    assert_eq!(fixture.store.workers(ALL).await.unwrap().total, 1);
}

pub(crate) async fn every_registration_increments_the_version(fixture: Fixture) {
    let first = fixture.provider(NAME, None).await;
    let worker = fixture.worker().await;
    for version in 2..5 {
        let new = NewProvider {
            content_type: "text/plain".to_owned(),
            ttl: Some(Duration::ZERO),
            ..new_provider(NAME, fixture.anna, Some(worker))
        };
        let registered = fixture.store.register_provider(new).done().await;
        let expected = Provider {
            version,
            worker: Some(worker),
            content_type: "text/plain".to_owned(),
            ttl: Some(Duration::ZERO),
            ..first.clone()
        };
        let expected = ProviderRegistration::Done {
            provider: expected,
            is_new: false,
        };
        assert_eq!(registered, expected);
    }
    let gone = fixture.store.remove_provider(first.id, None).done().await;
    assert!(matches!(gone, OwnerOutcome::Done(_)));
    let again = fixture.provider(NAME, None).await;
    assert_ne!(again.id, first.id, "what the old one answered is not its");
}

pub(crate) async fn only_a_superuser_takes_a_provider_over(fixture: Fixture) {
    let first = fixture.provider(NAME, None).await;
    let bens = new_provider(NAME, fixture.ben, None);
    let refused = fixture.store.register_provider(bens.clone()).done().await;
    assert_eq!(refused, ProviderRegistration::NotOwner);
    let workers = fixture.store.workers(ALL).await.unwrap();
    assert_eq!(workers.total, 1, "no worker was made for it");
    let known = fixture.store.provider(first.id).await.unwrap();
    assert_eq!(known.as_ref(), Some(&first));
    let bens = NewProvider {
        is_superuser: true,
        ..bens
    };
    let taken = fixture.store.register_provider(bens).done().await;
    let ProviderRegistration::Done { provider, is_new } = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(
        (provider.id, provider.version, is_new),
        (first.id, 2, false)
    );
    assert_eq!(provider.user, fixture.ben);
    let annas = new_provider(NAME, fixture.anna, None);
    let refused = fixture.store.register_provider(annas).done().await;
    assert_eq!(refused, ProviderRegistration::NotOwner);
    // Ben's worker has the provider now, which stays when Anna's worker is removed.
    fixture.remove(first.worker.unwrap()).await;
    assert!(fixture.store.provider(first.id).await.unwrap().is_some());
}

pub(crate) async fn an_unknown_or_foreign_worker_is_refused(fixture: Fixture) {
    let annas = fixture.worker().await;
    for worker in [annas, Uuid::new_v4()] {
        let new = NewProvider {
            is_superuser: true,
            ..new_provider(NAME, fixture.ben, Some(worker))
        };
        let refused = fixture.store.register_provider(new).done().await;
        assert_eq!(refused, ProviderRegistration::NoWorker);
    }
    let found = fixture.store.find_providers(vec![named(NAME)]).await;
    assert_eq!(found.unwrap(), [None]);
}

pub(crate) async fn providers_are_found_by_name(fixture: Fixture) {
    let one = fixture.provider("r:fs:a", None).await;
    let other = fixture.provider("@global:fs:a", None).await;
    let names = ["r:fs:a", "nowhere:fs:a", "@global:fs:a", "r:fs:a", "r:fs:A"];
    let found = fixture
        .store
        .find_providers(names.map(named).to_vec())
        .await;
    let expected = [Some(one.clone()), None, Some(other), Some(one), None];
    assert_eq!(found.unwrap(), expected);
    let none = fixture.store.find_providers(Vec::new()).await.unwrap();
    assert_eq!(none, []);
}

pub(crate) async fn providers_are_listed_newest_first(fixture: Fixture) {
    let mut all = Vec::new();
    for name in ["r:fs:a", "@global:fs:a", "other:fs:a", "r:fs:b"] {
        all.insert(0, fixture.provider(name, None).await);
    }
    all.remove(1);
    let list = |scopes: &[&str], page| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        fixture.store.providers(Vec::into(scopes), page)
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

pub(crate) async fn only_the_named_internal_providers_are_listed(fixture: Fixture) {
    for name in ["r:fs:a", "@internal:fs:a", "@internal:fs:b", "other:fs:b"] {
        fixture.provider(name, None).await;
    }
    let list = async |rooms: &[&str], internal: Option<&[&str]>| {
        let filter = ProviderFilter {
            rooms: rooms.iter().map(ToString::to_string).collect(),
            internal: internal.map(|names| names.iter().map(|name| named(name)).collect()),
        };
        let seen = fixture.store.providers(filter, ALL).await.unwrap();
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

pub(crate) async fn only_its_owner_removes_a_provider_or_sends_its_heartbeat(fixture: Fixture) {
    let provider = fixture.provider(NAME, None).await;
    let (anna, ben) = (Some(fixture.anna), Some(fixture.ben));
    let touch = |id, user| fixture.store.touch_provider(id, user);
    let remove = |id, user| fixture.store.remove_provider(id, user);
    assert_eq!(touch(provider.id, ben).done().await, OwnerOutcome::NotOwner);
    assert_eq!(
        remove(provider.id, ben).done().await,
        OwnerOutcome::NotOwner
    );
    let done = OwnerOutcome::Done(provider.clone());
    assert_eq!(touch(provider.id, anna).done().await, done);
    assert_eq!(touch(provider.id, None).done().await, done);
    assert_eq!(remove(provider.id, anna).done().await, done);
    assert_eq!(
        touch(provider.id, anna).done().await,
        OwnerOutcome::NotFound
    );
    assert_eq!(
        remove(provider.id, None).done().await,
        OwnerOutcome::NotFound
    );
    let internal = fixture.provider("@internal:fs:a", None).await;
    let touched = touch(internal.id, None).done().await;
    assert_eq!(
        touched,
        OwnerOutcome::Done(internal),
        "it has no heart, and lives"
    );
}

pub(crate) async fn the_newest_of_a_category_is_found(fixture: Fixture) {
    let newest = async |room: &str| {
        let found = fixture.store.newest_provider(room.to_owned(), "frames");
        found.await.unwrap().map(|provider| provider.name.name)
    };
    assert_eq!(newest("r").await, None);
    for name in ["r:frames:a", "r:frames:b", "r:fs:c", "s:frames:d"] {
        fixture.provider(name, None).await;
    }
    assert_eq!(newest("r").await.as_deref(), Some("b"));
    assert_eq!(newest("s").await.as_deref(), Some("d"));
}
