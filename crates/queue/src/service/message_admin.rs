//! Administration of single messages, and what of a message is shown.

use futures_util::future::try_join_all;
use serde_json::{Map, Value};

use super::Queue;
use crate::{
    browse::{MessageAddress, NewTrace, QueueRow, RetryOutcome},
    error::Error,
    message::Message,
    options,
    topic::{self, QueueName},
};

impl Queue {
    /// The payload of a message, decrypted; nothing if the server does not have the key.
    #[must_use]
    pub fn payload(&self, message: &Message) -> Option<String> {
        let mut opened = message.clone();
        self.open(&mut opened).ok().map(|()| opened.payload)
    }

    /// The options by which a queue works; without a queue, the defaults.
    #[must_use]
    pub fn options_of(&self, queue: Option<&QueueRow>) -> Map<String, Value> {
        let stored = queue.and_then(|queue| serde_json::from_str(&queue.options).ok());
        let lease_ms = queue.and_then(|queue| queue.lease_ms);
        options::effective(&stored.unwrap_or_default(), lease_ms, self.limits.lease)
    }

    /// Deletes a message for all groups, and its dead letters. Whether there was one.
    pub async fn delete_message(&self, address: MessageAddress) -> Result<bool, Error> {
        Ok(self.store.delete_message(address).commit(&self.bus).await?)
    }

    /// Appends the dead letters of a message again, each for its group.
    pub async fn retry(&self, address: &MessageAddress) -> Result<Vec<RetryOutcome>, Error> {
        let letters = self.dead_letters_of(address).await?;
        // All begin before the first is awaited: a caller that hangs up has retried all or none.
        let retries: Vec<_> = letters
            .iter()
            .map(|letter| self.store.retry(letter.retry()).commit(&self.bus))
            .collect();
        Ok(try_join_all(retries).await?)
    }

    /// Makes a pending message a dead letter of all groups, or of the one named. Of how many;
    /// `None`: there is no such message.
    pub async fn move_to_dead_letters(
        &self,
        address: MessageAddress,
        group: Option<String>,
        error: String,
    ) -> Result<Option<u64>, Error> {
        if !self.message_exists(&address).await? {
            return Ok(None);
        }
        let write = self.store.move_to_dead_letters(address, group, error);
        Ok(Some(write.commit(&self.bus).await?))
    }

    /// Stores what a consumer recorded about a message. Whether there is such a message.
    pub async fn add_trace(
        &self,
        address: &MessageAddress,
        trace: NewTrace,
    ) -> Result<bool, Error> {
        let is_there = self.message_exists(address).await?;
        if is_there {
            self.store.add_trace(trace).commit(&self.bus).await?;
        }
        Ok(is_there)
    }

    /// Makes all pops that wait for the queue check the store again.
    pub async fn notify(&self, queue: &str, partition: Option<String>) -> Result<(), Error> {
        let known = self.queue(queue).await?;
        let names = QueueName {
            name: queue,
            namespace: known.as_ref().map_or("", |queue| &queue.namespace),
            task: known.as_ref().map_or("", |queue| &queue.task),
        };
        self.bus.wake(&topic::all(names, partition.as_slice()));
        Ok(())
    }
}
