//! A process is killed in the middle of its work, and another takes over.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use duroxide::runtime::RuntimeOptions;

use crate::{
    crew::{Crew, all_add_up, start_sums},
    ground::*,
};

/// Says to this very test, run in another process, that it is the one that is killed.
const DATABASE: &str = "WAKELINE_TEST_TAKEOVER";
const NAME: &str = "takeover::a_process_that_is_killed";
const MANY: usize = 60;

fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_secs(3),
        orchestrator_lock_renewal_buffer: Duration::from_secs(1),
        worker_lock_timeout: Duration::from_secs(3),
        worker_lock_renewal_buffer: Duration::from_secs(1),
        ..RuntimeOptions::default()
    }
}

/// Killed with the test, should it fail.
struct Killed(Child);

impl Killed {
    fn start(url: &str) -> Self {
        let program = env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(DATABASE, url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("it starts"))
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed() {
    if let Ok(url) = env::var(DATABASE) {
        let provider = provider(&url, crate::ground::options()).await;
        let _crew = Crew::start(&provider, options()).await;
        // Until it is killed; its parent does so even when it fails.
        tokio::time::sleep(LONG).await;
        return;
    }
    let ground = Ground::new().await;
    let provider = ground.other().await;
    let child = Killed::start(&ground.database.url());
    start_sums(&provider, MANY).await;
    // In the middle: some have begun, and something is held.
    until("it is at work", async || {
        let held = "SELECT (SELECT count(*) FROM @schema@.mailbox WHERE token IS NOT NULL)
             + (SELECT count(*) FROM @schema@.task WHERE token IS NOT NULL)";
        let begun = "SELECT count(*) FROM @schema@.instance";
        ground.number(begun).await > 5 && ground.number(held).await > 0
    })
    .await;
    drop(child);
    let done = "SELECT count(*) FROM @schema@.execution WHERE status <> 'Running'";
    let done = ground.number(done).await;
    assert!(done < i64::try_from(MANY).expect("few"), "it was too fast");
    let crew = Crew::start(&provider, options()).await;
    all_add_up(&provider, MANY, Duration::from_secs(90)).await;
    crew.end().await;
}
