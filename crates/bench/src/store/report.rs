//! The report, as text or as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::load::Load;
use crate::percentiles::Percentiles;
use crate::units::{as_millis, show_count, show_duration};

/// The target: at so many writers, so many times the rate of a commit per call.
const TARGET_WRITERS: usize = 64;
const TARGET_RATIO: f64 = 8.0;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    store: String,
    body_bytes: usize,
    #[serde(rename = "timeMs", serialize_with = "as_millis")]
    time: Duration,
    pub(super) rows: Vec<Row>,
    target: Option<Target>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) writers: usize,
    pub(super) grouped: LoadSummary,
    pub(super) mean_batch: f64,
    pub(super) single: LoadSummary,
    pub(super) ratio: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadSummary {
    pub(super) operations_per_second: f64,
    pub(super) latency: Option<Percentiles>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    writers: usize,
    wanted_ratio: f64,
    measured_ratio: f64,
    met: bool,
}

impl Row {
    pub(super) fn new(writers: usize, grouped: &Load, batches: u64, single: &Load) -> Self {
        Self {
            writers,
            grouped: LoadSummary::new(grouped),
            mean_batch: grouped.latencies.len() as f64 / batches.max(1) as f64,
            single: LoadSummary::new(single),
            ratio: grouped.per_second() / single.per_second(),
        }
    }
}

impl LoadSummary {
    fn new(load: &Load) -> Self {
        Self {
            operations_per_second: load.per_second(),
            latency: Percentiles::of(load.latencies.clone()),
        }
    }

    fn show(&self) -> [String; 3] {
        let latency = |of: fn(&Percentiles) -> Duration| {
            self.latency
                .as_ref()
                .map_or("-".into(), |latency| show_duration(of(latency)))
        };
        [
            show_count(self.operations_per_second.round() as usize),
            latency(|latency| latency.p50),
            latency(|latency| latency.p99),
        ]
    }
}

impl Report {
    pub(super) fn new(store: String, body_bytes: usize, time: Duration, rows: Vec<Row>) -> Self {
        let target = rows
            .iter()
            .find(|row| row.writers == TARGET_WRITERS)
            .map(|row| Target {
                writers: row.writers,
                wanted_ratio: TARGET_RATIO,
                measured_ratio: row.ratio,
                met: row.ratio >= TARGET_RATIO,
            });
        Self {
            store,
            body_bytes,
            time,
            rows,
            target,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.store)?;
        writeln!(
            out,
            "{}-byte rows, each number measured for {}",
            self.body_bytes,
            show_duration(self.time)
        )?;
        writeln!(out)?;
        writeln!(out, "{:>7}  {:<41}   a commit per call", "", "group commit")?;
        writeln!(
            out,
            "{:>7}  {:>9} {:>7} {:>11} {:>11}   {:>9} {:>11} {:>11}  {:>6}",
            "writers", "ops/s", "batch", "p50", "p99", "ops/s", "p50", "p99", "ratio"
        )?;
        for row in &self.rows {
            let [rate, p50, p99] = row.grouped.show();
            let batch = format!("{:.1}", row.mean_batch);
            write!(
                out,
                "{:>7}  {rate:>9} {batch:>7} {p50:>11} {p99:>11}",
                row.writers
            )?;
            let [rate, p50, p99] = row.single.show();
            let ratio = format!("{:.1}", row.ratio);
            writeln!(out, "   {rate:>9} {p50:>11} {p99:>11}  {ratio:>6}")?;
        }
        if let Some(target) = &self.target {
            writeln!(
                out,
                "\ntarget: at {} writers at least {} times a commit per call: {:.1} times, {}",
                target.writers,
                target.wanted_ratio,
                target.measured_ratio,
                if target.met { "met" } else { "missed" }
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(operations: usize, latency: u64) -> Load {
        Load {
            latencies: vec![Duration::from_micros(latency); operations],
            elapsed: Duration::from_secs(2),
        }
    }

    fn report(single: usize) -> Report {
        let rows = vec![
            Row::new(1, &load(2_000, 990), 2_000, &load(2_100, 950)),
            Row::new(64, &load(40_000, 3_150), 1_250, &load(single, 60_000)),
        ];
        Report::new("a store".into(), 100, Duration::from_secs(2), rows)
    }

    #[test]
    fn the_report_sets_both_ways_side_by_side() {
        insta::assert_snapshot!(report(2_500), @r"
        a store
        100-byte rows, each number measured for 2.00 s

                 group commit                                a commit per call
        writers      ops/s   batch         p50         p99       ops/s         p50         p99   ratio
              1      1,000     1.0     0.99 ms     0.99 ms       1,050     0.95 ms     0.95 ms     1.0
             64     20,000    32.0     3.15 ms     3.15 ms       1,250    60.00 ms    60.00 ms    16.0

        target: at 64 writers at least 8 times a commit per call: 16.0 times, met
        ");
    }

    #[test]
    fn a_missed_target_is_said() {
        assert!(report(5_200).to_string().ends_with("7.7 times, missed\n"));
    }

    #[test]
    fn without_a_run_at_its_number_of_writers_there_is_no_target() {
        let rows = vec![Row::new(1, &load(10, 1), 10, &load(10, 1))];
        let report = Report::new("a store".into(), 100, Duration::from_secs(2), rows);
        assert!(report.target.is_none() && !report.to_string().contains("target"));
    }
}
