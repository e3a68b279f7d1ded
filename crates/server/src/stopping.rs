//! The signal to stop: SIGTERM or SIGINT. A second one ends the process at once.

use anyhow::{Context, Result};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

#[derive(Clone, Debug)]
pub(crate) struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    pub(crate) fn on_signals() -> Result<Self> {
        let mut terminate = signal(SignalKind::terminate()).context("signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            for is_second in [false, true] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if is_second {
                    std::process::exit(130);
                }
                let _ = sender.send(true);
            }
        });
        Ok(Self(receiver))
    }

    /// Of a server that only its caller ends.
    pub(crate) fn never() -> Self {
        let (sender, receiver) = watch::channel(false);
        // It lives as long as there is a receiver.
        tokio::spawn(async move { sender.closed().await });
        Self(receiver)
    }

    pub(crate) fn is_received(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn received(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|received| *received).await;
    }
}
