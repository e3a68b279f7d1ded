//! A process is killed in the middle of its work, and another takes over.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use duroxide::runtime::RuntimeOptions;

use crate::{
    fixture::*,
    test_runtime::{TestRuntime, all_add_up, start_sums},
};

/// Tells this test, run in another process, that it is the process to kill.
const DATABASE: &str = "WAKELINE_TEST_TAKEOVER";
const NAME: &str = "takeover::another_process_finishes_the_work_of_a_killed_one";
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

/// Killed when the test ends, also when it fails.
struct ChildProcess(Child);

impl ChildProcess {
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

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_finishes_the_work_of_a_killed_one() {
    if let Ok(url) = env::var(DATABASE) {
        let provider = provider(&url, crate::fixture::options()).await;
        let _runtime = TestRuntime::start(&provider, options()).await;
        // The parent kills it, even when the parent fails.
        tokio::time::sleep(LONG).await;
        return;
    }
    let fixture = Fixture::new().await;
    let provider = fixture.direct().await;
    let child = ChildProcess::start(&fixture.database.url());
    start_sums(&provider, 0..MANY).await;
    // In the middle: some instances have begun, and something is leased.
    until("it is at work", async || {
        let held = "SELECT (SELECT count(*) FROM @schema@.mailbox WHERE token IS NOT NULL)
             + (SELECT count(*) FROM @schema@.activity WHERE token IS NOT NULL)";
        let begun = "SELECT count(*) FROM @schema@.instance";
        fixture.number(begun).await > 5 && fixture.number(held).await > 0
    })
    .await;
    drop(child);
    let done = "SELECT count(*) FROM @schema@.execution WHERE status <> 'Running'";
    let done = fixture.number(done).await;
    assert!(done < i64::try_from(MANY).expect("few"), "it was too fast");
    let runtime = TestRuntime::start(&provider, options()).await;
    all_add_up(&provider, MANY, Duration::from_secs(90)).await;
    runtime.end().await;
}
