use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use wakeline_jobs::{
    internal::{AlreadyRegistered, InternalJob, InternalProvider, Registry},
    name::FullName,
};

use crate::tree::TestTree;

#[derive(Debug)]
struct Sum;

impl InternalJob for Sum {
    fn category(&self) -> &str {
        "analysis"
    }

    fn name(&self) -> &str {
        "Sum"
    }

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn run(&self, payload: Value) -> BoxFuture<'_, Result<(), String>> {
        async move {
            match payload["numbers"].as_array() {
                Some(_) => Ok(()),
                None => Err("numbers: there are none".to_owned()),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_registered_provider_or_job_is_found_by_its_name() {
    let tree = TestTree::with(&["root/file"]);
    let provider = Arc::new(tree.provider(&["root"]));
    let registry = Registry::new().with_provider(provider.clone()).unwrap();
    let registry = registry.with_job(Arc::new(Sum)).unwrap();

    let name = FullName::parse("@internal:filesystem:FilesystemRead").unwrap();
    let found = registry.provider(&name).unwrap();
    assert!(found.superusers_only());
    assert_eq!(found.content_type(), "application/json");
    assert_eq!(found.schema()["properties"]["path"]["default"], "/");
    let answer = found.read(BTreeMap::new()).await.unwrap();
    let expected = br#"[{"name":"file","path":"/file","size":4,"type":"file"}]"#;
    assert_eq!(answer, Bytes::from_static(expected));
    assert!(!tree.provider(&["root"]).for_everybody().superusers_only());

    let name = FullName::parse("@internal:analysis:Sum").unwrap();
    let job = registry.job(&name).unwrap();
    assert_eq!(job.run(json!({"numbers": []})).await, Ok(()));
    assert_eq!(
        job.run(json!({})).await,
        Err("numbers: there are none".to_owned())
    );
    assert!(
        registry
            .job(&FullName::new("room", "analysis", "Sum"))
            .is_none()
    );
    assert_eq!(registry.jobs().count(), 1);
    assert_eq!(registry.providers().count(), 1);

    let twice = registry.with_provider(provider).unwrap_err();
    let name = FullName::new("@internal", "filesystem", "FilesystemRead");
    assert_eq!(twice, AlreadyRegistered(name));
}
