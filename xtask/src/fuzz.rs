//! `cargo xtask fuzz`: the targets of `crates/fuzz` for long, guided by coverage.
//!
//! libFuzzer works with the stable compiler: all it needs is the counters of LLVM's coverage pass.
//! There is no sanitizer, because the code has no `unsafe`.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::run::{Line, run, run_shown};
use crate::workspace::Workspace;

/// As `cargo fuzz --sanitizer none` has them.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
const DEFAULT_TIME: Duration = Duration::from_secs(600);
/// Bytes of an input at most. Longer ones take longer and find no more.
const MAX_INPUT: usize = 4_096;
/// An input that takes longer is a defect.
const INPUT_SECONDS: u32 = 10;
const MEMORY_MB: u32 = 4_096;

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
enum Request {
    Run {
        targets: Vec<String>,
        time: Duration,
        jobs: usize,
    },
    /// One input again.
    Repeat { target: String, input: PathBuf },
}

pub(crate) fn fuzz(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    let request = parse(arguments, &targets(&workspace.root)?)?;
    let fuzzer = Fuzzer::build(workspace)?;
    match request {
        Request::Repeat { target, input } => fuzzer.repeat(&target, &input),
        Request::Run {
            targets,
            time,
            jobs,
        } => fuzzer.run_all(targets, time, jobs),
    }
}

/// Each has a directory of inputs.
fn targets(root: &Path) -> Result<Vec<String>> {
    let corpus = root.join("crates/fuzz/corpus");
    let entries = fs::read_dir(&corpus).with_context(|| corpus.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn parse(arguments: &[String], known: &[String]) -> Result<Request> {
    let (mut chosen, mut files) = (Vec::new(), Vec::new());
    let (mut time, mut jobs) = (DEFAULT_TIME, 1);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{argument} of what?"))
        };
        match argument.as_str() {
            "--for" => time = duration(value()?)?,
            "--jobs" => jobs = value()?.parse().context("--jobs takes a number")?,
            name if known.iter().any(|known| known == name) => chosen.push(name.to_owned()),
            file if Path::new(file).is_file() => files.push(PathBuf::from(file)),
            other => bail!(
                "fuzz: `{other}` is neither a file nor one of the targets {}",
                known.join(", ")
            ),
        }
    }
    if let Some(input) = files.pop() {
        ensure!(
            files.is_empty() && chosen.len() == 1,
            "fuzz: an input is repeated with the name of its target: cargo xtask fuzz <target> <file>"
        );
        let target = chosen.remove(0);
        return Ok(Request::Repeat { target, input });
    }
    ensure!(jobs > 0, "fuzz: --jobs takes a number from 1 on");
    if chosen.is_empty() {
        chosen = known.to_vec();
    }
    Ok(Request::Run {
        targets: chosen,
        time,
        jobs,
    })
}

/// `90s`, `10m`, `2h`
fn duration(text: &str) -> Result<Duration> {
    let wrong = || format!("--for takes a time such as 90s, 10m or 2h, not {text}");
    let unit = text.chars().next_back().with_context(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => bail!(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().with_context(wrong)?;
    Ok(Duration::from_secs(number * seconds))
}

struct Fuzzer<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
}

impl<'a> Fuzzer<'a> {
    fn build(workspace: &'a Workspace) -> Result<Self> {
        let output = workspace
            .rustc(&["-vV"])
            .output()
            .context("running rustc")?;
        let version = String::from_utf8(output.stdout)?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc -vV names no host")?;
        let directory = workspace.target.join("fuzz");
        let mut cargo = workspace.cargo(&[
            "build",
            "--profile=fuzz",
            "--package=wakeline-fuzz",
            "--features=libfuzzer",
            "--bin=fuzz",
            // Else build scripts would get the flags too, and nothing that the counters call.
            "--target",
            host,
            "--target-dir",
        ]);
        cargo.arg(&directory).env("RUSTFLAGS", COVERAGE);
        ensure!(run_shown(&mut cargo)?.success(), "the build failed");
        let program = directory.join(host).join("fuzz/fuzz");
        Ok(Self { workspace, program })
    }

    fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.workspace.root).args([
            format!("-max_len={MAX_INPUT}"),
            format!("-timeout={INPUT_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MB}"),
            format!("-artifact_prefix={}/", self.artifacts(target).display()),
            "-print_final_stats=1".to_owned(),
        ]);
        command
    }

    /// Inputs that broke a rule.
    fn artifacts(&self, target: &str) -> PathBuf {
        self.workspace.target.join("fuzz/artifacts").join(target)
    }

    fn repeat(&self, target: &str, input: &Path) -> Result<bool> {
        let mut command = self.command(target);
        command.arg(input.canonicalize()?);
        let status = run_shown(name_target(&mut command, target))?;
        Ok(status.success())
    }

    fn run_all(&self, targets: Vec<String>, time: Duration, jobs: usize) -> Result<bool> {
        let waiting = Mutex::new(VecDeque::from(targets));
        let results = Mutex::new(Vec::new());
        let next = || {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop_front()
        };
        let work = || -> Result<()> {
            while let Some(target) = next() {
                let result = self.run_one(&target, time)?;
                println!("{target}: {}", result.text());
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push((target, result));
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            let ended = workers.into_iter().map(|worker| {
                let ended = worker.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect::<Result<()>>()
        })?;
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by(|(one, _), (other, _)| one.cmp(other));
        println!();
        for (target, result) in &results {
            println!("{target:15} {}", result.text());
        }
        Ok(results.iter().all(|(_, result)| result.found.is_none()))
    }

    fn run_one(&self, target: &str, time: Duration) -> Result<TargetResult> {
        let corpus = self.workspace.target.join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(self.artifacts(target))?;
        let mut command = self.command(target);
        command
            .arg(format!("-max_total_time={}", time.as_secs()))
            // New inputs go to the first.
            .arg(corpus)
            .arg(self.workspace.root.join("crates/fuzz/corpus").join(target));
        let mut result = TargetResult::default();
        let status = run(name_target(&mut command, target), |line| {
            let (Line::Out(line) | Line::Err(line)) = line;
            result.read(&line);
            if is_worth_showing(&line) {
                println!("{target}: {line}");
            }
        })?;
        if !status.success() && result.found.is_none() {
            result.found = Some("it ended too early".to_owned());
        }
        if let Some(found) = &result.found {
            println!("{target}: repeat it with `cargo xtask fuzz {target} {found}`");
        }
        Ok(result)
    }
}

/// The program takes it from the end of what libFuzzer ignores.
fn name_target<'c>(command: &'c mut Command, target: &str) -> &'c mut Command {
    command.args(["-ignore_remaining_args=1", target])
}

