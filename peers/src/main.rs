//! `wakeline-bench durable`, with the other two PostgreSQL providers of duroxide in the same run.

use std::sync::Arc;

use clap::Parser;
use duroxide::providers::Provider;
use wakeline_bench::{DurableArgs, PeerProvider};

const PEERS: [PeerProvider; 2] = [
    PeerProvider {
        name: "duroxide-pg-opt",
        connect: |url| {
            Box::pin(async move {
                let provider = duroxide_pg_opt::PostgresProvider::new(&url).await?;
                Ok(Arc::new(provider) as Arc<dyn Provider>)
            })
        },
    },
    PeerProvider {
        name: "duroxide-pg",
        connect: |url| {
            Box::pin(async move {
                let provider = duroxide_pg::PostgresProvider::new(&url).await?;
                Ok(Arc::new(provider) as Arc<dyn Provider>)
            })
        },
    },
];

/// Run workflows of duroxide on wakeline-durable, duroxide-pg-opt and duroxide-pg, on one
/// PostgreSQL, phase by phase.
#[derive(Debug, Parser)]
#[command(name = "wakeline-peers", version)]
struct Cli {
    #[command(flatten)]
    args: DurableArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    wakeline_bench::durable_beside(Cli::parse().args, &PEERS).await
}
