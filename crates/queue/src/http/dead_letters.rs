//! `/api/v1/dlq`

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::Params;

use super::{
    Answer, Door,
    listing::{MessageQuery, PageQuery},
    messages::raw,
    refusals::BadParameter,
    short_time_text,
};
use crate::{
    browse::{DeadLetter, Page},
    id,
    service::Queue,
};

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
    /// How often the message failed.
    retry_count: i64,
    #[schema(value_type = Object)]
    data: Box<RawValue>,
    producer_sub: Option<String>,
    created_at: String,
    failed_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pagination {
    limit: i64,
    offset: i64,
}

impl From<Page> for Pagination {
    fn from(Page { limit, offset }: Page) -> Self {
        Self { limit, offset }
    }
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
        data: raw(door.payload(&letter.message)),
        id: letter.message.id,
        transaction_id: letter.message.transaction_id,
        partition_id: id::partition(letter.location.partition_number),
        queue: letter.location.queue,
        partition: letter.location.partition,
        consumer_group: letter.group,
        error_message: letter.error,
        retry_count: letter.failures,
        producer_sub: letter.message.producer_sub,
        created_at: short_time_text(letter.message.created_us),
        failed_at: short_time_text(letter.failed_us),
    }
}

/// Dead letters, the last failed first.
#[utoipa::path(
    get, path = "/api/v1/dlq", tag = "queue",
    params(MessageQuery, PageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = DeadLetters),
        BadParameter,
    )
)]
pub(super) async fn list(State(door): Door, params: Params) -> Answer<DeadLetters> {
    let wanted = MessageQuery::read(&params, door.limits())?.filter();
    let page = PageQuery::read(&params, door.limits())?.page(DEFAULT_LIMIT);
    let found = door.dead_letters(&wanted, page).await?;
    let letters = found.rows.into_iter();
    Ok(Json(DeadLetters {
        messages: letters.map(|letter| row(&door, letter)).collect(),
        pagination: page.into(),
        total: found.total,
    }))
}
