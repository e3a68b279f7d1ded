//! The door in one process: its routes, its sockets and its waiters on both databases. The cases
//! are listed here once, so that a backend cannot forget one.

mod database;
mod door;
mod gated;
mod listening;
mod node;
#[path = "../socket/poller.rs"]
#[allow(
    dead_code,
    reason = "another suite's client, of which this one needs a part"
)]
mod poller;
mod provider;
mod reads;

macro_rules! conformance {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        mod sqlite { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(crate::database::Database::sqlite()).await;
            }
        )+ })+ }

        mod postgres { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(crate::database::Database::postgres().await).await;
            }
        )+ })+ }
    };
}

conformance! {
    reads:
        cache_hit,
        cache_miss_with_a_fast_provider,
        cache_miss_with_a_slow_provider,
        timeout,
        race_condition,
        abort,
        inflight_dedup,
        prefer_wait;
}
