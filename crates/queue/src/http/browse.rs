//! What the reading routes share: pages, filters and times.

use wakeline_web::{Params, Problem};

use crate::{
    browse::{Address, MessageFilter, Page, QUEUE_MODE},
    id, name,
    service::Queue,
};

/// Rows of a page at most.
pub(super) const MAX_LIMIT: i64 = 1_000;
/// Queues, groups or partitions of an answer that is not paged by the clients.
pub(super) const MAX_ROWS: i64 = 10_000;
const MAX_OFFSET: i64 = 1_000_000_000;
/// The year 3000, which is in every database's range.
pub(super) const FAR_US: i64 = 32_503_680_000_000_000;

pub(super) fn page(params: &Params, limit: i64, most: i64) -> Result<Page, Problem> {
    Ok(Page {
        limit: params.number("limit", &(0..=most))?.unwrap_or(limit),
        offset: params
            .number("offset", &(0..=MAX_OFFSET))?
            .unwrap_or_default(),
    })
}

/// A parameter that is a name.
pub(super) fn named(door: &Queue, params: &Params, field: &str) -> Result<Option<String>, Problem> {
    match params.text(field) {
        None => Ok(None),
        Some(text) => {
            name::check(field, text, door.limits().max_name)?;
            Ok(Some(text.to_owned()))
        }
    }
}

pub(super) fn time(params: &Params, field: &str) -> Result<Option<i64>, Problem> {
    match params.text(field) {
        None => Ok(None),
        Some(text) => super::time(field, text).map(|at| Some(at.clamp(0, FAR_US))),
    }
}

pub(super) fn filter(door: &Queue, params: &Params) -> Result<MessageFilter, Problem> {
    let namespace = named(door, params, "ns")?;
    Ok(MessageFilter {
        queue: named(door, params, "queue")?,
        partition: named(door, params, "partition")?,
        namespace: named(door, params, "namespace")?.or(namespace),
        task: named(door, params, "task")?,
        group: named(door, params, "consumerGroup")?,
        from_us: time(params, "from")?,
        to_us: time(params, "to")?,
    })
}

/// A partition's id and a transaction id as an address. One that cannot be a partition's id is no
/// mistake: there is no such message.
pub(super) fn address(
    door: &Queue,
    partition_id: &str,
    transaction_id: &str,
) -> Result<Address, Problem> {
    let most = door.limits().max_transaction_id;
    name::check("transactionId", transaction_id, most)?;
    let uuid = partition_id
        .parse()
        .map_err(|_| Problem::invalid("partitionId", "not a UUID"))?;
    Ok(Address {
        partition: id::partition_number(&uuid).unwrap_or(-1),
        transaction_id: transaction_id.to_owned(),
    })
}

/// Milliseconds, as Queen shows them in lists.
pub(super) fn shown(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}

/// Whole seconds from a time until now.
pub(super) fn seconds_since(now_us: i64, then_us: Option<i64>) -> i64 {
    then_us.map_or(0, |then| ((now_us - then) / 1_000_000).max(0))
}

/// How a queue is consumed, by the names of its groups.
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
