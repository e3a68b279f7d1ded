//! The report as aligned text.

use std::fmt::{Display, Formatter, Result};

use super::{Report, WakePercentiles};
use crate::hold::wakes::WakeAll;
use crate::percentiles::Percentiles;
use crate::units::{show_bytes, show_count, show_duration};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.heading(f)?;
        self.cost(f)?;
        if let Some(wakes) = &self.wakes {
            wake_times(f, wakes)?;
        }
        if let Some(wake_all) = &self.wake_all {
            wake_of_all(f, wake_all)?;
        }
        self.trouble_found(f)?;
        self.verdicts(f)
    }
}

impl Report {
    fn heading(&self, f: &mut Formatter<'_>) -> Result {
        let queues = if self.topics == "one" {
            "on one queue"
        } else {
            "on a queue each"
        };
        let http = if self.http == 2 {
            format!("HTTP/2 over {} connections", self.connections)
        } else {
            "HTTP/1.1, a connection each".to_owned()
        };
        let ack = if self.lease { "leases" } else { "autoAck" };
        writeln!(
            f,
            "{} pops {queues}, {http}, {ack}",
            show_count(self.waiters)
        )?;
        write!(f, "held by {}", self.urls.join(", "))?;
        match &self.push_url {
            Some(url) => writeln!(f, ", pushed to {url}")?,
            None => writeln!(f)?,
        }
        writeln!(f)
    }

    fn cost(&self, f: &mut Formatter<'_>) -> Result {
        let open_time = show_duration(self.open_time);
        let held = match self.held {
            Some(held) => format!("{} counted by the server", show_count(held as usize)),
            None => "not counted by the server".to_owned(),
        };
        row(f, "held", format_args!("{held}, opened in {open_time}"))?;
        let memory = match self.memory {
            Some(memory) => format!(
                "{} per waiter ({} before, {} after)",
                show_bytes(memory.bytes_per_waiter),
                show_bytes(memory.before_bytes),
                show_bytes(memory.after_bytes),
            ),
            None => "not known (no process metrics; try --pid)".to_owned(),
        };
        row(f, "memory", memory)?;
        let watched = show_duration(self.idle.time);
        let statements = match (self.idle.statements_per_second, self.idle.statements_source) {
            (Some(rate), Some(source)) => format!("{rate:.2}/s over {watched} ({source})"),
            _ => "not known (no such metric; try --postgres)".to_owned(),
        };
        row(f, "idle statements", statements)?;
        let cpu = match self.idle.cpu_percent_of_one_core {
            Some(percent) => format!("{percent:.2} % of one core over {watched}"),
            None => "not known (no process metrics; try --pid)".to_owned(),
        };
        row(f, "idle CPU", cpu)
    }

    fn trouble_found(&self, f: &mut Formatter<'_>) -> Result {
        if self.early_answers > 0 {
            let count = show_count(self.early_answers);
            let text = format!("{count} pops were answered empty before half their hold");
            row(f, "not held", text)?;
        }
        if let Some(left) = self.left_behind.filter(|left| *left > 0) {
            let count = show_count(left as usize);
            let text = format!("{count} are still held after all have hung up");
            row(f, "left behind", text)?;
        }
        let count = show_count(self.failures.count);
        match &self.failures.first {
            Some(first) => row(f, "failed requests", format!("{count}; the first: {first}")),
            None => row(f, "failed requests", "none"),
        }
    }

    fn verdicts(&self, f: &mut Formatter<'_>) -> Result {
        if self.targets.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        for target in &self.targets {
            let met = match target.met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "NOT MEASURED",
            };
            let measured = target.measured.as_deref().unwrap_or("-");
            writeln!(
                f,
                "target  {:<24} {:>10}   measured {measured:>10}   {met}",
                target.name, target.wanted
            )?;
        }
        let met = self.targets.iter().filter(|one| one.met == Some(true));
        let met = met.count();
        writeln!(f, "{met} of {} targets met", self.targets.len())
    }
}

fn wake_times(f: &mut Formatter<'_>, wakes: &WakePercentiles) -> Result {
    let Some(sent) = &wakes.push_sent_to_answer else {
        return row(f, "wakes", format!("none answered, {} lost", wakes.lost));
    };
    writeln!(f)?;
    let heading = format!("{} wakes, one by one", show_count(sent.count));
    writeln!(
        f,
        "{heading:<30}{:>12}{:>12}{:>12}{:>12}",
        "p50", "p90", "p99", "max"
    )?;
    times(f, "push sent to pop answered", sent)?;
    if let Some(pushed) = &wakes.push_answered_to_answer {
        times(f, "push answered to pop answered", pushed)?;
    }
    if wakes.answered_before_push > 0 {
        let count = show_count(wakes.answered_before_push);
        let note = "pops were answered before their push; they count as 0 here";
        writeln!(f, "  ({count} {note})")?;
    }
    if wakes.lost > 0 {
        let lost = show_count(wakes.lost);
        writeln!(f, "  LOST: {lost} messages reached no waiter")?;
    }
    writeln!(f)
}

