//! Ctrl-C and SIGTERM. A signal is only counted. The function that waits for a child checks the count,
//! ends the child and returns `Interrupted`, so every server and directory is dropped as usual.

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

/// How many signals came: the second one means "at once".
pub(crate) fn signals() -> usize {
    SIGNALS.load(Ordering::SeqCst)
}

pub(crate) fn check() -> Result<()> {
    if signals() > 0 {
        return Err(Interrupted.into());
    }
    Ok(())
}
