//! Ctrl-C and SIGTERM. The signal only leaves a note; whoever waits sees it,
//! ends its child and returns `Interrupted`, so every server and directory on
//! the way out is dropped as usual.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

pub(crate) fn watch() -> Result<()> {
    ctrlc::set_handler(|| {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
    })?;
    Ok(())
}

/// How often we were asked to end: the second time means "at once".
pub(crate) fn signals() -> usize {
    SIGNALS.load(Ordering::SeqCst)
}

pub(crate) fn check() -> Result<()> {
    if signals() > 0 {
        return Err(Interrupted.into());
    }
    Ok(())
}
