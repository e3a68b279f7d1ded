//! Holds a request, measured for the metrics and for `Server-Timing`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use wakeline_wake::{Cause, CheckResult, Engine, Hold, HoldError, HoldRefusal, WaitKey};

use crate::problem::Problem;

/// How a hold ended without an error.
#[derive(Debug)]
pub struct HoldOutcome<T> {
    /// `None`: the deadline came.
    pub value: Option<T>,
    pub timing: Timing,
    /// Which of the keys the last wake was for. If what was found belongs to another key, pass the
    /// wake on to that key.
    pub key: Option<usize>,
}

/// How long the request was held and its checks took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub hold: Duration,
    /// The cause of the last wake; without one the first check had the answer.
    pub woken_by: Option<Cause>,
    pub store: Duration,
}

impl Timing {
    /// `Server-Timing: hold;dur=…, wake;desc="…", db;dur=…`
    pub fn write(&self, headers: &mut HeaderMap) {
        let text = format!(
            "hold;dur={:.1}, wake;desc=\"{}\", db;dur={:.1}",
            self.hold.as_secs_f64() * 1e3,
            self.woken_by.map_or("check", Cause::name),
            self.store.as_secs_f64() * 1e3,
        );
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(HeaderName::from_static("server-timing"), value);
        }
    }
}

impl From<HoldRefusal> for Problem {
    fn from(refused: HoldRefusal) -> Self {
        let kind = match refused {
            HoldRefusal::Full | HoldRefusal::TopicFull => "too-many-waiters",
            HoldRefusal::Draining => "draining",
        };
        Self::unavailable(kind, refused.to_string())
    }
}

/// Holds until `check` finds something, `time` is over or the server drains. With no time to wait
/// it is a single check.
///
/// Dropping the future (the client hung up) removes the waiter at once; a wake that it had goes to
/// the next one.
pub async fn hold<T, E, F>(
    engine: &Arc<Engine>,
    door: &'static str,
    keys: &[WaitKey],
    time: Duration,
    mut check: impl FnMut() -> F,
) -> Result<HoldOutcome<T>, HoldError<E>>
where
    F: Future<Output = Result<CheckResult<T>, E>>,
{
    let end = Hold {
        engine,
        keys,
        recheck_keys: keys,
        time,
    }
    .until(|_| check())
    .await?;
    let timing = Timing {
        hold: end.began.elapsed(),
        woken_by: end.last_wake.map(|wake| wake.cause),
        store: end.in_checks,
    };
    if end.value.is_some() || !time.is_zero() {
        let woken_at = end.value.is_some().then_some(end.last_wake).flatten();
        record(door, &timing, woken_at.map(|wake| wake.at));
    }
    Ok(HoldOutcome {
        value: end.value,
        timing,
        key: end.last_wake.map(|wake| wake.key),
    })
}

/// For `/metrics`.
pub fn describe_metrics() {
    crate::unknown::describe_metrics();
    metrics::describe_histogram!(
        "wakeline_hold_seconds",
        "How long requests were held, by door"
    );
    metrics::describe_histogram!(
        "wakeline_wake_to_answer_seconds",
        "From the wake to the answer, by door"
    );
}

fn record(door: &'static str, timing: &Timing, woken_at: Option<Instant>) {
    metrics::histogram!("wakeline_hold_seconds", "door" => door).record(timing.hold.as_secs_f64());
    if let Some(woken_at) = woken_at {
        metrics::histogram!("wakeline_wake_to_answer_seconds", "door" => door)
            .record(woken_at.elapsed().as_secs_f64());
    }
}
