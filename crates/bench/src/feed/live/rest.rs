//! Knowing that a server has done what it was given.

use std::time::Duration;

use tokio::time::Instant;

use crate::meter::Meter;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Of a core, over the time between two looks.
const AT_REST: f64 = 0.05;
/// In a row.
const LOOKS_AT_REST: usize = 3;
const WITHIN: Duration = Duration::from_secs(20);
/// Where its processor time cannot be seen.
const UNSEEN: Duration = Duration::from_secs(1);

/// Returns when its process has nothing to do, or has not come to rest for long.
pub(super) async fn until_at_rest(meter: &Meter) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut looks = 0;
    let mut last = meter.read().await?.cpu_seconds;
    let mut looked = Instant::now();
    while start.elapsed() < WITHIN && looks < LOOKS_AT_REST {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = meter.read().await?.cpu_seconds;
        let share = last
            .zip(now)
            .map(|(last, now)| (now - last) / looked.elapsed().as_secs_f64());
        (last, looked) = (now, Instant::now());
        let rests = share.map_or(start.elapsed() > UNSEEN, |share| share < AT_REST);
        looks = if rests { looks + 1 } else { 0 };
    }
    Ok(())
}
