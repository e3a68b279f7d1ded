//! Knowing that a server has taken in all held reads, also one that does not say how many it holds.

use std::time::Duration;

use tokio::time::Instant;

use super::HeldReads;
use crate::contestant::Contestant;
use crate::meter::Meter;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Of a core, over the time between two looks.
const AT_REST: f64 = 0.1;
/// In a row.
const LOOKS_AT_REST: usize = 2;
/// Where neither can be seen; and at the most, while reads that are held run out of time.
const WITHIN: Duration = Duration::from_secs(12);
const UNSEEN: Duration = Duration::from_secs(3);

/// Returns when the server says that it holds `wanted`, or its process has nothing to do.
pub(crate) async fn until_at_rest(
    server: &Contestant,
    meter: &Meter,
    held: &HeldReads,
    wanted: usize,
) -> anyhow::Result<()> {
    let client = server.client()?;
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
        let waiting = client.waiting().await.ok();
        let holds_all = waiting.is_some_and(|waiting| waiting as usize >= wanted);
        let rests = share.map_or(start.elapsed() > UNSEEN, |share| share < AT_REST);
        if held.all_sent() && holds_all {
            return Ok(());
        }
        looks = if held.all_sent() && rests {
            looks + 1
        } else {
            0
        };
    }
    Ok(())
}
