//! Answers and marks in Redis, which ends them by itself.
//!
//! There is no subscription here: a waiter is woken by the bus, of which a node has one line for all
//! its waiters, on Redis too.
//!
//! Keys, behind the prefix: `answer` and `mark` for each question; `answers` and `marks` list the
//! hashes of a registration by the time of their end, and `registrations` those of a provider, so
//! that they can be found to be forgotten. The lists live as long as the longest in them. An `upload`
//! is a hash with the pieces of an answer that is too long for one value.

mod line;
mod pieces;
mod value;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures_util::FutureExt;
use redis::{Client, Cmd, Pipeline, Value, cmd, pipe};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use self::{
    line::Line,
    pieces::RedisPieces,
    value::{HEAD, asked, seen, unclear},
};
use super::{
    Content, GRACE, Glance, Kept, LONGEST, Look, MAX_IN_FLIGHT, Pieces, Results, Upload, receive,
};
use crate::{
    provider::{Key, Request},
    store::Step,
    topic, wakes,
};

/// Keys that are forgotten at once: Redis does nothing else meanwhile.
const FORGOTTEN_AT_ONCE: usize = 1_000;

const PUT: &str = concat!(
    include_str!("redis/free.lua"),
    include_str!("redis/put.lua")
);
const FORGET: &str = concat!(
    include_str!("redis/free.lua"),
    include_str!("redis/forget.lua")
);

#[derive(Clone)]
pub struct Redis {
    line: Arc<Line>,
    pieces: Arc<dyn Pieces>,
    prefix: Arc<str>,
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
        let line = Arc::new(Line::new(Client::open(url)?));
        Ok(Self {
            pieces: Arc::new(RedisPieces::new(line.clone(), prefix)),
            line,
            prefix: prefix.into(),
        })
    }

    /// What Redis has thrown out for want of memory, but for its head, is no answer.
    async fn leave_torn_out(
        &self,
        places: &HashMap<&Key, usize>,
        looks: &mut [Look],
        uploads: &HashMap<usize, String>,
    ) -> Result<(), Error> {
        let mut commands = pipe();
        let mut asked = Vec::with_capacity(uploads.len());
        for (key, at) in places {
            let Some(upload) = uploads.get(at) else {
                continue;
            };
            let keys = [self.one("answer", key), pieces::key(&self.prefix, upload)];
            let mut there = script(include_str!("redis/there.lua"), &keys);
            there.arg(upload);
            commands.add_command(there);
            asked.push(*at);
        }
        let there: Vec<bool> = self.line.read(&commands).await?;
        for (at, _) in asked.into_iter().zip(there).filter(|(_, there)| !there) {
            looks[at].answer = None;
        }
        Ok(())
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
            let values: Vec<Value> = self.line.read(&commands).await?;
            let mut values = values.into_iter();
            let mut looks = Vec::with_capacity(places.len());
            let mut uploads: HashMap<usize, String> = HashMap::new();
            while let (Some(left), Some(answer)) = (values.next(), values.next()) {
                let (look, upload) = seen(&left, answer, &self.pieces)?;
                uploads.extend(upload.map(|upload| (looks.len(), upload)));
                looks.push(look);
            }
            if !uploads.is_empty() {
                self.leave_torn_out(&places, &mut looks, &uploads).await?;
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
            let there: Vec<bool> = self.line.read(&commands).await?;
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

    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept> {
        let this = self.clone();
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*this.pieces, upload, vec![0; HEAD]).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let ttl = millis(ttl);
            let keys = [
                this.one("mark", &key),
                this.list("marks", key.provider, key.version),
                this.list("answers", key.provider, key.version),
                this.all("registrations", key.provider),
                this.one("answer", &key),
            ];
            let mut list = script(PUT, &keys);
            list.arg(&key.hash).arg(ttl).arg(key.version);
            list.arg(pieces::key(&this.prefix, "")).arg(millis(GRACE));
            let mut commands = pipe();
            commands.atomic();
            match came.content {
                Content::Whole(mut bytes) => {
                    value::head(&mut bytes, is_error, &came.etag);
                    let mut set = cmd("SET");
                    set.arg(&keys[4]).arg(&bytes[..]).arg("PX").arg(ttl);
                    drop(bytes);
                    // After the list, which frees the pieces of an earlier one.
                    commands.add_command(list).add_command(set);
                }
                Content::Pieces {
                    upload,
                    length,
                    count,
                } => {
                    let upload = upload.simple().to_string();
                    let answer = value::in_pieces(is_error, &came.etag, &upload, length);
                    list.arg(upload).arg(count).arg(answer);
                    commands.add_command(list);
                }
            }
            let done: Vec<Value> = this.line.write(&commands).await?;
            Ok(Kept::if_there(done.first() == Some(&Value::Int(1))))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: Request, ttl: Duration) -> Write<bool> {
        let this = self.clone();
        let run = async move {
            let Request { key, token, params } = request;
            let keys = [
                this.one("mark", &key),
                this.one("answer", &key),
                this.list("marks", key.provider, key.version),
                this.all("registrations", key.provider),
            ];
            let mut begin = script(include_str!("redis/begin.lua"), &keys);
            begin.arg(&token.as_bytes()[..]).arg(params);
            begin.arg(millis(ttl)).arg(&key.hash).arg(key.version);
            let (begun,): (bool,) = this.line.write(&alone(begin)).await?;
            Ok(begun)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let keys = [
                this.one("mark", &key),
                this.list("marks", key.provider, key.version),
            ];
            let mut end = script(include_str!("redis/end.lua"), &keys);
            let token = token.as_ref().map_or(&[][..], |token| token.as_bytes());
            end.arg(&key.hash).arg(token);
            let _: Vec<Value> = this.line.write(&alone(end)).await?;
            Ok(())
        };
        Write::new(topic::DOOR, run, |()| readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        async move {
            let keys = [self.list("marks", provider, version)];
            let mut list = script(include_str!("redis/in_flight.lua"), &keys);
            list.arg(format!("{}:", self.list("mark", provider, version)));
            list.arg(MAX_IN_FLIGHT);
            type Marks = Vec<(String, Vec<u8>)>;
            let (marks,): (Marks,) = self.line.read(&alone(list)).await?;
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
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let keys = [this.all("registrations", provider)];
            let mut forget = script(FORGET, &keys);
            forget.arg(version.map_or("+inf".to_owned(), |version| format!("({version}")));
            forget.arg(FORGOTTEN_AT_ONCE);
            for kind in ["answer", "answers", "mark", "marks"] {
                forget.arg(format!("{}:", this.all(kind, provider)));
            }
            forget.arg(pieces::key(&this.prefix, "")).arg(millis(GRACE));
            let forget = alone(forget);
            loop {
                let (is_more,): (bool,) = this.line.write(&forget).await?;
                if !is_more {
                    return Ok(());
                }
            }
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    /// Redis removes what is over by itself.
    fn sweep(&self) -> Write<Option<Duration>> {
        Write::new(topic::DOOR, async { Ok(None) }, wakes::nobody)
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
