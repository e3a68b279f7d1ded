//! Answers and marks of providers on PostgreSQL. Each step is a statement by itself: there is no
//! flush to disk that a group could share, nobody waits behind a large answer of somebody else, and
//! two nodes that ask the same in another order do not wait for each other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};

use super::{PostgresStore, only};
use crate::{
    provider::{Answer, AnswerBody, Key, Request},
    results::{
        Content, GRACE, Glance, Kept, Look, MAX_IN_FLIGHT, Pieced, Pieces, REMOVED_AT_ONCE,
        Results, SWEPT_AT_ONCE, Upload, lasting, left, receive,
    },
    store::Step,
    topic, wakes,
};

impl Results for PostgresStore {
    fn is_store(&self) -> bool {
        true
    }

    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        async move {
            // What many ask for is sent once.
            let mut places: HashMap<&Key, usize> = HashMap::new();
            let (mut providers, mut versions, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
            for key in &keys {
                places.entry(key).or_insert_with(|| {
                    providers.push(key.provider);
                    versions.push(key.version);
                    hashes.push(key.hash.as_str());
                    hashes.len() - 1
                });
            }
            let rows = self
                .ask(
                    "look",
                    "SELECT * FROM wakeline.jobs_result_look($1, $2, $3)",
                    &[
                        (&providers, Type::UUID_ARRAY),
                        (&versions, Type::INT8_ARRAY),
                        (&hashes, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            let looks: Vec<Look> = rows.iter().map(|row| seen(row, 0, &self.pieces)).collect();
            Ok(keys.iter().map(|key| looks[places[key]].clone()).collect())
        }
        .boxed()
    }

    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>> {
        async move {
            let providers: Vec<Uuid> = at.iter().map(|glance| glance.provider).collect();
            let versions: Vec<i64> = at.iter().map(|glance| glance.version).collect();
            let hashes: Vec<Option<&str>> =
                at.iter().map(|glance| glance.hash.as_deref()).collect();
            let rows = self
                .ask(
                    "glance",
                    "SELECT wakeline.jobs_result_glance($1, $2, $3)",
                    &[
                        (&providers, Type::UUID_ARRAY),
                        (&versions, Type::INT8_ARRAY),
                        (&hashes, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        }
        .boxed()
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept> {
        let (postgres, pieces) = (self.postgres.clone(), self.pieces.clone());
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*pieces, upload, Vec::new()).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let etag = came.etag.to_string();
            let (body, upload, length) = match &came.content {
                Content::Whole(body) => (&body[..], None, None),
                Content::Pieces { upload, length, .. } => (&[][..], Some(*upload), Some(*length)),
            };
            let rows = postgres
                .query(
                    "put_result",
                    "SELECT wakeline.jobs_result_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                    &[
                        (&key.provider, Type::UUID),
                        (&key.version, Type::INT8),
                        (&key.hash, Type::TEXT),
                        (&is_error, Type::BOOL),
                        (&etag, Type::TEXT),
                        (&body, Type::BYTEA),
                        (&lasting(ttl), Type::INT8),
                        (&upload, Type::UUID),
                        (&length, Type::INT8),
                        (&lasting(GRACE), Type::INT8),
                    ],
                )
                .await?;
            Ok(Kept::if_there(only(&rows)?.get(0)))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: Request, ttl: Duration) -> Write<bool> {
        let postgres = self.postgres.clone();
        let run = async move {
            let Request { key, token, params } = request;
            let rows = postgres
                .query(
                    "begin_request",
                    "SELECT wakeline.jobs_mark_begin($1, $2, $3, $4, $5, $6)",
                    &[
                        (&key.provider, Type::UUID),
                        (&key.version, Type::INT8),
                        (&key.hash, Type::TEXT),
                        (&token, Type::UUID),
                        (&params, Type::TEXT),
                        (&lasting(ttl), Type::INT8),
                    ],
                )
                .await?;
            Ok(only(&rows)?.get(0))
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            postgres
                .query(
                    "end_request",
                    "DELETE FROM wakeline.jobs_mark WHERE provider_id = $1 AND version = $2
                    AND hash = $3 AND ($4 IS NULL OR token = $4)",
                    &[
                        (&key.provider, Type::UUID),
                        (&key.version, Type::INT8),
                        (&key.hash, Type::TEXT),
                        (&token, Type::UUID),
                    ],
                )
                .await?;
            Ok(())
        };
        Write::new(topic::DOOR, run, |()| readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        async move {
            let limit = i64::try_from(MAX_IN_FLIGHT).unwrap_or(i64::MAX);
            let rows = self
                .ask(
                    "in_flight",
                    "SELECT hash, token, params FROM wakeline.jobs_mark
                    WHERE provider_id = $1 AND version = $2 AND until > wakeline.jobs_now()
                    ORDER BY created_at, hash LIMIT $3",
                    &[
                        (&provider, Type::UUID),
                        (&version, Type::INT8),
                        (&limit, Type::INT8),
                    ],
                )
                .await?;
            let requests = rows.iter().map(|row| Request {
                key: Key {
                    provider,
                    version,
                    hash: row.get(0),
                },
                token: row.get(1),
                params: row.get(2),
            });
            Ok(requests.collect())
        }
        .boxed()
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            postgres
                .query(
                    "forget_results",
                    "WITH answers AS (
                    DELETE FROM wakeline.jobs_result
                    WHERE provider_id = $1 AND ($2 IS NULL OR version < $2) RETURNING upload_id
                ), freed AS (
                    UPDATE wakeline.jobs_upload u
                    SET expires_at = least(u.expires_at, wakeline.jobs_now() + $3)
                    FROM answers a WHERE u.id = a.upload_id
                )
                DELETE FROM wakeline.jobs_mark
                WHERE provider_id = $1 AND ($2 IS NULL OR version < $2)",
                    &[
                        (&provider, Type::UUID),
                        (&version, Type::INT8),
                        (&lasting(GRACE), Type::INT8),
                    ],
                )
                .await?;
            Ok(())
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "sweep_results",
                    "SELECT wakeline.jobs_result_sweep($1, $2)",
                    &[(&SWEPT_AT_ONCE, Type::INT8), (&REMOVED_AT_ONCE, Type::INT8)],
                )
                .await?;
            Ok(only(&rows)?.get::<_, Option<i64>>(0).map(left))
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }
}

pub(super) fn seen(row: &Row, from: usize, pieces: &Arc<dyn Pieces>) -> Look {
    let is_error: Option<bool> = row.get(from);
    let in_flight: Option<i64> = row.get(from + 3);
    Look {
        answer: is_error.map(|is_error| Answer {
            is_error,
            etag: row.get(from + 1),
            body: match row.get(from + 4) {
                None => AnswerBody::Bytes(Bytes::copy_from_slice(row.get(from + 2))),
                Some(upload) => AnswerBody::Pieces(Pieced::new(
                    pieces.clone(),
                    upload,
                    row.get::<_, i64>(from + 5).unsigned_abs(),
                )),
            },
        }),
        in_flight: in_flight.map(left),
    }
}
