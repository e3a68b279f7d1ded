//! Chunks of large answers in Redis: a hash for each upload, which expires as one.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use redis::{Value, pipe};
use uuid::Uuid;

use super::{RedisConnection, millis};
use crate::{
    results::{CHUNK_GRACE, ChunkStore},
    store::StoreFuture,
};

pub(super) struct RedisChunks {
    connection: Arc<RedisConnection>,
    prefix: String,
}

impl RedisChunks {
    pub(super) fn new(connection: Arc<RedisConnection>, prefix: &str) -> Self {
        Self {
            connection,
            prefix: prefix.to_owned(),
        }
    }

    fn key(&self, upload: Uuid) -> String {
        key(&self.prefix, &upload.simple().to_string())
    }
}

/// The key of an upload.
pub(super) fn key(prefix: &str, upload: &str) -> String {
    format!("{prefix}upload:{upload}")
}

impl fmt::Debug for RedisChunks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RedisChunks")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl ChunkStore for RedisChunks {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> StoreFuture<'_, bool> {
        async move {
            let key = self.key(upload);
            let mut commands = pipe();
            commands.atomic();
            commands.cmd("HSET").arg(&key).arg(number).arg(&bytes[..]);
            commands.cmd("PEXPIRE").arg(&key).arg(millis(ttl));
            commands.cmd("HLEN").arg(&key);
            drop(bytes);
            let (_, _, count): (i64, i64, i64) = self.connection.write(&commands).await?;
            Ok(count == number + 1)
        }
        .boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> StoreFuture<'_, Option<Bytes>> {
        async move {
            let key = self.key(upload);
            let mut commands = pipe();
            commands.cmd("HGET").arg(&key).arg(number);
            commands.cmd("PTTL").arg(&key);
            let (bytes, left): (Option<Vec<u8>>, i64) = self.connection.read(&commands).await?;
            if bytes.is_some()
                && u64::try_from(left).is_ok_and(|left| left < millis(CHUNK_GRACE) / 2)
            {
                let mut keep = pipe();
                keep.cmd("PEXPIRE").arg(&key).arg(millis(CHUNK_GRACE));
                let _: Value = self.connection.read(&keep).await?;
            }
            Ok(bytes.map(Bytes::from))
        }
        .boxed()
    }

    fn remove(&self, upload: Uuid) -> StoreFuture<'_, bool> {
        async move {
            let mut unlink = pipe();
            unlink.cmd("UNLINK").arg(self.key(upload));
            let _: Value = self.connection.write(&unlink).await?;
            Ok(false)
        }
        .boxed()
    }
}
