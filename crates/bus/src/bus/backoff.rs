//! The pauses between attempts to reach the bus.

use std::time::Duration;

use tokio::time::sleep;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Each pause is twice the one before. With jitter, so that nodes do not come together.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    pub(super) fn reset(&mut self) {
        self.0 = FIRST_PAUSE;
    }

    pub(super) async fn pause(&mut self) {
        sleep(self.0.mul_f64(rand::random_range(0.75..1.25))).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
