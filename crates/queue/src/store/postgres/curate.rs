//! What people change: one call of a function each.

use tokio_postgres::types::Type;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::{
    browse::{NewTrace, Retried},
    id,
    store::{
        browse::{Address, Curate, Retry},
        wakes,
    },
    topic,
};

impl Curate for PostgresStore {
    fn delete_message(&self, address: Address) -> Write<bool> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "delete_message",
                    "SELECT wakeline.queue_delete_message($1, $2, $3, $4)",
                    &[
                        (&address.partition, Type::INT8),
                        (&address.transaction_id, Type::TEXT),
                        (&address.given(), Type::INT8),
                        (&address.hash(), Type::UUID),
                    ],
                )
                .await?;
            Ok(rows[0].get(0))
        };
        Write::new(topic::DOOR, run, |is_deleted| {
            wakes::of_removal(*is_deleted)
        })
    }

    fn retry(&self, retry: Retry) -> Write<Retried> {
        let postgres = self.postgres.clone();
        let asked = retry.clone();
        let run = async move {
            let hash = retry.given.as_deref().map(id::hash);
            let rows = postgres
                .query(
                    "retry",
                    "SELECT at, created_us, is_kept
                     FROM wakeline.queue_retry($1, $2, $3, $4)",
                    &[
                        (&retry.letter, Type::INT8),
                        (&hash, Type::UUID),
                        (&retry.kept, Type::TEXT),
                        (&retry.fresh, Type::TEXT),
                    ],
                )
                .await?;
            let Some(row) = rows.first() else {
                return Ok(Retried::Gone);
            };
            let Some(position) = row.get::<_, Option<i64>>(0) else {
                return Ok(Retried::NoGroup);
            };
            Ok(retry.done(row.get(1), position, row.get(2)))
        };
        Write::new(topic::DOOR, run, move |retried| {
            wakes::of_retry(&asked, retried)
        })
    }

    fn bury(&self, address: Address, group: Option<String>, error: String) -> Write<u64> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "bury",
                    "SELECT wakeline.queue_bury($1, $2, $3, $4, $5, $6)",
                    &[
                        (&address.partition, Type::INT8),
                        (&address.transaction_id, Type::TEXT),
                        (&address.given(), Type::INT8),
                        (&address.hash(), Type::UUID),
                        (&group, Type::TEXT),
                        (&error, Type::TEXT),
                    ],
                )
                .await?;
            Ok(u64::try_from(rows[0].get::<_, i64>(0)).unwrap_or_default())
        };
        Write::new(topic::DOOR, run, |groups| wakes::of_removal(*groups > 0))
    }

    fn add_trace(&self, trace: NewTrace) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            postgres
                .query(
                    "trace",
                    "SELECT wakeline.queue_add_trace($1, $2, $3, $4, $5, $6, $7, $8)",
                    &[
                        (&trace.id, Type::UUID),
                        (&trace.partition, Type::INT8),
                        (&trace.transaction_id, Type::TEXT),
                        (&trace.group, Type::TEXT),
                        (&trace.event, Type::TEXT),
                        (&trace.data, Type::TEXT),
                        (&trace.worker, Type::TEXT),
                        (&trace.names, Type::TEXT_ARRAY),
                    ],
                )
                .await
                .map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }
}
