//! What the machine can do at the moment: requests that cost the server next to nothing.

use std::time::Duration;

use anyhow::Context;
use http::Uri;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::contestant::{Contestant, PATIENCE};
use crate::figure::{Figure, Unit};

const TIME: Duration = Duration::from_secs(1);
/// The first that answers: Wakeline's, then Queen's, then that of any host made with FastAPI.
const ROUTES: [&str; 3] = ["/livez", "/health", "/docs"];

pub(crate) async fn measure(
    contestant: &Contestant,
    connections: usize,
    when: &str,
) -> anyhow::Result<Figure> {
    let path = route(contestant).await?;
    let until = Instant::now() + TIME;
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (mut line, path) = (contestant.line(), path.clone());
        tasks.spawn(async move {
            let mut answers = 0;
            while Instant::now() < until {
                line.get(&path, PATIENCE).await?;
                answers += 1;
            }
            anyhow::Ok(answers)
        });
    }
    let mut answers = 0;
    while let Some(answered) = tasks.join_next().await {
        answers += answered??;
    }
    let name = format!("a trivial GET, {when}");
    let rate = f64::from(answers) / TIME.as_secs_f64();
    Ok(Figure::new(name, Unit::RequestsPerSecond, rate))
}

async fn route(contestant: &Contestant) -> anyhow::Result<Uri> {
    let mut line = contestant.line();
    let mut said = None;
    for route in ROUTES {
        let path = contestant.path(route);
        match line.get(&path, PATIENCE).await {
            Ok(answer) if answer.status.is_success() => return Ok(path),
            Ok(answer) => said = Some(answer.shown()),
            Err(lost) => said = Some(lost.to_string()),
        }
    }
    let said = said.unwrap_or_default();
    Err(anyhow::anyhow!(said)).with_context(|| format!("{} does not answer", contestant.url))
}
