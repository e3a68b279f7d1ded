//! The numbers of partitions by their names. A partition's number never changes and is never used
//! again, so it is cached once it was looked up. A deleted partition is noticed when it cannot be
//! locked.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use tokio_postgres::types::Type;
use wakeline_store::{Error, Postgres};

use crate::message::NewMessage;

/// Names that are cached; past it all are forgotten and looked up again.
const MAX_CACHED: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct PartitionIds {
    cache: Mutex<CachedIds>,
}

#[derive(Debug, Default)]
struct CachedIds {
    by_queue: HashMap<String, HashMap<String, i64>>,
    count: usize,
}

impl PartitionIds {
    /// The partitions of these messages; missing ones are created.
    pub(super) async fn resolve(
        &self,
        postgres: &Postgres,
        messages: &[NewMessage],
    ) -> Result<Vec<Option<i64>>, Error> {
        let mut destinations = self.look_up(messages);
        let missing: Vec<usize> = (0..messages.len())
            .filter(|index| destinations[*index].is_none())
            .collect();
        if missing.is_empty() {
            return Ok(destinations);
        }
        let names: HashSet<(&str, &str)> = missing
            .iter()
            .map(|index| (&*messages[*index].queue, &*messages[*index].partition))
            .collect();
        let names: Vec<(&str, &str)> = names.into_iter().collect();
        let queues: Vec<&str> = names.iter().map(|(queue, _)| *queue).collect();
        let partitions: Vec<&str> = names.iter().map(|(_, partition)| *partition).collect();
        let rows = postgres
            .query(
                "partitions",
                "SELECT item, partition_id FROM wakeline.queue_find_or_make_partitions($1, $2)",
                &[(&queues, Type::TEXT_ARRAY), (&partitions, Type::TEXT_ARRAY)],
            )
            .await?;
        let mut found: HashMap<(&str, &str), i64> = HashMap::new();
        for row in &rows {
            let Some(at) = super::item(row) else {
                continue;
            };
            found.insert(names[at], row.get("partition_id"));
        }
        for index in missing {
            let message = &messages[index];
            destinations[index] = found.get(&(&*message.queue, &*message.partition)).copied();
        }
        self.keep(found);
        Ok(destinations)
    }

    pub(super) fn forget(&self, queue: &str) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(deleted) = cache.by_queue.remove(queue) {
            cache.count -= deleted.len();
        }
    }

    fn look_up(&self, messages: &[NewMessage]) -> Vec<Option<i64>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        messages
            .iter()
            .map(|message| {
                let partitions = cache.by_queue.get(&message.queue)?;
                partitions.get(&message.partition).copied()
            })
            .collect()
    }

    fn keep(&self, found: HashMap<(&str, &str), i64>) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.count + found.len() > MAX_CACHED {
            *cache = CachedIds::default();
        }
        for ((queue, partition), number) in found {
            let partitions = cache.by_queue.entry(queue.to_owned()).or_default();
            if partitions.insert(partition.to_owned(), number).is_none() {
                cache.count += 1;
            }
        }
    }
}
