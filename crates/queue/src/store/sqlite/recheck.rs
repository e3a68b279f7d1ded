//! The fallback's question, in one pass over the places where someone waits.

use rusqlite::{Connection, Result};
use wakeline_bus::Due;
use wakeline_wake::{Place, Waiting};

use super::pop::{self, Seen};
use crate::{claim::PopRequest, topic};

/// One read transaction, so that it is one question: on an embedded database a statement per place
/// costs no round trip.
pub(super) fn recheck(connection: &Connection, waiting: &[Waiting], now: i64) -> Result<Vec<Due>> {
    let transaction = connection.unchecked_transaction()?;
    let mut dues = Vec::new();
    for at in waiting {
        let Some((queue, partition)) = topic::parts(&at.topic) else {
            continue;
        };
        let request = PopRequest {
            queue: queue.to_owned(),
            partition: partition.map(str::to_owned),
            group: at.lane.name().to_owned(),
            batch: 1,
            auto_ack: false,
        };
        let after = match pop::look(&transaction, &request, now)? {
            Seen::Maybe => std::time::Duration::ZERO,
            Seen::Nothing { again: Some(delay) } => delay,
            Seen::Nothing { again: None } => continue,
        };
        dues.push(Due {
            place: Place::new(at.topic.clone(), at.lane.clone()),
            after,
        });
    }
    Ok(dues)
}
