//! What is written beside messages: cursors, flags, and the state of streams.

use tokio_postgres::{Client, Error, types::Type};
use uuid::Uuid;

use crate::apply::{BatchState, Cursor};

/// The new state of cursors, column by column.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    partitions: Vec<i64>,
    groups: Vec<i64>,
    positions: Vec<i64>,
    ready_us: Vec<Option<i64>>,
    leases: Vec<Option<Uuid>>,
    leased_to: Vec<Option<i64>>,
    flags_end: Vec<i64>,
    consumed: Vec<i64>,
    deliveries: Vec<Option<String>>,
}

impl Cursors {
    pub(super) fn add(&mut self, key: (i64, i64), cursor: &Cursor, consumed: i64) {
        self.partitions.push(key.0);
        self.groups.push(key.1);
        self.positions.push(cursor.position);
        self.ready_us.push(cursor.ready_us);
        self.leases.push(cursor.lease);
        self.leased_to.push(cursor.leased_to);
        self.flags_end.push(cursor.flags_end);
        self.consumed.push(consumed);
        self.deliveries
            .push(cursor.deliveries.text(cursor.position));
    }

    pub(super) async fn write(&self, client: &Client) -> Result<(), Error> {
        if self.partitions.is_empty() {
            return Ok(());
        }
        client
            .query_typed(
                "SELECT wakeline.queue_write_cursors($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &[
                    (&self.partitions, Type::INT8_ARRAY),
                    (&self.groups, Type::INT8_ARRAY),
                    (&self.positions, Type::INT8_ARRAY),
                    (&self.ready_us, Type::INT8_ARRAY),
                    (&self.leases, Type::UUID_ARRAY),
                    (&self.leased_to, Type::INT8_ARRAY),
                    (&self.flags_end, Type::INT8_ARRAY),
                    (&self.consumed, Type::INT8_ARRAY),
                    (&self.deliveries, Type::TEXT_ARRAY),
                ],
            )
            .await
            .map(drop)
    }
}

pub(super) async fn move_cursors(client: &Client, state: &BatchState) -> Result<(), Error> {
    let mut cursors = Cursors::default();
    for (key, consumed) in &state.changes.consumed_by_cursor {
        cursors.add(*key, &state.cursors[key], *consumed);
    }
    cursors.write(client).await
}

pub(super) async fn nacked_leases(client: &Client, state: &BatchState) -> Result<(), Error> {
    let nacked = &state.changes.nacked_leases;
    if nacked.is_empty() {
        return Ok(());
    }
    let partitions: Vec<i64> = nacked.keys().map(|key| key.0).collect();
    let groups: Vec<i64> = nacked.keys().map(|key| key.1).collect();
    let leases: Vec<Uuid> = nacked.values().copied().collect();
    client
        .query_typed(
            "SELECT wakeline.queue_write_nacked_leases($1, $2, $3)",
            &[
                (&partitions, Type::INT8_ARRAY),
                (&groups, Type::INT8_ARRAY),
                (&leases, Type::UUID_ARRAY),
            ],
        )
        .await
        .map(drop)
}

pub(super) async fn flag(client: &Client, state: &BatchState) -> Result<(), Error> {
    let changes = &state.changes;
    if changes.new_flags.is_empty() && changes.cursors_past_flags.is_empty() {
        return Ok(());
    }
    let new_flags = || changes.new_flags.iter();
    let partitions: Vec<i64> = new_flags().map(|(place, _)| place.0).collect();
    let groups: Vec<i64> = new_flags().map(|(place, _)| place.1).collect();
    let positions: Vec<i64> = new_flags().map(|(place, _)| place.2).collect();
    let failures: Vec<i32> = new_flags().map(|(_, new)| new.flag.failures).collect();
    let dead: Vec<bool> = new_flags().map(|(_, new)| new.flag.is_dead).collect();
    let kept: Vec<bool> = new_flags().map(|(_, new)| new.is_kept).collect();
    let transactions: Vec<&str> = new_flags().map(|(_, new)| &*new.transaction_id).collect();
    let errors: Vec<Option<&str>> = new_flags().map(|(_, new)| new.error.as_deref()).collect();
    let cursors_past_flags: Vec<(i64, i64)> = changes.cursors_past_flags.iter().copied().collect();
    let in_partitions: Vec<i64> = cursors_past_flags.iter().map(|key| key.0).collect();
    let of_groups: Vec<i64> = cursors_past_flags.iter().map(|key| key.1).collect();
    let passed: Vec<i64> = cursors_past_flags
        .iter()
        .map(|key| state.cursors[key].position)
        .collect();
    client
        .query_typed(
            "SELECT wakeline.queue_write_flags($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                (&state.now, Type::INT8),
                (&partitions, Type::INT8_ARRAY),
                (&groups, Type::INT8_ARRAY),
                (&positions, Type::INT8_ARRAY),
                (&failures, Type::INT4_ARRAY),
                (&dead, Type::BOOL_ARRAY),
                (&kept, Type::BOOL_ARRAY),
                (&transactions, Type::TEXT_ARRAY),
                (&errors, Type::TEXT_ARRAY),
                (&in_partitions, Type::INT8_ARRAY),
                (&of_groups, Type::INT8_ARRAY),
                (&passed, Type::INT8_ARRAY),
            ],
        )
        .await
        .map(drop)
}

/// One statement for all, because the commit is sent right after it.
pub(super) async fn states(client: &Client, state: &BatchState) -> Result<(), Error> {
    let changes = &state.changes.states;
    if changes.is_empty() {
        return Ok(());
    }
    let mut streams = Vec::new();
    let mut partitions = Vec::new();
    let mut keys = Vec::new();
    let mut values = Vec::new();
    for change in changes {
        for (key, value) in &change.values {
            streams.push(change.stream);
            partitions.push(change.partition);
            keys.push(&**key);
            values.push(value.as_deref());
        }
    }
    client
        .query_typed(
            "SELECT wakeline.queue_stream_write($1, $2, $3, $4)",
            &[
                (&streams, Type::UUID_ARRAY),
                (&partitions, Type::INT8_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&values, Type::TEXT_ARRAY),
            ],
        )
        .await
        .map(drop)
}
