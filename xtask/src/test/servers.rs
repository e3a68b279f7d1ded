//! The servers that the tests share, and the directory for the files that tests make. A test that
//! stops or breaks a server starts its own.

use std::env;
use std::process::Command;

use anyhow::Result;
use wakeline_testbed::{Redis, SharedPostgres};

use super::scratch::Scratch;

const POSTGRES: &str = "WAKELINE_TEST_POSTGRES";
const REDIS: &str = "WAKELINE_TEST_REDIS";

pub(crate) struct Servers {
    postgres_url: String,
    redis_url: String,
    /// Dropped at the end; `None` for a server that the environment names.
    _started: (Option<SharedPostgres>, Option<Redis>),
    scratch: Scratch,
}

impl Servers {
    pub(crate) fn start() -> Result<Servers> {
        let (postgres_url, postgres) = match given(POSTGRES) {
            Some(url) => (url, None),
            None => {
                let postgres = SharedPostgres::start()?;
                (postgres.url(), Some(postgres))
            }
        };
        let (redis_url, redis) = match given(REDIS) {
            Some(url) => (url, None),
            None => {
                let redis = Redis::start()?;
                (redis.url(), Some(redis))
            }
        };
        let scratch = Scratch::new()?;
        Ok(Servers {
            postgres_url,
            redis_url,
            _started: (postgres, redis),
            scratch,
        })
    }

    pub(crate) fn pass_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env(POSTGRES, &self.postgres_url)
            .env(REDIS, &self.redis_url)
            .env("TMPDIR", &self.scratch.path)
    }
}

fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|url| !url.is_empty())
}
