//! Being told to stop: by SIGTERM or SIGINT, once; a second one ends the process on the spot.

use anyhow::{Context, Result};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

#[derive(Clone, Debug)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub(crate) fn on_signals() -> Result<Self> {
        let mut terminate = signal(SignalKind::terminate()).context("signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            for again in [false, true] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if again {
                    std::process::exit(130);
                }
                let _ = tell.send(true);
            }
        });
        Ok(Self(told))
    }

    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn told(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|told| *told).await;
    }
}