/// libFuzzer prints a line for each new input.
fn is_worth_showing(line: &str) -> bool {
    let is_new_input = line.starts_with('#')
        && [" NEW ", " REDUCE ", " RELOAD "]
            .iter()
            .any(|event| line.replace('\t', " ").contains(event));
    !is_new_input && !line.starts_with("stat::") && !line.starts_with("INFO:")
}

/// What libFuzzer said of a run.
#[derive(Debug, Default, PartialEq)]
struct TargetResult {
    runs: String,
    coverage: String,
    inputs: String,
    /// The input that broke a rule.
    found: Option<String>,
}

impl TargetResult {
    /// `#524288  pulse  cov: 1912 ft: 4100 corp: 611/45Kb lim: 1001 exec/s: 52428 rss: 71Mb`
    fn read(&mut self, line: &str) {
        if let Some(runs) = line.strip_prefix("stat::number_of_executed_units:") {
            runs.trim().clone_into(&mut self.runs);
        }
        let word_after = |name: &str| {
            let (_, rest) = line.split_once(name)?;
            rest.split_whitespace().next().map(str::to_owned)
        };
        if line.starts_with('#') {
            self.coverage = word_after(" cov: ").unwrap_or_default();
            self.inputs = word_after(" corp: ").unwrap_or_default();
        }
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.found = Some(path.to_owned());
        }
    }

    fn text(&self) -> String {
        let Self {
            runs,
            coverage,
            inputs,
            found,
        } = self;
        let found = found.as_deref().unwrap_or("nothing");
        format!("{runs} runs, coverage {coverage}, inputs {inputs}, found {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request> {
        let known = ["graph", "head"].map(str::to_owned);
        let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
        parse(&arguments, &known)
    }

    #[test]
    fn without_a_name_every_target_runs_for_ten_minutes() {
        let all = Request::Run {
            targets: vec!["graph".to_owned(), "head".to_owned()],
            time: Duration::from_secs(600),
            jobs: 1,
        };
        assert_eq!(parsed(&[]).unwrap(), all);
        let one = Request::Run {
            targets: vec!["head".to_owned()],
            time: Duration::from_secs(90),
            jobs: 2,
        };
        let given = parsed(&["head", "--for", "90s", "--jobs", "2"]);
        assert_eq!(given.unwrap(), one);
    }

    #[test]
    fn a_file_is_repeated_with_its_target() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let repeat = Request::Repeat {
            target: "graph".to_owned(),
            input: file.into(),
        };
        assert_eq!(parsed(&["graph", file]).unwrap(), repeat);
        for wrong in [
            &[file][..],
            &["graph", "head", file],
            &["grap"],
            &["--for", "10"],
            &["--for", "m"],
            &["--for"],
            &["--jobs", "0"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_result_is_read_from_the_lines_of_libfuzzer() {
        let mut result = TargetResult::default();
        for line in [
            "#524288\tpulse  cov: 1912 ft: 4100 corp: 611/45Kb lim: 1001 exec/s: 52428 rss: 71Mb",
            "artifact_prefix='x/'; Test unit written to x/crash-1",
            "stat::number_of_executed_units: 600000",
        ] {
            result.read(line);
        }
        let text = "600000 runs, coverage 1912, inputs 611/45Kb, found x/crash-1";
        assert_eq!(result.text(), text);
        assert!(!is_worth_showing("#5\tNEW    cov: 5 ft: 5"));
        assert!(is_worth_showing("#8\tpulse  cov: 5 ft: 5"));
    }
}
