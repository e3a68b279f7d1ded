//! What people see and change.

use super::Queue;
use crate::{
    browse::Retried,
    error::Error,
    message::Message,
    store::browse::{Address, letters, queues},
    topic::{self, QueueName},
};

impl Queue {
    /// Opens a message to be shown. One that cannot be opened is shown without its payload.
    #[must_use]
    pub fn shown(&self, message: &Message) -> Option<String> {
        let mut opened = message.clone();
        self.open(&mut opened).ok().map(|()| opened.payload)
    }

    /// Appends the dead letters of a message again, each for the group that had it.
    pub async fn retry(&self, address: &Address) -> Result<Vec<Retried>, Error> {
        let mut all = Vec::new();
        for letter in letters::of_message(&*self.store, address).await? {
            let retried = self.store.retry(letter.retry()).await?;
            if let Retried::Done { .. } = retried {
                let names = QueueName {
                    name: &letter.home.queue,
                    namespace: &letter.home.namespace,
                    task: &letter.home.task,
                };
                let ready = topic::ready(names, &letter.home.partition, Some(&letter.group), 1);
                self.bus.publish(&[ready]);
            }
            all.push(retried);
        }
        Ok(all)
    }

    /// Whoever waits for the queue looks again.
    pub async fn notify(&self, queue: &str, partition: Option<String>) -> Result<(), Error> {
        let known = queues::one(&*self.store, queue).await?;
        let names = QueueName {
            name: queue,
            namespace: known.as_ref().map_or("", |queue| &queue.namespace),
            task: known.as_ref().map_or("", |queue| &queue.task),
        };
        self.bus.publish(&topic::all(names, partition.as_slice()));
        Ok(())
    }
}
