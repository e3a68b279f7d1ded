//! One server process: started, waited for, signalled, reaped.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Context, Result, bail};

/// Generous: two cores may be compiling and testing beside a start.
const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOG_TAIL_LINES: usize = 30;

#[derive(Debug)]
pub struct Process {
    child: Child,
    name: &'static str,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its output appended to `log` and returns when
    /// `ready`, given the process id, says so.
    pub fn start(
        name: &'static str,
        mut command: Command,
        log: &Path,
        ready: impl Fn(u32) -> bool,
    ) -> Result<Process> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A Ctrl-C at the terminal is for the tests; they stop the servers.
            .process_group(0);
        let child = spawn(command).with_context(|| format!("starting {name}"))?;
        let mut process = Process {
            child,
            name,
            log: log.to_owned(),
        };
        match process.wait_until_ready(ready) {
            Ok(()) => Ok(process),
            Err(error) => {
                process.end("KILL")?;
                Err(error)
            }
        }
    }

    fn wait_until_ready(&mut self, ready: impl Fn(u32) -> bool) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at start ({status})\n{}", self.name, self.tail());
            }
            if ready(self.child.id()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "{} not ready after {READY_WITHIN:?}\n{}",
                    self.name,
                    self.tail()
                );
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends `signal` and waits for the end; a process that ignores it is killed
    /// and reported, for a server that does not stop is a finding.
    pub fn end(&mut self, signal: &str) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        self.signal(signal)?;
        let deadline = Instant::now() + STOPPED_WITHIN;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                self.child.kill()?;
                self.child.wait()?;
                bail!(
                    "{} still ran {STOPPED_WITHIN:?} after SIG{signal}\n{}",
                    self.name,
                    self.tail()
                );
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The child is not reaped yet, so its id cannot belong to a stranger.
    fn signal(&self, signal: &str) -> Result<()> {
        // The shell's own kill: the program of that name is an optional package.
        let kill = format!("kill -s {signal} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status()?;
        if !sent.success() {
            bail!("cannot send SIG{signal} to {}", self.name);
        }
        Ok(())
    }

    fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(LOG_TAIL_LINES);
        format!(
            "the end of {}:\n{}",
            self.log.display(),
            lines[first..].join("\n")
        )
    }
}

type Order = (Command, Sender<io::Result<Child>>);

/// The kernel's parent-death signal follows the *thread* that started a child,
/// and test threads end while their servers are still in use. So one thread
/// that never ends starts them all.
fn spawn(command: Command) -> Result<Child> {
    static LAUNCHER: OnceLock<Sender<Order>> = OnceLock::new();
    let launcher = LAUNCHER.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                // The other end waits below until it has the answer.
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, child) = channel();
    launcher
        .send((command, reply))
        .context("the launcher thread is gone")?;
    Ok(child.recv().context("the launcher thread is gone")??)
}
