//! `/api/v1/dlq`

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Params, Problem};

use super::refusals::{BadParameter, Unreachable};
use super::{
    browse::{MAX_LIMIT, filter, page, shown},
    messages::raw,
};
use crate::{browse::DeadLetter, id, service::Queue};

const DEFAULT_LIMIT: i64 = 100;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetterRow {
    id: Uuid,
    transaction_id: String,
    partition_id: Uuid,
    queue: String,
    partition: String,
    consumer_group: String,
    error_message: Option<String>,
    /// How often it failed.
    retry_count: i64,
    #[schema(value_type = Object)]
    data: Box<RawValue>,
    producer_sub: Option<String>,
    created_at: String,
    failed_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pagination {
    pub(super) limit: i64,
    pub(super) offset: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeadLetters {
    messages: Vec<DeadLetterRow>,
    pagination: Pagination,
    /// How many there are in all.
    total: i64,
}

fn row(door: &Queue, letter: DeadLetter) -> DeadLetterRow {
    DeadLetterRow {
        data: raw(door.shown(&letter.message)),
        id: letter.message.id,
        transaction_id: letter.message.transaction_id,
        partition_id: id::partition(letter.home.partition_number),
        queue: letter.home.queue,
        partition: letter.home.partition,
        consumer_group: letter.group,
        error_message: letter.error,
        retry_count: letter.failures,
        producer_sub: letter.message.producer_sub,
        created_at: shown(letter.message.created_us),
        failed_at: shown(letter.failed_us),
    }
}

/// Dead letters, those that failed last first.
#[utoipa::path(
    get, path = "/api/v1/dlq", tag = "queue",
    params(
        ("queue" = Option<String>, Query), ("partition" = Option<String>, Query),
        ("consumerGroup" = Option<String>, Query),
        ("from" = Option<String>, Query, description = "What failed at this time or later"),
        ("to" = Option<String>, Query, description = "What failed before this time"),
        ("limit" = Option<i64>, Query, description = "100 by default, 1000 at most"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = DeadLetters),
        BadParameter,
        Unreachable,
    )
)]
pub(super) async fn list(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<DeadLetters>, Problem> {
    let wanted = filter(&door, &params)?;
    let page = page(&params, DEFAULT_LIMIT, MAX_LIMIT)?;
    let found = door.browse().dead_letters(&wanted, page).await?;
    Ok(Json(DeadLetters {
        messages: found
            .rows
            .into_iter()
            .map(|letter| row(&door, letter))
            .collect(),
        pagination: Pagination {
            limit: page.limit,
            offset: page.offset,
        },
        total: found.total,
    }))
}
