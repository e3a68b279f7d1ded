//! The net under the wakes: what has become ready, asked for all schemas in one statement.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::Type;
use wakeline_bus::{DueWake, Recheck};
use wakeline_store::{
    Error,
    postgres::{Session, explain, quoted},
};
use wakeline_wake::{Engine, WaitKey, WaitedKey, Wake};

use super::Parameter;
use crate::topic::{DOOR, INSTANCE, ORCHESTRATION, OWNER, SESSION_TASK, TASK};

/// Asks, in one statement for all schemas, what has become ready.
pub(crate) struct Fallback {
    pub(crate) session: Session,
    pub(crate) engine: Arc<Engine>,
    /// Timers further away than this are found the next time.
    pub(crate) horizon: Duration,
}

/// What is waited for in one schema.
#[derive(Default)]
struct Waited {
    /// By kind and name of their topics.
    wait_keys: HashMap<(String, String), Vec<WaitKey>>,
    instances: Vec<String>,
}

impl Waited {
    fn wait_keys(&self, kind: &str, name: &str) -> impl Iterator<Item = &WaitKey> {
        let key = (kind.to_owned(), name.to_owned());
        self.wait_keys.get(&key).into_iter().flatten()
    }
}

fn by_schema(waiting: Vec<WaitedKey>) -> BTreeMap<String, Waited> {
    let mut schemas: BTreeMap<String, Waited> = BTreeMap::new();
    for wait_key in waiting {
        let parts: Vec<String> = wait_key.topic.parts().map(str::to_owned).collect();
        let Ok([schema, kind, name]) = <[String; 3]>::try_from(parts) else {
            continue;
        };
        let waited = schemas.entry(schema).or_default();
        if kind == INSTANCE {
            waited.instances.push(name.clone());
        }
        let wait_key = WaitKey::new(wait_key.topic, wait_key.group);
        waited
            .wait_keys
            .entry((kind, name))
            .or_default()
            .push(wait_key);
    }
    schemas
}

impl Fallback {
    /// All in one statement. When the database refuses it, each schema by itself: one that was dropped
    /// while somebody waits there must not keep the others from an answer.
    async fn ask_all(&self, waiting: Vec<WaitedKey>) -> Result<Vec<DueWake>, Error> {
        let schemas = by_schema(waiting);
        let refused = match self.ask(&schemas).await {
            Err(Error::Failed(reason)) if schemas.len() > 1 => reason,
            answered => return answered,
        };
        tracing::warn!(refused, "the fallback was refused; asking schema by schema");
        let mut dues = Vec::new();
        for (name, waited) in schemas {
            let alone = BTreeMap::from([(name, waited)]);
            match self.ask(&alone).await {
                Ok(found) => dues.extend(found),
                Err(Error::Failed(reason)) => tracing::warn!(reason, "a schema gave no answer"),
                Err(error) => return Err(error),
            }
        }
        Ok(dues)
    }

    async fn ask(&self, schemas: &BTreeMap<String, Waited>) -> Result<Vec<DueWake>, Error> {
        let names: Vec<&String> = schemas.keys().collect();
        let asked: Vec<String> = (0_i32..)
            .zip(schemas)
            .map(|(number, (name, waited))| {
                let schema = quoted(name);
                let mut asked = format!("SELECT {number} AS schema, d.* FROM {schema}.due() d");
                if !waited.instances.is_empty() {
                    asked.push_str(&format!(
                        " UNION ALL SELECT {number}, 3, i.id, NULL, 0 FROM {schema}.instance i
                         JOIN {schema}.execution x ON x.instance = i.id AND x.number = i.execution
                         WHERE i.id = ANY ($1) AND x.status IN ('Completed', 'Failed')"
                    ));
                }
                asked
            })
            .collect();
        let instances: Vec<&String> = schemas.values().flat_map(|w| &w.instances).collect();
        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        if !instances.is_empty() {
            parameters.push((&instances, Type::TEXT_ARRAY));
        }
        let client = self.session.client().await?;
        let rows = client
            .query_typed(&asked.join(" UNION ALL "), &parameters)
            .await
            .map_err(|error| explain(&error))?;
        let mut dues = Vec::new();
        for row in &rows {
            let schema: i32 = row.get(0);
            let waited = &schemas[names[usize::try_from(schema).unwrap_or(0)]];
            let (kind, name): (i32, Option<String>) = (row.get(1), row.get(2));
            let owner: Option<String> = row.get(3);
            let micros: Option<i64> = row.get(4);
            let name = name.unwrap_or_default();
            let after = Duration::from_micros(u64::try_from(micros.unwrap_or(0)).unwrap_or(0));
            let wait_keys: Vec<&WaitKey> = match (kind, &owner) {
                (0, _) => waited.wait_keys(ORCHESTRATION, "").collect(),
                (1, _) => waited
                    .wait_keys(TASK, &name)
                    .chain(waited.wait_keys(TASK, "*"))
                    .collect(),
                (2, Some(owner)) => waited.wait_keys(OWNER, owner).collect(),
                (2, None) => waited
                    .wait_keys(SESSION_TASK, &name)
                    .chain(waited.wait_keys(SESSION_TASK, "*"))
                    .collect(),
                _ => waited.wait_keys(INSTANCE, &name).collect(),
            };
            for wait_key in wait_keys.into_iter().cloned() {
                if after.is_zero() {
                    dues.push(DueWake {
                        key: wait_key,
                        after,
                    });
                } else if after <= self.horizon {
                    // A timer and not an alarm, which would go with those who wait now: they come
                    // back and, having been told of nothing, do not ask.
                    let wake = Wake::chain(wait_key.topic).in_group(wait_key.group);
                    self.engine.wake_after(wake, after);
                }
            }
        }
        Ok(dues)
    }
}

impl Recheck for Fallback {
    fn door(&self) -> &'static str {
        DOOR
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.ask_all(waiting).boxed()
    }
}
