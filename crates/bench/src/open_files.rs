//! Whether this process may open as many connections as a run needs.

use std::fs;

use anyhow::{Context, bail};

/// The directory listing, the database, the standard streams, and the files of the runtime.
const BESIDES_WAITERS: usize = 64;

/// Fails when `connections` exceed the limit of open files. The error says to raise the limit or to
/// follow the advice in `instead`.
pub(crate) fn check(connections: usize, instead: &str) -> anyhow::Result<()> {
    let limits = fs::read_to_string("/proc/self/limits").context("reading /proc/self/limits")?;
    let limit = parse(&limits).context("/proc/self/limits has no line for open files")?;
    let needed = connections + BESIDES_WAITERS;
    if limit.soft >= needed {
        return Ok(());
    }
    let raise = if limit.hard >= needed {
        format!("run `ulimit -n {needed}` in this shell first")
    } else {
        format!(
            "have the administrator raise the hard limit, which is {} (LimitNOFILE= under systemd)",
            limit.hard
        )
    };
    bail!(
        "{connections} connections need {needed} open files and the limit is {}.\n\
         Either {raise},\n\
         or {instead},\n\
         or hold at most {} at once. The server needs the same room on its side.",
        limit.soft,
        limit.soft.saturating_sub(BESIDES_WAITERS),
    )
}

#[derive(Debug, PartialEq)]
struct FileLimit {
    soft: usize,
    hard: usize,
}

fn parse(limits: &str) -> Option<FileLimit> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_whitespace().map(|field| {
        if field == "unlimited" {
            Some(usize::MAX)
        } else {
            field.parse().ok()
        }
    });
    Some(FileLimit {
        soft: fields.next()??,
        hard: fields.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_and_hard_limit_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             127235               127235               processes\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(
            parse(limits),
            Some(FileLimit {
                soft: 1024,
                hard: 524_288
            })
        );
        let unlimited =
            "Max open files            unlimited            unlimited            files\n";
        assert_eq!(parse(unlimited).unwrap().hard, usize::MAX);
        assert_eq!(parse("nothing of the kind"), None);
    }

    #[test]
    fn a_run_over_the_limit_is_refused_with_the_remedy() {
        let error = check(usize::MAX / 2, "do less").unwrap_err().to_string();
        assert!(error.contains("or do less,"), "{error}");
        assert!(check(1, "do less").is_ok());
    }
}
