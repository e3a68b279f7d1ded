//! A process as `/proc` shows it.

use std::fs;

use anyhow::Context;

/// `/proc/PID/stat` counts in USER_HZ, which Linux fixes at 100 for user space.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) struct Usage {
    pub(super) memory_bytes: f64,
    pub(super) cpu_seconds: f64,
}

pub(super) fn usage(pid: u32) -> anyhow::Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(Usage {
        memory_bytes: resident_bytes(&status).context("status has no VmRSS")?,
        cpu_seconds: cpu_seconds(&stat).context("stat has no times")?,
    })
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// User and system time, of all threads.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The command's name may hold spaces and parentheses, so the fields start after the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let user: f64 = times.next()?.parse().ok()?;
    let system: f64 = times.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_in_kibibytes() {
        let status = "Name:\twakeline\nVmPeak:\t  999 kB\nVmRSS:\t   12345 kB\nThreads:\t4\n";
        assert_eq!(resident_bytes(status), Some(12_345.0 * 1024.0));
        assert_eq!(resident_bytes("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_times() {
        let stat = "4242 (wake (line) 1) S 1 4242 4242 0 -1 4194304 900 0 0 0 \
                    150 50 0 0 20 0 4 0 123456 99999999 3000 18446744073709551615";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("4242 (x) S 1"), None);
    }

    #[test]
    fn the_memory_and_cpu_time_of_this_process_are_read() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.memory_bytes > 100_000.0);
        assert!(usage.cpu_seconds >= 0.0);
    }
}
