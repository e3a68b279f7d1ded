//! A connection that delivers notifications.

use tokio::time::timeout;
use wakeline_store::postgres::MAX_NOTIFICATIONS;
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{HANGS, eventually};

/// Of a burst that is not read, the notifications that fit are kept; the end says that there were
/// more.
#[tokio::test]
async fn a_listener_that_does_not_read_is_cut_off() {
    let database = PostgresDatabase::new(&[]).await;
    let postgres = database.open(&[]).await;
    let mut line = postgres.connector().listen().await.unwrap();
    line.client.batch_execute("LISTEN test").await.unwrap();
    let burst = format!(
        "SELECT pg_notify('test', n::text) FROM generate_series(1, {}) n",
        MAX_NOTIFICATIONS + 1
    );
    postgres.query("test", &burst, &[]).await.unwrap();
    eventually("the connection is cut", async || line.client.is_closed()).await;
    let mut payloads = Vec::new();
    let reading = async {
        while let Some(notification) = line.notifications.recv().await {
            payloads.push(notification.payload().to_owned());
        }
    };
    timeout(HANGS, reading).await.expect("the line ends");
    let kept: Vec<String> = (1..=MAX_NOTIFICATIONS).map(|n| n.to_string()).collect();
    assert!(payloads == kept, "{} came", payloads.len());
}
