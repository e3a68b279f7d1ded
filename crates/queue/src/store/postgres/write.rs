//! What is written beside messages: cursors, marks, and the state of streams.

use tokio_postgres::{Client, Error, types::Type};
use uuid::Uuid;

use crate::book::{Book, Cursor};

/// Cursors as they are to be, column by column.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    partitions: Vec<i64>,
    groups: Vec<i64>,
    positions: Vec<i64>,
    ready_us: Vec<Option<i64>>,
    leases: Vec<Option<Uuid>>,
    leased_to: Vec<Option<i64>>,
    marked_to: Vec<i64>,
    consumed: Vec<i64>,
}

impl Cursors {
    pub(super) fn add(&mut self, key: (i64, i64), cursor: &Cursor, consumed: i64) {
        self.partitions.push(key.0);
        self.groups.push(key.1);
        self.positions.push(cursor.position);
        self.ready_us.push(cursor.ready_us);
        self.leases.push(cursor.lease);
        self.leased_to.push(cursor.leased_to);
        self.marked_to.push(cursor.marked_to);
        self.consumed.push(consumed);
    }

    pub(super) async fn write(&self, client: &Client) -> Result<(), Error> {
        if self.partitions.is_empty() {
            return Ok(());
        }
        client
            .query_typed(
                "SELECT wakeline.queue_move($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    (&self.partitions, Type::INT8_ARRAY),
                    (&self.groups, Type::INT8_ARRAY),
                    (&self.positions, Type::INT8_ARRAY),
                    (&self.ready_us, Type::INT8_ARRAY),
                    (&self.leases, Type::UUID_ARRAY),
                    (&self.leased_to, Type::INT8_ARRAY),
                    (&self.marked_to, Type::INT8_ARRAY),
                    (&self.consumed, Type::INT8_ARRAY),
                ],
            )
            .await
            .map(drop)
    }
}

pub(super) async fn move_cursors(client: &Client, book: &Book) -> Result<(), Error> {
    let mut cursors = Cursors::default();
    for (key, consumed) in &book.changes.moved {
        cursors.add(*key, &book.cursors[key], *consumed);
    }
    cursors.write(client).await
}

pub(super) async fn mark(client: &Client, book: &Book) -> Result<(), Error> {
    let changes = &book.changes;
    if changes.marked.is_empty() && changes.forgotten.is_empty() {
        return Ok(());
    }
    let marked = || changes.marked.iter();
    let partitions: Vec<i64> = marked().map(|(place, _)| place.0).collect();
    let groups: Vec<i64> = marked().map(|(place, _)| place.1).collect();
    let positions: Vec<i64> = marked().map(|(place, _)| place.2).collect();
    let failures: Vec<i32> = marked().map(|(_, new)| new.mark.failures).collect();
    let dead: Vec<bool> = marked().map(|(_, new)| new.mark.is_dead).collect();
    let kept: Vec<bool> = marked().map(|(_, new)| new.is_kept).collect();
    let transactions: Vec<&str> = marked().map(|(_, new)| &*new.transaction_id).collect();
    let errors: Vec<Option<&str>> = marked().map(|(_, new)| new.error.as_deref()).collect();
    let forgotten: Vec<(i64, i64)> = changes.forgotten.iter().copied().collect();
    let in_partitions: Vec<i64> = forgotten.iter().map(|key| key.0).collect();
    let of_groups: Vec<i64> = forgotten.iter().map(|key| key.1).collect();
    let passed: Vec<i64> = forgotten
        .iter()
        .map(|key| book.cursors[key].position)
        .collect();
    client
        .query_typed(
            "SELECT wakeline.queue_mark($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                (&book.now, Type::INT8),
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

/// One statement for all: what is sent behind it is the commit.
pub(super) async fn states(client: &Client, book: &Book) -> Result<(), Error> {
    let changes = &book.changes.states;
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
