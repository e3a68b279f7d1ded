//! Answers and marks in Redis, which ends them by itself.
//!
//! There is no subscription here: a waiter is woken by the bus, of which a node has one line for all
//! its waiters, on Redis too.
//!
//! Keys, behind the prefix: `answer` and `mark` for each question; `answers` and `marks` list the
//! hashes of a registration by the time of their end, and `registrations` those of a provider, so
//! that they can be found to be forgotten. The lists live as long as the longest in them.

mod line;

use std::{collections::HashMap, fmt, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use redis::{Client, Cmd, Pipeline, Value, cmd, pipe};
use uuid::Uuid;
use wakeline_store::Error;

use self::line::Line;
use super::{Etag, Glance, Incoming, Kept, LONGEST, Look, MAX_IN_FLIGHT, Results, Upload};
use crate::{
    provider::{Answer, AnswerBody, Key, Request},
    store::Step,
};

/// Keys that are forgotten at once: Redis does nothing else meanwhile.
const FORGOTTEN_AT_ONCE: usize = 1_000;

/// Before an answer's bytes: whether it is a problem, and the tag.
const HEAD: usize = 1 + Etag::BYTES;
/// Before a mark's parameters: the token, and the time in microseconds as digits.
const TOKEN: usize = 16;
const TIME: usize = 16;

pub struct Redis {
    line: Line,
    prefix: String,
}

impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its address may hold a password.
        out.debug_struct("Redis")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Redis {
    /// `prefix` begins every key, so that others can use the same Redis. Connects when it is first
    /// asked something.
    pub fn new(url: &str, prefix: &str) -> Result<Self, redis::RedisError> {
        Ok(Self {
            line: Line::new(Client::open(url)?),
            prefix: prefix.to_owned(),
        })
    }

    fn one(&self, kind: &str, key: &Key) -> String {
        let list = self.list(kind, key.provider, key.version);
        format!("{list}:{}", key.hash)
    }

    fn list(&self, kind: &str, provider: Uuid, version: i64) -> String {
        format!("{}:{version}", self.all(kind, provider))
    }

    fn all(&self, kind: &str, provider: Uuid) -> String {
        format!("{}{kind}:{provider}", self.prefix)
    }
}

impl Results for Redis {
    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        async move {
            let mut places: HashMap<&Key, usize> = HashMap::new();
            let mut commands = pipe();
            for key in &keys {
                let next = places.len();
                places.entry(key).or_insert_with(|| {
                    // In this order: an answer that comes in between takes the mark with it, and
                    // must not look as if nobody had asked.
                    commands.cmd("PTTL").arg(self.one("mark", key));
                    commands.cmd("GET").arg(self.one("answer", key));
                    next
                });
            }
            if places.is_empty() {
                return Ok(Vec::new());
            }
            let values: Vec<Value> = self.line.ask(&commands).await?;
            let mut values = values.into_iter();
            let mut looks = Vec::with_capacity(places.len());
            while let (Some(left), Some(answer)) = (values.next(), values.next()) {
                looks.push(seen(&left, answer)?);
            }
            keys.iter()
                .map(|key| looks.get(places[key]).cloned().ok_or_else(unclear))
                .collect()
        }
        .boxed()
    }

    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>> {
        async move {
            if at.is_empty() {
                return Ok(Vec::new());
            }
            let mut commands = pipe();
            for glance in &at {
                match glance.key() {
                    // In this order, as when they are looked for.
                    Some(key) => {
                        commands.cmd("EXISTS").arg(self.one("mark", &key));
                        commands.cmd("EXISTS").arg(self.one("answer", &key));
                    }
                    // It ends with the last mark in it.
                    None => {
                        let list = self.list("marks", glance.provider, glance.version);
                        commands.cmd("EXISTS").arg(list);
                    }
                }
            }
            let there: Vec<bool> = self.line.ask(&commands).await?;
            let mut there = there.into_iter();
            let mut next = || there.next().ok_or_else(unclear);
            at.iter()
                .map(|glance| {
                    let is_marked = next()?;
                    match glance.hash {
                        Some(_) => Ok(next()? || !is_marked),
                        None => Ok(is_marked),
                    }
                })
                .collect()
        }
        .boxed()
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration) -> Step<'_, Kept> {
        async move {
            let is_error = upload.is_error;
            let (mut bytes, etag, _lent) = match Incoming::whole(upload, vec![0; HEAD]).await {
                Ok(whole) => whole,
                Err(kept) => return Ok(kept),
            };
            bytes[0] = u8::from(is_error);
            bytes[1..HEAD].copy_from_slice(etag.as_bytes());
            let ttl = millis(ttl);
            let mut set = cmd("SET");
            set.arg(self.one("answer", &key)).arg(&bytes[..]);
            set.arg("PX").arg(ttl);
            drop(bytes);
            let keys = [
                self.one("mark", &key),
                self.list("marks", key.provider, key.version),
                self.list("answers", key.provider, key.version),
                self.all("registrations", key.provider),
            ];
            let mut list = script(include_str!("redis/put.lua"), &keys);
            list.arg(&key.hash).arg(ttl).arg(key.version);
            let mut commands = pipe();
            commands.atomic().add_command(set).add_command(list);
            let _: Vec<Value> = self.line.ask(&commands).await?;
            Ok(Kept::Done)
        }
        .boxed()
    }

    fn begin(&self, request: Request, ttl: Duration) -> Step<'_, bool> {
        async move {
            let Request { key, token, params } = request;
            let keys = [
                self.one("mark", &key),
                self.one("answer", &key),
                self.list("marks", key.provider, key.version),
                self.all("registrations", key.provider),
            ];
            let mut begin = script(include_str!("redis/begin.lua"), &keys);
            begin.arg(&token.as_bytes()[..]).arg(params);
            begin.arg(millis(ttl)).arg(&key.hash).arg(key.version);
            let (begun,): (bool,) = self.line.ask(&alone(begin)).await?;
            Ok(begun)
        }
        .boxed()
    }

    fn end(&self, key: Key, token: Option<Uuid>) -> Step<'_, ()> {
        async move {
            let keys = [
                self.one("mark", &key),
                self.list("marks", key.provider, key.version),
            ];
            let mut end = script(include_str!("redis/end.lua"), &keys);
            let token = token.as_ref().map_or(&[][..], |token| token.as_bytes());
            end.arg(&key.hash).arg(token);
            let _: Vec<Value> = self.line.ask(&alone(end)).await?;
            Ok(())
        }
        .boxed()
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        async move {
            let keys = [self.list("marks", provider, version)];
            let mut list = script(include_str!("redis/in_flight.lua"), &keys);
            list.arg(format!("{}:", self.list("mark", provider, version)));
            list.arg(MAX_IN_FLIGHT);
            type Marks = Vec<(String, Vec<u8>)>;
            let (marks,): (Marks,) = self.line.ask(&alone(list)).await?;
            let mut requests = Vec::with_capacity(marks.len());
            for (hash, mark) in marks {
                let key = Key {
                    provider,
                    version,
                    hash,
                };
                requests.push(asked(key, &mark).ok_or_else(unclear)?);
            }
            requests.sort_by(|(one, a), (other, b)| (one, &a.key).cmp(&(other, &b.key)));
            Ok(requests.into_iter().map(|(_, request)| request).collect())
        }
        .boxed()
    }

    /// In slices, as those of another registration are not looked for any more.
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Step<'_, ()> {
        async move {
            let keys = [self.all("registrations", provider)];
            let mut forget = script(include_str!("redis/forget.lua"), &keys);
            forget.arg(version.map_or("+inf".to_owned(), |version| format!("({version}")));
            forget.arg(FORGOTTEN_AT_ONCE);
            for kind in ["answer", "answers", "mark", "marks"] {
                forget.arg(format!("{}:", self.all(kind, provider)));
            }
            let forget = alone(forget);
            loop {
                let (is_more,): (bool,) = self.line.ask(&forget).await?;
                if !is_more {
                    return Ok(());
                }
            }
        }
        .boxed()
    }

    /// Redis removes what is over by itself.
    fn sweep(&self) -> Step<'_, Option<Duration>> {
        async { Ok(None) }.boxed()
    }
}

