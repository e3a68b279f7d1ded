//! Users' keys.

use wakeline_feed::store::{KeyPair, Principal};
use wakeline_testkit::CommitAlone;

use crate::fixture::Fixture;

pub(crate) fn pair(name: &str) -> KeyPair {
    KeyPair {
        public: format!("public {name}").into(),
        private: format!("private {name}").into(),
    }
}

pub(crate) fn principal(provider: &str, id: &str) -> Principal {
    Principal {
        provider: provider.into(),
        id: id.into(),
    }
}

pub(crate) async fn the_first_key_of_a_principal_stays(fixture: Fixture) {
    let store = &fixture.store;
    let anna = principal("google", "anna");
    assert_eq!(store.key(anna.clone()).await.unwrap(), None);
    let first = store.store_key(anna.clone(), pair("a")).done().await;
    let second = store.store_key(anna.clone(), pair("b")).done().await;
    assert_eq!((first, second), (pair("a"), pair("a")));
    assert_eq!(store.key(anna).await.unwrap(), Some(pair("a")));
}

pub(crate) async fn principals_have_keys_of_their_own(fixture: Fixture) {
    let store = &fixture.store;
    let all = [("x", "anna"), ("x", "ben"), ("y", "anna")];
    for (provider, id) in all {
        let key = pair(&format!("{provider}/{id}"));
        let of = principal(provider, id);
        store.store_key(of, key).done().await;
    }
    for (provider, id) in all {
        let kept = store.key(principal(provider, id)).await.unwrap();
        assert_eq!(kept, Some(pair(&format!("{provider}/{id}"))));
    }
}
