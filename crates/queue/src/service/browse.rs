//! What people see and change.

use futures_util::future::try_join_all;
use serde_json::{Map, Value};

use super::Queue;
use crate::{
    browse::{Address, Browse, NewTrace, QueueRow, Retried},
    error::Error,
    message::Message,
    options,
    topic::{self, QueueName},
};

impl Queue {
    /// What people read.
    #[must_use]
    pub fn browse(&self) -> Browse<'_> {
        Browse::new(&*self.store)
    }

    /// Opens a message to be shown. One that cannot be opened is shown without its payload.
    #[must_use]
    pub fn shown(&self, message: &Message) -> Option<String> {
        let mut opened = message.clone();
        self.open(&mut opened).ok().map(|()| opened.payload)
    }

    /// The options by which a queue works; without one, those of a queue that nobody configured.
    #[must_use]
    pub fn options_of(&self, queue: Option<&QueueRow>) -> Map<String, Value> {
        let stored = queue.and_then(|queue| serde_json::from_str(&queue.options).ok());
        let lease_ms = queue.and_then(|queue| queue.lease_ms);
        options::effective(&stored.unwrap_or_default(), lease_ms, self.limits.lease)
    }

    /// Deletes a message for all groups, and its dead letters. Whether there was one.
    pub async fn delete_message(&self, address: Address) -> Result<bool, Error> {
        Ok(self.store.delete_message(address).commit(&self.bus).await?)
    }

    /// Appends the dead letters of a message again, each for the group that had it.
    pub async fn retry(&self, address: &Address) -> Result<Vec<Retried>, Error> {
        let letters = self.browse().dead_letters_of(address).await?;
        // All begin before the first is awaited: a caller that hangs up has retried all or none.
        let retries: Vec<_> = letters
            .iter()
            .map(|letter| self.store.retry(letter.retry()).commit(&self.bus))
            .collect();
        Ok(try_join_all(retries).await?)
    }

    /// Makes a message a dead letter of the groups (or of the one named) that have not consumed it
    /// and do not have it in their hands. Of how many; `None`: there is no such message.
    pub async fn bury(
        &self,
        address: Address,
        group: Option<String>,
        error: String,
    ) -> Result<Option<u64>, Error> {
        if !self.browse().message_exists(&address).await? {
            return Ok(None);
        }
        let write = self.store.bury(address, group, error);
        Ok(Some(write.commit(&self.bus).await?))
    }

    /// Writes down what a consumer tells of a message. Whether there is one.
    pub async fn add_trace(&self, address: &Address, trace: NewTrace) -> Result<bool, Error> {
        let is_there = self.browse().message_exists(address).await?;
        if is_there {
            self.store.add_trace(trace).commit(&self.bus).await?;
        }
        Ok(is_there)
    }

    /// Whoever waits for the queue looks again.
    pub async fn notify(&self, queue: &str, partition: Option<String>) -> Result<(), Error> {
        let known = self.browse().queue(queue).await?;
        let names = QueueName {
            name: queue,
            namespace: known.as_ref().map_or("", |queue| &queue.namespace),
            task: known.as_ref().map_or("", |queue| &queue.task),
        };
        self.bus.publish(&topic::all(names, partition.as_slice()));
        Ok(())
    }
}
