//! Commands that call a server, for trial and for scripts. They print JSON.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{json, value::RawValue};
use wakeline_client::{AckStatus, Client, PopRequest, PushItem};

#[derive(Debug, Args)]
struct Server {
    /// URL of the server.
    #[arg(long, env = "WAKELINE_URL", default_value = "http://127.0.0.1:6632")]
    url: String,
    /// Bearer token, if the server needs one.
    #[arg(long, env = "WAKELINE_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Server {
    fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.url, self.token.clone())?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Push {
    queue: String,
    /// JSON; anything else is sent as a string.
    payload: String,
    #[arg(long)]
    partition: Option<String>,
    /// A second push with the same id is a duplicate.
    #[arg(long)]
    transaction_id: Option<String>,
    #[command(flatten)]
    server: Server,
}

impl Push {
    pub(crate) async fn run(self) -> Result<()> {
        let payload = match RawValue::from_string(self.payload.clone()) {
            Ok(json) => json,
            Err(_) => serde_json::value::to_raw_value(&self.payload)?,
        };
        let mut item = PushItem::new(&self.queue, &payload)?;
        item.partition = self.partition;
        item.transaction_id = self.transaction_id;
        let pushed = self.server.client()?.push(&[item]).await?;
        let pushed = pushed
            .first()
            .context("the server answered without a result")?;
        let status = format!("{:?}", pushed.status).to_lowercase();
        println!(
            "{}",
            json!({"status": status, "messageId": pushed.message_id})
        );
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Pop {
    queue: String,
    #[arg(long)]
    partition: Option<String>,
    /// The consumer group.
    #[arg(long)]
    group: Option<String>,
    /// Messages at most.
    #[arg(long)]
    batch: Option<u32>,
    /// Seconds to wait for a message.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// Acknowledge the messages at once, without a lease.
    #[arg(long)]
    auto_ack: bool,
    #[command(flatten)]
    server: Server,
}

impl Pop {
    pub(crate) async fn run(self) -> Result<()> {
        let request = PopRequest {
            queue: self.queue,
            partition: self.partition,
            group: self.group,
            batch: self.batch,
            wait: self.wait.is_some(),
            timeout: self.wait.map(Duration::from_secs),
            auto_ack: self.auto_ack,
        };
        let popped = self.server.client()?.pop(&request).await?;
        for message in popped.into_iter().flat_map(|popped| popped.messages) {
            let line = json!({
                "transactionId": message.transaction_id,
                "partition": message.partition,
                "partitionId": message.partition_id,
                "leaseId": message.lease_id,
                "createdAt": message.created_at,
                "data": message.data,
            });
            println!("{line}");
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Completed,
    Failed,
    Retry,
    Dlq,
}

#[derive(Debug, Args)]
pub(crate) struct Ack {
    #[arg(long)]
    transaction_id: String,
    #[arg(long)]
    partition_id: String,
    /// The lease of the pop. Without it the acknowledgement is not fenced.
    #[arg(long)]
    lease_id: Option<String>,
    #[arg(long)]
    group: Option<String>,
    #[arg(long, value_enum, default_value = "completed")]
    status: Status,
    /// The reason of a failure.
    #[arg(long)]
    error: Option<String>,
    #[command(flatten)]
    server: Server,
}

impl Ack {
    pub(crate) async fn run(self) -> Result<()> {
        let ack = wakeline_client::Ack {
            transaction_id: self.transaction_id,
            partition_id: self.partition_id,
            lease_id: self.lease_id,
            consumer_group: self.group,
            status: match self.status {
                Status::Completed => AckStatus::Completed,
                Status::Failed => AckStatus::Failed,
                Status::Retry => AckStatus::Retry,
                Status::Dlq => AckStatus::Dlq,
            },
            error: self.error,
        };
        let result = self.server.client()?.ack(&ack).await?;
        if !result.success {
            bail!("not acknowledged: {}", result.error.unwrap_or_default());
        }
        println!(
            "{}",
            json!({"success": true, "leaseReleased": result.lease_released})
        );
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Waits {
    #[command(flatten)]
    server: Server,
}

impl Waits {
    pub(crate) async fn run(self) -> Result<()> {
        let waits = self.server.client()?.waits().await?;
        println!("{}", serde_json::to_string_pretty(&waits)?);
        Ok(())
    }
}
