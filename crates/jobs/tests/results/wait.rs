//! Waiting for what must come.

use std::time::Duration;

use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    timeout(PATIENCE, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("waited in vain for: {what}"));
}
