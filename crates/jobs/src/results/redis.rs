//! Answers and locks in Redis, which lets them expire by itself.
//!
//! There is no subscription here: waiters are woken by the bus, which has one connection per node
//! for all waiters, on Redis too.
//!
//! Keys, behind the prefix: `answer` and `lock` for each request; `answers` and `locks`
//! list the hashes of a registration by the time when they expire, and `registrations` the
//! registrations of a provider, so that they can be found to be forgotten. The lists live as long
//! as their longest member. An `upload` is a hash with the chunks of an answer that is too long for
//! one value.

mod chunks;
mod connection;
mod value;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures_util::FutureExt;
use redis::{Client, Cmd, Pipeline, Value, cmd, pipe};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use self::{
    chunks::RedisChunks,
    connection::RedisConnection,
    value::{HEAD, answer_state, not_ours, parse_request},
};
use super::{
    AnswerContent, AnswerState, CHUNK_GRACE, ChunkStore, LONGEST, MAX_IN_FLIGHT, ReadyCheck,
    ResultBackend, Upload, UploadOutcome, receive,
};
use crate::{
    provider::{AnswerKey, ProviderRequest},
    store::StoreFuture,
    topic, wakes,
};

/// Keys that are removed at once: Redis does nothing else meanwhile.
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
    connection: Arc<RedisConnection>,
    chunks: Arc<dyn ChunkStore>,
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
    /// `prefix` begins every key, so that other programs can use the same Redis. Connects at the
    /// first command.
    pub fn new(url: &str, prefix: &str) -> Result<Self, redis::RedisError> {
        let connection = Arc::new(RedisConnection::new(Client::open(url)?));
        Ok(Self {
            chunks: Arc::new(RedisChunks::new(connection.clone(), prefix)),
            connection,
            prefix: prefix.into(),
        })
    }

    /// An answer whose chunks Redis has evicted is not an answer, although its head is there.
    async fn drop_torn_answers(
        &self,
        places: &HashMap<&AnswerKey, usize>,
        looks: &mut [AnswerState],
        uploads: &HashMap<usize, String>,
    ) -> Result<(), Error> {
        let mut commands = pipe();
        let mut parse_request = Vec::with_capacity(uploads.len());
        for (key, at) in places {
            let Some(upload) = uploads.get(at) else {
                continue;
            };
            let keys = [self.one("answer", key), chunks::key(&self.prefix, upload)];
            let mut there = script(include_str!("redis/there.lua"), &keys);
            there.arg(upload);
            commands.add_command(there);
            parse_request.push(*at);
        }
        let there: Vec<bool> = self.connection.read(&commands).await?;
        for (at, _) in parse_request
            .into_iter()
            .zip(there)
            .filter(|(_, there)| !there)
        {
            looks[at].answer = None;
        }
        Ok(())
    }

    fn one(&self, kind: &str, key: &AnswerKey) -> String {
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

impl ResultBackend for Redis {
    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        async move {
            let mut places: HashMap<&AnswerKey, usize> = HashMap::new();
            let mut commands = pipe();
            for key in &keys {
                let next = places.len();
                places.entry(key).or_insert_with(|| {
                    // In this order: an answer that arrives in between releases the lock, and the
                    // request must not look as if it was not sent.
                    commands.cmd("PTTL").arg(self.one("lock", key));
                    commands.cmd("GET").arg(self.one("answer", key));
                    next
                });
            }
            if places.is_empty() {
                return Ok(Vec::new());
            }
            let values: Vec<Value> = self.connection.read(&commands).await?;
            let mut values = values.into_iter();
            let mut looks = Vec::with_capacity(places.len());
            let mut uploads: HashMap<usize, String> = HashMap::new();
            while let (Some(left), Some(answer)) = (values.next(), values.next()) {
                let (look, upload) = answer_state(&left, answer, &self.chunks)?;
                uploads.extend(upload.map(|upload| (looks.len(), upload)));
                looks.push(look);
            }
            if !uploads.is_empty() {
                self.drop_torn_answers(&places, &mut looks, &uploads)
                    .await?;
            }
            keys.iter()
                .map(|key| looks.get(places[key]).cloned().ok_or_else(not_ours))
                .collect()
        }
        .boxed()
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        async move {
            if at.is_empty() {
                return Ok(Vec::new());
            }
            let mut commands = pipe();
            for check in &at {
                match check.key() {
                    // In this order, as above.
                    Some(key) => {
                        commands.cmd("EXISTS").arg(self.one("lock", &key));
                        commands.cmd("EXISTS").arg(self.one("answer", &key));
                    }
                    // The list expires with the last lock in it.
                    None => {
                        let list = self.list("locks", check.provider, check.version);
                        commands.cmd("EXISTS").arg(list);
                    }
                }
            }
            let there: Vec<bool> = self.connection.read(&commands).await?;
            let mut there = there.into_iter();
            let mut next = || there.next().ok_or_else(not_ours);
            at.iter()
                .map(|check| {
                    let is_marked = next()?;
                    match check.hash {
                        Some(_) => Ok(next()? || !is_marked),
                        None => Ok(is_marked),
                    }
                })
                .collect()
        }
        .boxed()
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        let this = self.clone();
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*this.chunks, upload, vec![0; HEAD]).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let ttl = millis(ttl);
            let keys = [
                this.one("lock", &key),
                this.list("locks", key.provider, key.version),
                this.list("answers", key.provider, key.version),
                this.all("registrations", key.provider),
                this.one("answer", &key),
            ];
            let mut list = script(PUT, &keys);
            list.arg(&key.hash).arg(ttl).arg(key.version);
            list.arg(chunks::key(&this.prefix, ""))
                .arg(millis(CHUNK_GRACE));
            let mut commands = pipe();
            commands.atomic();
            match came.content {
                AnswerContent::Whole(mut bytes) => {
                    value::head(&mut bytes, is_error, &came.etag);
                    let mut set = cmd("SET");
                    set.arg(&keys[4]).arg(&bytes[..]).arg("PX").arg(ttl);
                    drop(bytes);
                    // After the script, which frees the chunks of an earlier answer.
                    commands.add_command(list).add_command(set);
                }
                AnswerContent::Chunks {
                    upload,
                    length,
                    count,
                } => {
                    let upload = upload.simple().to_string();
                    let answer = value::chunked_answer(is_error, &came.etag, &upload, length);
                    list.arg(upload).arg(count).arg(answer);
                    commands.add_command(list);
                }
            }
            let done: Vec<Value> = this.connection.write(&commands).await?;
            Ok(UploadOutcome::stored_if(
                done.first() == Some(&Value::Int(1)),
            ))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        let this = self.clone();
        let run = async move {
            let ProviderRequest { key, token, params } = request;
            let keys = [
                this.one("lock", &key),
                this.one("answer", &key),
                this.list("locks", key.provider, key.version),
                this.all("registrations", key.provider),
            ];
            let mut begin = script(include_str!("redis/begin.lua"), &keys);
            begin.arg(&token.as_bytes()[..]).arg(params);
            begin.arg(millis(ttl)).arg(&key.hash).arg(key.version);
            let (begun,): (bool,) = this.connection.write(&alone(begin)).await?;
            Ok(begun)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let keys = [
                this.one("lock", &key),
                this.list("locks", key.provider, key.version),
            ];
            let mut end = script(include_str!("redis/end.lua"), &keys);
            let token = token.as_ref().map_or(&[][..], |token| token.as_bytes());
            end.arg(&key.hash).arg(token);
            let _: Vec<Value> = this.connection.write(&alone(end)).await?;
            Ok(())
        };
        Write::new(topic::DOOR, run, |()| readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        async move {
            let keys = [self.list("locks", provider, version)];
            let mut list = script(include_str!("redis/in_flight.lua"), &keys);
            list.arg(format!("{}:", self.list("lock", provider, version)));
            list.arg(MAX_IN_FLIGHT);
            type Marks = Vec<(String, Vec<u8>)>;
            let (marks,): (Marks,) = self.connection.read(&alone(list)).await?;
            let mut requests = Vec::with_capacity(marks.len());
            for (hash, mark) in marks {
                let key = AnswerKey {
                    provider,
                    version,
                    hash,
                };
                requests.push(parse_request(key, &mark).ok_or_else(not_ours)?);
            }
            requests.sort_by(|(one, a), (other, b)| (one, &a.key).cmp(&(other, &b.key)));
            Ok(requests.into_iter().map(|(_, request)| request).collect())
        }
        .boxed()
    }

    /// In slices: no reader asks for an earlier registration any more.
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let keys = [this.all("registrations", provider)];
            let mut forget = script(FORGET, &keys);
            forget.arg(version.map_or("+inf".to_owned(), |version| format!("({version}")));
            forget.arg(FORGOTTEN_AT_ONCE);
            for kind in ["answer", "answers", "lock", "locks"] {
                forget.arg(format!("{}:", this.all(kind, provider)));
            }
            forget
                .arg(chunks::key(&this.prefix, ""))
                .arg(millis(CHUNK_GRACE));
            let forget = alone(forget);
            loop {
                let (is_more,): (bool,) = this.connection.write(&forget).await?;
                if !is_more {
                    return Ok(());
                }
            }
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    /// Redis removes what has expired by itself.
    fn sweep(&self) -> Write<Option<Duration>> {
        Write::new(topic::DOOR, async { Ok(None) }, wakes::nobody)
    }
}

/// With its text: a restarted Redis does not know the script by its hash.
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

/// Redis refuses a time of zero.
fn millis(ttl: Duration) -> u64 {
    let millis = u64::try_from(ttl.min(LONGEST).as_millis());
    millis.unwrap_or(u64::MAX).max(1)
}
