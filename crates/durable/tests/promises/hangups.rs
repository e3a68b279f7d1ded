//! A runtime that drops its call while the write commits: what is committed wakes all the same.

use duroxide::providers::Provider;
use tokio_postgres::Client;

use crate::ground::*;

/// Holds up every write to mailboxes.
struct Blocked {
    locker: Client,
}

impl Blocked {
    async fn mailboxes(ground: &Ground) -> Self {
        let locker = ground.client().await;
        let lock = format!("BEGIN; LOCK TABLE {SCHEMA}.mailbox IN EXCLUSIVE MODE");
        locker.batch_execute(&lock).await.expect("it is free");
        Self { locker }
    }

    /// Drops each call while its write, a call of the SQL function `function`, waits for the lock.
    /// Other statements wait for it too: a fetch that a late wake has made look again is no write.
    async fn drop_calls(
        self,
        function: &str,
        calls: Vec<impl Future<Output = ()> + Send + 'static>,
    ) {
        let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
        let waiting = format!(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE NOT granted AND relation = '{SCHEMA}.mailbox'::regclass
                 AND strpos(query, '.{function}(') > 0"
        );
        until("a write waits", async || {
            // A transaction sees the activity as it was when it first asked.
            let forget = self.locker.batch_execute("SELECT pg_stat_clear_snapshot()");
            forget.await.expect("it answers");
            let row = self.locker.query_one(&waiting, &[]).await;
            row.expect("it answers").get::<_, i64>(0) > 0
        })
        .await;
        for call in calls {
            call.abort();
            let ended = call.await;
            assert!(ended.is_err_and(|error| error.is_cancelled()));
        }
        self.locker.batch_execute("COMMIT").await.expect("released");
    }
}

/// Those that come while the first is blocked share a statement, whose wakes are told together.
#[tokio::test]
async fn what_was_sent_by_callers_that_have_gone_wakes() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let other = ground.other().await;
    ground.settle(&provider).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(ground.parked(&provider, fetch(&provider, LONG)).await);
    }
    let blocked = Blocked::mailboxes(&ground).await;
    let calls = ["a", "b", "c", "d"].map(|name| {
        let other = other.clone();
        async move { enqueue(&other, start(name)).await }
    });
    blocked.drop_calls("step", calls.into()).await;
    let mut came = Vec::new();
    for one in waiting {
        came.push(one.await.expect("it is woken").0.instance);
    }
    came.sort();
    assert_eq!(came, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn what_was_given_back_by_a_caller_that_has_gone_wakes() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let other = ground.other().await;
    ground.settle(&provider).await;
    enqueue(&other, start("a")).await;
    let (_, token, _) = fetch_now(&other).await.expect("it was sent");
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    let blocked = Blocked::mailboxes(&ground).await;
    let given_back = async move {
        let given = other.abandon_orchestration_item(&token, None, true).await;
        given.expect("it is held");
    };
    blocked
        .drop_calls("give_back_instance", vec![given_back])
        .await;
    assert_eq!(waiting.await.expect("it is woken").0.instance, "a");
}
