//! The time span of an answer, in steps, and the numbers of a step.

use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use crate::{
    browse::Span,
    counters::CounterRow,
    http::{
        query::{named, query, time},
        short_time_text,
    },
    service::Queue,
};

/// Steps of a time in an answer, about and at most.
const POINTS: i64 = 400;
const MAX_POINTS: i64 = 5_000;

query! {
    /// From when to when, and of which queue.
    struct RangeQuery(limits) {
        /// The start, such as `2026-01-31T12:00:00Z`.
        #[param(value_type = Option<String>)]
        from_us "from": i64 = time,
        /// The end; it is not within.
        #[param(value_type = Option<String>)]
        to_us "to": i64 = time,
        queue "queue": String = named(limits),
    }
}

/// A time, in steps, of one queue or of all.
#[derive(Debug)]
pub(in crate::http) struct Range {
    pub(in crate::http) from_us: i64,
    pub(in crate::http) to_us: i64,
    pub(in crate::http) bucket_us: i64,
    pub(in crate::http) queue: Option<String>,
}

impl Range {
    pub(in crate::http) const MINUTE: i64 = 60_000_000;
    pub(in crate::http) const HOUR: i64 = 60 * Self::MINUTE;
    pub(in crate::http) const DAY: i64 = 24 * Self::HOUR;

    /// The times that the query names; by default the last `length`.
    pub(in crate::http) async fn read(
        door: &Queue,
        params: &Params,
        length: i64,
    ) -> Result<Self, Problem> {
        let now = door.now_us().await?;
        let query = RangeQuery::read(params, door.limits())?;
        let to_us = query.to_us.unwrap_or(now);
        let from_us = query.from_us.unwrap_or((to_us - length).max(0));
        if from_us > to_us {
            return Err(Problem::invalid(
                "from",
                "after the end of the time asked for",
            ));
        }
        let steps = [1, 5, 15, 60, 6 * 60, 24 * 60].map(|minutes| minutes * Self::MINUTE);
        let fits = |step: &i64| (to_us - from_us) / step <= POINTS;
        Ok(Self {
            from_us,
            to_us,
            bucket_us: steps.into_iter().find(fits).unwrap_or(Self::DAY),
            queue: query.queue,
        })
    }

    /// An answer about this time: these members, and the time itself.
    pub(in crate::http) fn answer(&self, mut members: Value) -> Value {
        members["timeRange"] =
            json!({"from": short_time_text(self.from_us), "to": short_time_text(self.to_us)});
        members["bucketMinutes"] = (self.bucket_us / Self::MINUTE).into();
        members
    }

    pub(in crate::http) fn bucket_minutes(&self) -> i64 {
        self.bucket_us / Self::MINUTE
    }

    /// When its steps begin, or a refusal of `field` if they are too many.
    pub(in crate::http) fn buckets(
        &self,
        field: &str,
    ) -> Result<impl Iterator<Item = i64>, Problem> {
        let first = self.from_us / self.bucket_us;
        let last = self.to_us / self.bucket_us;
        if last - first > MAX_POINTS {
            return Err(Problem::invalid(
                field,
                format!("more than {MAX_POINTS} steps in the time asked for"),
            ));
        }
        let step = self.bucket_us;
        Ok((first..=last).map(move |at| at * step))
    }

    /// With the whole of its first step.
    pub(in crate::http) fn span(&self) -> Span {
        Span {
            from_us: self.from_us / self.bucket_us * self.bucket_us,
            to_us: self.to_us,
            bucket_us: self.bucket_us,
        }
    }

    pub(in crate::http) async fn series(
        &self,
        door: &Queue,
        by_queue: bool,
    ) -> Result<Vec<CounterRow>, Problem> {
        Ok(door.counts(self.span(), &self.queue, by_queue).await?)
    }

    pub(in crate::http) fn per_second(&self, count: i64) -> f64 {
        per_second(count, self.bucket_us)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is for reading")]
pub(in crate::http) fn per_second(count: i64, time_us: i64) -> f64 {
    count as f64 * 1e6 / time_us as f64
}

/// How long popped messages had waited, on average; nothing if none was popped.
pub(in crate::http) fn average_ms(count: &CounterRow) -> Option<i64> {
    (count.popped > 0).then(|| count.lag_us / count.popped / 1_000)
}

/// The longest wait of a popped message.
pub(in crate::http) fn most_ms(count: &CounterRow) -> Option<i64> {
    (count.popped > 0).then_some(count.max_lag_us / 1_000)
}

/// Two digits behind the point.
pub(in crate::http) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
