//! A child process that can be interrupted and whose lines are read as they come.

use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::interrupt::{self, Interrupted};

const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// nextest itself gives its tests ten seconds to end.
const END_WITHIN: Duration = Duration::from_secs(15);
/// A stray grandchild may hold the pipe open for ever; the child's own lines are there at once.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

pub(crate) enum Line {
    Out(String),
    Err(String),
}

/// Runs the command to its end and shows every line.
pub(crate) fn run_shown(command: &mut Command) -> Result<ExitStatus> {
    run(command, |line| match line {
        Line::Out(text) => println!("{text}"),
        Line::Err(text) => eprintln!("{text}"),
    })
}

/// Runs the command to its end. `on_line` gets every line; nothing is shown.
pub(crate) fn run(command: &mut Command, mut on_line: impl FnMut(Line)) -> Result<ExitStatus> {
    interrupt::check()?;
    if io::stderr().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
        // Cargo and nextest see our pipe and would drop their colours.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The child's own group: a Ctrl-C reaches only xtask, which ends the whole group once.
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;

    let (sender, lines) = channel();
    send_lines(child.stdout.take(), Line::Out, sender.clone());
    send_lines(child.stderr.take(), Line::Err, sender);

    let status = wait(&mut child, &lines, &mut on_line);
    if status.is_err() {
        // The group may go on after the process that leads it has ended.
        signal_group(&child, "KILL");
        let _ = child.wait();
    }
    status
}

fn send_lines(
    from: Option<impl Read + Send + 'static>,
    kind: fn(String) -> Line,
    lines: Sender<Line>,
) {
    let Some(from) = from else { return };
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send(kind(text)).is_err() {
                return;
            }
            line.clear();
        }
    });
}

fn wait(
    child: &mut Child,
    lines: &Receiver<Line>,
    on_line: &mut impl FnMut(Line),
) -> Result<ExitStatus> {
    let mut asked_to_end: Option<Instant> = None;
    let status = loop {
        if let Ok(line) = lines.recv_timeout(CHECK_INTERVAL) {
            on_line(line);
            lines.try_iter().for_each(&mut *on_line);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match (interrupt::signals(), asked_to_end) {
            (0, _) => {}
            (_, None) => {
                signal_group(child, "TERM");
                asked_to_end = Some(Instant::now());
            }
            (signals, Some(since)) if signals > 1 || since.elapsed() > END_WITHIN => {
                return Err(Interrupted.into());
            }
            _ => {}
        }
    };
    interrupt::check()?;
    let deadline = Instant::now() + LAST_LINES_WITHIN;
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        on_line(line);
    }
    Ok(status)
}

fn signal_group(child: &Child, signal: &str) {
    // The shell's own kill: std can only signal the child itself, not its group.
    let kill = format!("kill -s {signal} -- -{} 2>/dev/null", child.id());
    let _ = Command::new("sh").args(["-c", &kill]).status();
}
