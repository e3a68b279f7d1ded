//! Push: messages get their positions from their partition, in the order of commit.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};
use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    message::{NewMessage, Pushed},
    topic,
};

/// A partition that this push has touched.
struct Touched {
    id: i64,
    next_position: i64,
    is_new: bool,
    has_news: bool,
}

pub(super) fn push(
    connection: &Connection,
    messages: &[NewMessage],
    now: i64,
) -> Result<(Vec<Pushed>, Vec<Wake>)> {
    let mut partitions: HashMap<(&str, &str), Touched> = HashMap::new();
    let mut known = connection.prepare_cached(
        "SELECT id FROM queue_message WHERE partition_id = ?1 AND transaction_id = ?2",
    )?;
    let mut store = connection.prepare_cached(
        "INSERT INTO queue_message
             (partition_id, position, id, transaction_id, trace_id, payload, producer_sub, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut pushed = Vec::with_capacity(messages.len());
    for message in messages {
        let key = (message.queue.as_str(), message.partition.as_str());
        let partition = match partitions.get_mut(&key) {
            Some(partition) => partition,
            None => {
                let found = find_or_make(connection, key.0, key.1, now)?;
                partitions.entry(key).or_insert(found)
            }
        };
        let there: Option<Uuid> = known
            .query_row(params![partition.id, message.transaction_id], |row| {
                row.get(0)
            })
            .optional()?;
        if let Some(id) = there {
            pushed.push(Pushed {
                id,
                duplicate: true,
            });
            continue;
        }
        store.execute(params![
            partition.id,
            partition.next_position,
            message.id,
            message.transaction_id,
            message.trace_id,
            message.payload,
            message.producer_sub,
            now,
        ])?;
        partition.next_position += 1;
        partition.has_news = true;
        pushed.push(Pushed {
            id: message.id,
            duplicate: false,
        });
    }
    let wakes = make_ready(connection, &partitions, now)?;
    Ok((pushed, wakes))
}

fn find_or_make(connection: &Connection, queue: &str, name: &str, now: i64) -> Result<Touched> {
    let found = connection
        .prepare_cached(
            "SELECT p.id, p.next_position FROM queue_partition p JOIN queue q ON q.id = p.queue_id
             WHERE q.name = ?1 AND p.name = ?2",
        )?
        .query_row([queue, name], |row| {
            Ok(Touched {
                id: row.get(0)?,
                next_position: row.get(1)?,
                is_new: false,
                has_news: false,
            })
        })
        .optional()?;
    if let Some(found) = found {
        return Ok(found);
    }
    connection
        .prepare_cached(
            "INSERT INTO queue (public_id, name, created_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![Uuid::new_v4(), queue, now])?;
    let (queue_id, ordinal): (i64, i64) = connection
        .prepare_cached(
            "UPDATE queue SET partitions = partitions + 1 WHERE name = ?1 RETURNING id, partitions",
        )?
        .query_row([queue], |row| Ok((row.get(0)?, row.get(1)?)))?;
    connection
        .prepare_cached(
            "INSERT INTO queue_partition (public_id, queue_id, name, ordinal)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![Uuid::new_v4(), queue_id, name, ordinal])?;
    let id = connection.last_insert_rowid();
    Ok(Touched {
        id,
        next_position: 0,
        is_new: true,
        has_news: false,
    })
}

/// Moves the partitions on and makes the cursors ready that had caught up.
fn make_ready(
    connection: &Connection,
    partitions: &HashMap<(&str, &str), Touched>,
    now: i64,
) -> Result<Vec<Wake>> {
    let mut advance =
        connection.prepare_cached("UPDATE queue_partition SET next_position = ?2 WHERE id = ?1")?;
    let mut ready = connection.prepare_cached(
        "UPDATE queue_cursor SET ready_at = ?2 WHERE partition_id = ?1 AND ready_at IS NULL
         RETURNING (SELECT g.name FROM queue_group g WHERE g.id = group_id)",
    )?;
    let mut wakes = Vec::new();
    for ((queue, name), partition) in partitions.iter().filter(|(_, touched)| touched.has_news) {
        advance.execute(params![partition.id, partition.next_position])?;
        if partition.is_new {
            wakes.push(topic::ready(queue, name, None, 1));
            continue;
        }
        let mut rows = ready.query(params![partition.id, now])?;
        while let Some(row) = rows.next()? {
            let group: String = row.get(0)?;
            wakes.push(topic::ready(queue, name, Some(&group), 1));
        }
    }
    Ok(wakes)
}
