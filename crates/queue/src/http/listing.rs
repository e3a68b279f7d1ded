//! What the reading routes share: pages, filters and times.

use wakeline_web::Problem;

use super::query::{named, number, query, time};
use crate::{
    browse::{MessageAddress, MessageFilter, Page, QUEUE_MODE, QueueFilter},
    id, name,
    service::Queue,
};

/// Rows of a page at most.
pub(super) const MAX_LIMIT: i64 = 1_000;
/// Queues, groups or partitions in an answer that clients do not page.
pub(super) const MAX_ROWS: i64 = 10_000;
const MAX_OFFSET: i64 = 1_000_000_000;

macro_rules! page_query {
    ($(#[$meta:meta])* $query:ident { $(#[$limit_meta:meta])* limit: $most:expr }) => {
        query! {
            $(#[$meta])*
            struct $query(limits) {
                $(#[$limit_meta])*
                limit "limit": i64 = number(0..=$most),
                offset "offset": i64 = number(0..=MAX_OFFSET),
            }
        }

        impl $query {
            /// The page that the query names, with `limit` rows by default.
            pub(super) fn page(&self, limit: i64) -> Page {
                Page {
                    limit: self.limit.unwrap_or(limit),
                    offset: self.offset.unwrap_or_default(),
                }
            }
        }
    };
}

page_query! {
    /// A page of a list.
    PageQuery {
        /// 1000 at most.
        limit: MAX_LIMIT
    }
}

page_query! {
    /// A page of a list of queues or partitions.
    LongPageQuery {
        /// 10000 at most.
        limit: MAX_ROWS
    }
}

query! {
    /// Which queues.
    struct QueueQuery(limits) {
        queue "queue": String = named(limits),
        namespace "namespace": String = named(limits),
        /// The same as `namespace`.
        ns "ns": String = named(limits),
        task "task": String = named(limits),
    }
}

impl QueueQuery {
    pub(super) fn filter(self) -> QueueFilter {
        QueueFilter {
            name: self.queue,
            namespace: self.namespace.or(self.ns),
            task: self.task,
        }
    }
}

query! {
    /// Which messages. The times are those of the push, or of the failure of a dead letter.
    struct MessageQuery(limits) {
        queue "queue": String = named(limits),
        partition "partition": String = named(limits),
        namespace "namespace": String = named(limits),
        /// The same as `namespace`.
        ns "ns": String = named(limits),
        task "task": String = named(limits),
        /// Dead letters of this group only.
        consumer_group "consumerGroup": String = named(limits),
        /// From this time on, such as `2026-01-31T12:00:00Z`.
        #[param(value_type = Option<String>)]
        from_us "from": i64 = time,
        /// Before this time.
        #[param(value_type = Option<String>)]
        to_us "to": i64 = time,
    }
}

impl MessageQuery {
    pub(super) fn filter(self) -> MessageFilter {
        MessageFilter {
            queue: self.queue,
            partition: self.partition,
            namespace: self.namespace.or(self.ns),
            task: self.task,
            group: self.consumer_group,
            from_us: self.from_us,
            to_us: self.to_us,
        }
    }
}

/// The address of a message. A UUID that cannot be a partition's id is accepted: there is no such
/// message.
pub(super) fn address(
    door: &Queue,
    partition_id: &str,
    transaction_id: &str,
) -> Result<MessageAddress, Problem> {
    let most = door.limits().max_transaction_id;
    name::check("transactionId", transaction_id, most)?;
    let uuid = partition_id
        .parse()
        .map_err(|_| Problem::invalid("partitionId", "not a UUID"))?;
    Ok(MessageAddress {
        partition: id::partition_number(&uuid).unwrap_or(-1),
        transaction_id: transaction_id.to_owned(),
    })
}

/// Whole seconds from a time until now.
pub(super) fn seconds_since(now_us: i64, then_us: Option<i64>) -> i64 {
    then_us.map_or(0, |then| ((now_us - then) / 1_000_000).max(0))
}

/// Whether a queue is consumed in queue mode, by groups ("bus"), or both.
pub(super) fn mode(groups: &[String]) -> serde_json::Value {
    let has_queue_mode = groups.iter().any(|group| group == QUEUE_MODE);
    let others = groups.len() - usize::from(has_queue_mode);
    let kind = match (has_queue_mode, others) {
        (true, 0) => "queue",
        (false, 0) => "none",
        (true, _) => "hybrid",
        (false, _) => "bus",
    };
    serde_json::json!({
        "type": kind, "hasQueueMode": has_queue_mode, "busGroupsCount": others
    })
}

pub(super) fn not_found() -> Problem {
    Problem::not_found("there is no such message in this partition").with_error("Message not found")
}
