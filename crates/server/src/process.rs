//! What the process uses and the name of its host, by Linux' `/proc`. Elsewhere nothing is known.

use std::{fs, time::Duration};

use wakeline_queue::node::Process;

/// `/proc` counts in these; it has been 100 a second on every Linux for decades.
const TICK: Duration = Duration::from_millis(10);

pub(crate) fn usage() -> Option<Process> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the command, which is in brackets and may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u32>().ok();
    Some(Process {
        user: TICK * ticks(11)?,
        system: TICK * ticks(12)?,
        resident_bytes: bytes(&status, "VmRSS:")?,
        virtual_bytes: bytes(&status, "VmSize:")?,
    })
}

fn bytes(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

pub(crate) fn hostname() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|name| name.trim().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_uses_something() {
        let usage = usage().expect("/proc is there");
        assert!(usage.resident_bytes > 100_000, "{usage:?}");
        assert!(usage.virtual_bytes >= usage.resident_bytes, "{usage:?}");
        assert!(!hostname().is_empty());
    }
}
