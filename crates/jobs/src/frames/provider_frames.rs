//! Frames that are not stored: requested from the provider, several at once, all of them or none.

use std::{collections::HashMap, pin::pin, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use serde_json::Value;
use tokio::time::{Duration, Instant};
use wakeline_web::Timing;

use super::{Frames, GroupAbandoned, no_frame, unprocessable};
use crate::{
    caller::Caller,
    error::Error,
    frame::Frame,
    problem,
    provider::{Answer, AnswerBody, Provider},
    room::Room,
};

/// The frames of a provider, and how long the read was held; without a timing all were stored
/// answers.
#[derive(Debug, Default)]
pub(super) struct ProviderFrames {
    pub(super) frames: HashMap<i64, Frame>,
    pub(super) timing: Option<Timing>,
    bytes: u64,
}

impl ProviderFrames {
    fn add(&mut self, number: i64, frame: Frame, timing: Option<Timing>, since: Instant) {
        self.bytes += frame.bytes().len() as u64;
        self.frames.insert(number, frame);
        let store = self.timing.map_or(Duration::ZERO, |timing| timing.store);
        if let Some(one) = timing {
            self.timing = Some(Timing {
                hold: since.elapsed(),
                store: store + one.store,
                ..one
            });
        }
    }
}

impl Frames {
    /// These frames of a mounted room, within `wait` in all.
    pub(super) async fn ask_all(
        &self,
        caller: Caller,
        room: &Room,
        numbers: Vec<i64>,
        wait: Duration,
    ) -> Result<ProviderFrames, Error> {
        if numbers.is_empty() {
            return Ok(ProviderFrames::default());
        }
        if numbers.len() > self.limits.asked {
            return Err(unprocessable(format!(
                "{} frames are the provider's, and {} of these are given at once (jobs.asked_frames); \
                 ask for fewer",
                numbers.len(),
                self.limits.asked
            )));
        }
        let provider = self.provider_reads.frames_provider(&room.name).await?;
        let Some(provider) = provider else {
            return Err(no_frame(&numbers, room.stored));
        };
        let since = Instant::now();
        let deadline = since + wait;
        let group = GroupAbandoned::default();
        let provider_reads = numbers.into_iter().map(|number| {
            let (provider, group) = (provider.clone(), group.clone());
            async move {
                let asked = self.ask_one(caller, provider, number, deadline, group);
                let (frame, timing) = asked.await?;
                Ok::<_, Error>((number, frame, timing))
            }
        });
        let answers =
            stream::iter(provider_reads).buffer_unordered(self.limits.asked_at_once.max(1));
        let kept = answers.try_fold(
            ProviderFrames::default(),
            |mut asked, (number, frame, timing)| async move {
                asked.add(number, frame, timing, since);
                if asked.bytes > self.limits.asked_bytes {
                    return Err(unprocessable(format!(
                        "these frames are more than {} bytes together (jobs.asked_bytes); ask for \
                         fewer",
                        self.limits.asked_bytes
                    )));
                }
                Ok(asked)
            },
        );
        // Set before the other reads are dropped, and only when they are dropped here: a caller
        // that hangs up drops all of this.
        let mut kept = pin!(kept);
        let ended = kept.as_mut().await;
        if ended.is_err() {
            group.abandon();
        }
        ended.map_err(|error| error.held_since(since))
    }

    async fn ask_one(
        &self,
        caller: Caller,
        provider: Provider,
        number: i64,
        deadline: Instant,
        group: GroupAbandoned,
    ) -> Result<(Frame, Option<Timing>), Error> {
        let name = provider.name.to_string();
        let wait = deadline.saturating_duration_since(Instant::now());
        let params = vec![("index".to_owned(), number.to_string())];
        let asked = self
            .provider_reads
            .ask(caller, provider, params, wait, group);
        let (answer, timing) = asked.await?;
        let is_error = answer.is_error;
        let bytes = self.read(&name, answer).await?;
        if is_error {
            return Err(told(bytes));
        }
        let frame = Frame::read(&bytes, self.limits.frame).map_err(|refusal| {
            failed(format!(
                "Provider '{name}' answered frame {number} with bytes that are no frame: {refusal}"
            ))
        })?;
        Ok((frame, timing))
    }

    async fn read(&self, provider: &str, answer: Answer) -> Result<Bytes, Error> {
        let limit = u64::from(self.limits.frame.bytes);
        let length = match &answer.body {
            AnswerBody::Bytes(bytes) => bytes.len() as u64,
            AnswerBody::File(_, length) => *length,
            AnswerBody::Chunks(chunked) => chunked.length(),
        };
        if length > limit {
            return Err(failed(format!(
                "Provider '{provider}' answered {length} bytes, and a frame has at most {limit} \
                 (jobs.frame_bytes)"
            )));
        }
        match answer.body {
            AnswerBody::Bytes(bytes) => Ok(bytes),
            AnswerBody::File(file, length) => {
                let read = tokio::task::spawn_blocking(move || from_file(&file, length));
                let read = read.await.map_err(std::io::Error::other).flatten();
                read.map_err(|error| unreadable(provider, &error))
            }
            AnswerBody::Chunks(chunked) => {
                let read = chunked.whole().await;
                read.map_err(|error| unreadable(provider, &error))
            }
        }
    }
}

/// Other requests read the same file at the same time: its own position is left alone.
fn from_file(file: &Arc<std::fs::File>, length: u64) -> std::io::Result<Bytes> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(length).map_err(std::io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.into())
}

fn unreadable(provider: &str, error: &dyn std::error::Error) -> Error {
    tracing::warn!(%error, provider, "a stored answer cannot be read");
    failed(format!(
        "The answer of provider '{provider}' is not readable any more; try again"
    ))
}

fn failed(detail: String) -> Error {
    Error::problem(&problem::PROVIDER_EXECUTION_FAILED, detail)
}

/// The problem that a provider has uploaded instead of an answer. A problem of an unknown kind is
/// passed on as it is.
fn told(document: Bytes) -> Error {
    let problem: Value = serde_json::from_slice(&document).unwrap_or_default();
    let name = problem["type"].as_str().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let kind = problem::ALL.iter().copied().find(|kind| kind.name == name);
    let status = problem["status"]
        .as_u64()
        .and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok())
        .filter(|status| status.is_client_error() || status.is_server_error());
    match (kind, status) {
        (None, Some(status)) => Error::ProviderProblem(status, document),
        (kind, _) => Error::problem(
            kind.unwrap_or(&problem::PROVIDER_EXECUTION_FAILED),
            problem["detail"]
                .as_str()
                .unwrap_or("The provider could not answer"),
        ),
    }
}