fn times(f: &mut Formatter<'_>, name: &str, times: &Percentiles) -> Result {
    write!(f, "{name:<30}")?;
    for time in [times.p50, times.p90, times.p99, times.max] {
        write!(f, "{:>12}", show_duration(time))?;
    }
    writeln!(f)
}

fn wake_of_all(f: &mut Formatter<'_>, wake: &WakeAll) -> Result {
    let rate = wake.answered as f64 / wake.time.as_secs_f64().max(1e-9);
    let text = format!(
        "{} of {} answered in {} ({} per second), pushed in {}",
        show_count(wake.answered),
        show_count(wake.waiters),
        show_duration(wake.time),
        show_count(rate as usize),
        show_duration(wake.push_time),
    );
    row(f, "wake of all", text)
}

fn row(f: &mut Formatter<'_>, name: &str, text: impl Display) -> Result {
    writeln!(f, "{name:<18}{text}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::args::parse;
    use crate::hold::args::HoldArgs;
    use crate::hold::report::{IdleUsage, Memory, Report};
    use crate::hold::wakes::{WakeAll, WakeTimes};
    use crate::meter::{Reading, StatementCount};

    fn reading(memory_bytes: f64, cpu_seconds: f64, count: f64) -> Reading {
        Reading {
            memory_bytes: Some(memory_bytes),
            cpu_seconds: Some(cpu_seconds),
            statements: Some(StatementCount {
                count,
                source: "wakeline_statements_total",
            }),
        }
    }

    #[test]
    fn a_full_report_is_read_from_top_to_bottom() {
        let args: HoldArgs = parse(
            "hold --target-p99 5ms --target-bytes 14k --target-statements 1 --target-cpu 0.1",
        );
        let (before, after) = (reading(20e6, 1.0, 10.0), reading(90e6, 1.05, 12.0));
        let memory = Memory::between(before.memory_bytes, after.memory_bytes, args.waiters);
        let idle = IdleUsage::between(&before, &after, Duration::from_secs(10));
        let mut report = Report::new(
            &args,
            Duration::from_millis(2500),
            Some(10_000),
            memory,
            idle,
        );
        report.add_wakes(WakeTimes {
            from_sent: (1..=200).map(|n| Duration::from_micros(n * 10)).collect(),
            from_pushed: (1..=200).map(Duration::from_micros).collect(),
            before_pushed: 3,
            lost: 0,
        });
        report.wake_all = Some(WakeAll {
            waiters: 10_000,
            pushed: 10_000,
            answered: 9_999,
            push_time: Duration::from_millis(1900),
            time: Duration::from_secs(2),
        });
        report.judge(&args);
        insta::assert_snapshot!(report, @r"
        10,000 pops on one queue, HTTP/1.1, a connection each, autoAck
        held by http://127.0.0.1:6632

        held              10,000 counted by the server, opened in 2.50 s
        memory            7.0 kB per waiter (20.0 MB before, 90.0 MB after)
        idle statements   0.20/s over 10.0 s (wakeline_statements_total)
        idle CPU          0.50 % of one core over 10.0 s

        200 wakes, one by one                  p50         p90         p99         max
        push sent to pop answered          1.00 ms     1.80 ms     1.98 ms     2.00 ms
        push answered to pop answered      0.10 ms     0.18 ms     0.20 ms     0.20 ms
          (3 pops were answered before their push; they count as 0 here)

        wake of all       9,999 of 10,000 answered in 2.00 s (4,999 per second), pushed in 1.90 s
        failed requests   none

        target  p99, push to pop answer     5.00 ms   measured    0.20 ms   met
        target  memory per waiter           14.0 kB   measured     7.0 kB   met
        target  idle statements              1.00/s   measured     0.20/s   met
        target  idle CPU                     0.10 %   measured     0.50 %   MISSED
        3 of 4 targets met
        ");
        insta::assert_snapshot!(report.trouble().unwrap(), @"1 pushed messages reached no waiter");
    }

    #[test]
    fn what_a_foreign_server_does_not_say_is_called_unknown() {
        let args: HoldArgs =
            parse("hold --waiters 5 --topics each --http 2 --lease --target-cpu 3");
        let nothing = Reading::default();
        let idle = IdleUsage::between(&nothing, &nothing, Duration::from_secs(10));
        let mut report = Report::new(&args, Duration::from_millis(20), None, None, idle);
        report.judge(&args);
        insta::assert_snapshot!(report, @r"
        5 pops on a queue each, HTTP/2 over 16 connections, leases
        held by http://127.0.0.1:6632

        held              not counted by the server, opened in 20.00 ms
        memory            not known (no process metrics; try --pid)
        idle statements   not known (no such metric; try --postgres)
        idle CPU          not known (no process metrics; try --pid)
        failed requests   none

        target  idle CPU                     3.00 %   measured          -   NOT MEASURED
        0 of 1 targets met
        ");
        assert_eq!(report.trouble(), None);
    }
}
