//! What the machine can do at the moment: requests that cost the server next to nothing.

use std::time::Duration;

use anyhow::{Context, anyhow};
use http::Uri;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::figure::{Figure, Unit};
use crate::server::{REQUEST_TIMEOUT, Server};

const TIME: Duration = Duration::from_secs(1);
/// The first that answers is taken: Wakeline's, then Queen's, then that of any host made with FastAPI.
const ROUTES: [&str; 3] = ["/livez", "/health", "/docs"];

/// `when` is "before" or "after".
pub(crate) async fn measure(
    server: &Server,
    connections: usize,
    when: &str,
) -> anyhow::Result<Vec<Figure>> {
    let path = route(server).await?;
    let until = Instant::now() + TIME;
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (mut connection, path) = (server.connection(), path.clone());
        tasks.spawn(async move {
            let mut responses = 0;
            while Instant::now() < until {
                connection.get(&path, REQUEST_TIMEOUT).await?;
                responses += 1;
            }
            anyhow::Ok(responses)
        });
    }
    let mut responses = 0;
    while let Some(counted) = tasks.join_next().await {
        responses += counted??;
    }
    let name = format!("a trivial GET, {when}");
    let rate = f64::from(responses) / TIME.as_secs_f64();
    Ok(vec![Figure::new(name, Unit::REQUESTS_PER_SECOND, rate)])
}

async fn route(server: &Server) -> anyhow::Result<Uri> {
    let mut connection = server.connection();
    let mut refusal = String::new();
    for route in ROUTES {
        let path = server.path(route);
        match connection.get(&path, REQUEST_TIMEOUT).await {
            Ok(response) if response.status.is_success() => return Ok(path),
            Ok(response) => refusal = response.describe(),
            Err(error) => refusal = error.to_string(),
        }
    }
    Err(anyhow!(refusal)).with_context(|| format!("{} does not answer", server.url))
}
