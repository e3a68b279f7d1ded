//! Bounded waits: a test that fails does not hang.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Nothing that a test waits for takes this long, on a busy machine either.
pub const PATIENCE: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_millis(3);

/// Waits until the condition holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(CHECK_EVERY).await;
    }
}

/// Waits until the future is done.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
