//! Which partition a name is. A partition's number never changes and is never used again, so what
//! was once looked up is kept; one that was deleted is noticed when it cannot be locked.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use tokio_postgres::types::Type;
use wakeline_store::{Error, Postgres};

use crate::message::NewMessage;

/// Names that are kept; past it all are forgotten and looked up again.
const MAX_KEPT: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Places {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_queue: HashMap<String, HashMap<String, i64>>,
    count: usize,
}

impl Places {
    /// The partitions of these messages; those that do not exist are made.
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
                "resolve",
                "SELECT item, partition_id FROM wakeline.queue_resolve($1, $2)",
                &[(&queues, Type::TEXT_ARRAY), (&partitions, Type::TEXT_ARRAY)],
            )
            .await?;
        let mut found: HashMap<(&str, &str), i64> = HashMap::new();
        for row in &rows {
            let Some(at) = super::index(row, 0) else {
                continue;
            };
            found.insert(names[at], row.get(1));
        }
        for index in missing {
            let message = &messages[index];
            destinations[index] = found.get(&(&*message.queue, &*message.partition)).copied();
        }
        self.keep(found);
        Ok(destinations)
    }

    pub(super) fn forget(&self, queue: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gone) = kept.by_queue.remove(queue) {
            kept.count -= gone.len();
        }
    }

    fn look_up(&self, messages: &[NewMessage]) -> Vec<Option<i64>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        messages
            .iter()
            .map(|message| {
                let partitions = kept.by_queue.get(&message.queue)?;
                partitions.get(&message.partition).copied()
            })
            .collect()
    }

    fn keep(&self, found: HashMap<(&str, &str), i64>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.count + found.len() > MAX_KEPT {
            *kept = Kept::default();
        }
        for ((queue, partition), number) in found {
            let partitions = kept.by_queue.entry(queue.to_owned()).or_default();
            if partitions.insert(partition.to_owned(), number).is_none() {
                kept.count += 1;
            }
        }
    }
}