/// With its text: a Redis that was started anew knows no script by its sum.
fn script(text: &str, keys: &[String]) -> Cmd {
    let mut eval = cmd("EVAL");
    eval.arg(text).arg(keys.len()).arg(keys);
    eval
}

fn alone(command: Cmd) -> Pipeline {
    let mut commands = pipe();
    commands.add_command(command);
    commands
}

/// Redis takes no time that is nothing.
fn millis(ttl: Duration) -> u64 {
    let millis = u64::try_from(ttl.min(LONGEST).as_millis());
    millis.unwrap_or(u64::MAX).max(1)
}

fn seen(left: &Value, answer: Value) -> Result<Look, Error> {
    let Value::Int(left) = left else {
        return Err(unclear());
    };
    Ok(Look {
        answer: match answer {
            Value::Nil => None,
            Value::BulkString(bytes) => Some(kept(bytes.into()).ok_or_else(unclear)?),
            _ => return Err(unclear()),
        },
        // Below zero there is none.
        in_flight: u64::try_from(*left).ok().map(Duration::from_millis),
    })
}

fn kept(bytes: Bytes) -> Option<Answer> {
    let (is_error, rest) = bytes.split_first()?;
    let etag = Etag::from_bytes(*rest.first_chunk()?);
    Some(Answer {
        is_error: *is_error != 0,
        etag: etag.to_string(),
        body: AnswerBody::Bytes(bytes.slice(HEAD..)),
    })
}

/// With the time at which it was asked.
fn asked(key: Key, mark: &[u8]) -> Option<(u64, Request)> {
    let (token, rest) = mark.split_at_checked(TOKEN)?;
    let (time, params) = rest.split_at_checked(TIME)?;
    let request = Request {
        key,
        token: Uuid::from_slice(token).ok()?,
        params: String::from_utf8(params.to_vec()).ok()?,
    };
    Some((str::from_utf8(time).ok()?.parse().ok()?, request))
}

/// Somebody else writes under the same prefix.
fn unclear() -> Error {
    Error::Failed("Redis: a value under this prefix is not one of ours".into())
}
