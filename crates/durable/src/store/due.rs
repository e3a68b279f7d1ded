//! The fallback under the wakes: one statement asks all schemas what can be fetched.

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
use crate::{
    bus::DOOR,
    provider::topics::{ACTIVITY, ANY, INSTANCE, SESSION_ACTIVITY},
};

pub(crate) struct Fallback {
    pub(crate) session: Session,
    pub(crate) engine: Arc<Engine>,
    /// Later timers are left to the next run.
    pub(crate) horizon: Duration,
}

/// The wait keys of one schema.
#[derive(Default)]
struct SchemaWaiters {
    /// By kind and name of their topics.
    wait_keys: HashMap<(String, String), Vec<WaitKey>>,
    instances: Vec<String>,
}

impl SchemaWaiters {
    fn wait_keys(&self, kind: &str, name: &str) -> impl Iterator<Item = &WaitKey> {
        let key = (kind.to_owned(), name.to_owned());
        self.wait_keys.get(&key).into_iter().flatten()
    }
}

fn by_schema(waiting: Vec<WaitedKey>) -> BTreeMap<String, SchemaWaiters> {
    let mut schemas: BTreeMap<String, SchemaWaiters> = BTreeMap::new();
    for wait_key in waiting {
        let parts: Vec<String> = wait_key.topic.parts().map(str::to_owned).collect();
        let Ok([schema, kind, name]) = <[String; 3]>::try_from(parts) else {
            continue;
        };
        let waiters = schemas.entry(schema).or_default();
        if kind == INSTANCE {
            waiters.instances.push(name.clone());
        }
        let wait_key = WaitKey::new(wait_key.topic, wait_key.group);
        waiters
            .wait_keys
            .entry((kind, name))
            .or_default()
            .push(wait_key);
    }
    schemas
}

impl Fallback {
    /// One statement for all schemas. If the database refuses it, one for each: a schema that was
    /// dropped while a caller waits in it must not keep the others from an answer.
    async fn query_all(&self, waiting: Vec<WaitedKey>) -> Result<Vec<DueWake>, Error> {
        let schemas = by_schema(waiting);
        let refused = match self.query(&schemas).await {
            Err(Error::Failed(reason)) if schemas.len() > 1 => reason,
            answered => return answered,
        };
        tracing::warn!(
            refused,
            "the database refused the fallback for all schemas; asking one by one"
        );
        let mut due = Vec::new();
        for schema in schemas {
            match self.query(&BTreeMap::from([schema])).await {
                Ok(found) => due.extend(found),
                Err(Error::Failed(reason)) => {
                    tracing::warn!(reason, "the database refused the fallback for a schema");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(due)
    }

    async fn query(
        &self,
        schemas: &BTreeMap<String, SchemaWaiters>,
    ) -> Result<Vec<DueWake>, Error> {
        let names: Vec<&String> = schemas.keys().collect();
        let statements: Vec<String> = (0_i32..)
            .zip(schemas)
            .map(|(number, (name, waiters))| {
                let schema = quoted(name);
                let mut statement = format!("SELECT {number} AS schema, d.* FROM {schema}.due() d");
                if !waiters.instances.is_empty() {
                    statement.push_str(&format!(
                        " UNION ALL SELECT {number}, '{INSTANCE}', i.id, 0 FROM {schema}.instance i
                         JOIN {schema}.execution x ON x.instance = i.id AND x.number = i.execution
                         WHERE i.id = ANY ($1) AND x.status IN ('Completed', 'Failed')"
                    ));
                }
                statement
            })
            .collect();
        let instances: Vec<&String> = schemas.values().flat_map(|w| &w.instances).collect();
        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        if !instances.is_empty() {
            parameters.push((&instances, Type::TEXT_ARRAY));
        }
        let client = self.session.client().await?;
        let rows = client
            .query_typed(&statements.join(" UNION ALL "), &parameters)
            .await
            .map_err(|error| explain(&error))?;
        let mut due = Vec::new();
        for row in &rows {
            let schema = usize::try_from(row.get::<_, i32>("schema")).unwrap_or(0);
            let waiters = &schemas[names[schema]];
            let (kind, name): (&str, &str) = (row.get("kind"), row.get("name"));
            let due_us: i64 = row.get("due_us");
            let after = Duration::from_micros(u64::try_from(due_us).unwrap_or(0));
            let accepts_any = matches!(kind, ACTIVITY | SESSION_ACTIVITY);
            let of_any = accepts_any.then(|| waiters.wait_keys(kind, ANY));
            let keys = waiters.wait_keys(kind, name);
            for key in keys.chain(of_any.into_iter().flatten()).cloned() {
                if after.is_zero() {
                    due.push(DueWake { key, after });
                } else if after <= self.horizon {
                    // A timer and not a recheck of the present waiters: when they return and wait
                    // again, no wake has been published, so they do not ask the database.
                    let wake = Wake::chain(key.topic).in_group(key.group);
                    self.engine.wake_after(wake, after);
                }
            }
        }
        Ok(due)
    }
}

impl Recheck for Fallback {
    fn door(&self) -> &'static str {
        DOOR
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.query_all(waiting).boxed()
    }
}
