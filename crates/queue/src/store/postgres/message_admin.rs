//! Administration of single messages: each call is one function of the database.

use tokio_postgres::types::{ToSql, Type};
use wakeline_bus::Write;

use super::{PostgresStore, parameters};
use crate::{
    browse::{DeadLetterRetry, MessageAddress, NewTrace, RetryOutcome},
    id,
    store::{MessageAdmin, wakes},
};

impl MessageAdmin for PostgresStore {
    fn delete_message(&self, address: MessageAddress) -> Write<bool> {
        let (position, hash) = (address.position(), address.hash());
        self.write(
            "delete_message",
            "SELECT wakeline.queue_delete_message($1, $2, $3, $4) AS is_deleted",
            parameters![
                address.partition => INT8, address.transaction_id => TEXT, position => INT8,
                hash => UUID,
            ],
            |rows| rows[0].get("is_deleted"),
            |is_deleted| wakes::of_removal(*is_deleted),
        )
    }

    fn retry(&self, retry: DeadLetterRetry) -> Write<RetryOutcome> {
        let requested = retry.clone();
        self.write(
            "retry",
            "SELECT at, created_us, keeps_id FROM wakeline.queue_retry_dead_letter($1, $2, $3, $4)",
            parameters![
                retry.letter => INT8,
                retry.transaction_id.as_deref().map(id::hash) => UUID,
                retry.entry_with_id.clone() => TEXT,
                retry.entry_without_id.clone() => TEXT,
            ],
            move |rows| {
                let Some(row) = rows.first() else {
                    return RetryOutcome::Gone;
                };
                let Some(position) = row.get("at") else {
                    return RetryOutcome::NoGroup;
                };
                retry.done(row.get("created_us"), position, row.get("keeps_id"))
            },
            move |retried| wakes::of_retry(&requested, retried),
        )
    }

    fn move_to_dead_letters(
        &self,
        address: MessageAddress,
        group: Option<String>,
        error: String,
    ) -> Write<u64> {
        let (position, hash) = (address.position(), address.hash());
        self.write(
            "move_to_dead_letters",
            "SELECT wakeline.queue_move_to_dead_letters($1, $2, $3, $4, $5, $6) AS groups",
            parameters![
                address.partition => INT8, address.transaction_id => TEXT, position => INT8,
                hash => UUID, group => TEXT, error => TEXT,
            ],
            |rows| u64::try_from(rows[0].get::<_, i64>("groups")).unwrap_or_default(),
            |groups| wakes::of_removal(*groups > 0),
        )
    }

    fn add_trace(&self, trace: NewTrace) -> Write<()> {
        self.write(
            "trace",
            "SELECT wakeline.queue_add_trace($1, $2, $3, $4, $5, $6, $7, $8)",
            parameters![
                trace.id => UUID, trace.partition => INT8, trace.transaction_id => TEXT,
                trace.group => TEXT, trace.event => TEXT, trace.data => TEXT,
                trace.worker => TEXT, trace.names => TEXT_ARRAY,
            ],
            |_| (),
            wakes::none,
        )
    }
}
