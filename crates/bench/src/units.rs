//! Times and sizes as people write and read them.

use std::time::Duration;

use serde::Serializer;

/// `250us`, `5ms`, `10s`, `1.5m`, `2h`. A bare number is refused: seconds and milliseconds are
/// both likely meanings.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" => return Err(format!("{text:?} has no unit: write {text}s or {text}ms")),
        _ => {
            return Err(format!(
                "{unit:?} is no unit of time: use us, ms, s, m or h"
            ));
        }
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|error| format!("{text:?}: {error}"))
}

/// `14k` is 14,000 bytes and `14Ki` 14,336.
pub(crate) fn parse_bytes(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.trim_end_matches(['B', 'b']) {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => {
            return Err(format!(
                "{unit:?} is no unit of size: use k, M, G, Ki, Mi or Gi"
            ));
        }
    };
    Ok(number * factor)
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number
        .parse()
        .map_err(|_| format!("{text:?} does not start with a number"))?;
    Ok((number, unit.trim()))
}

pub(crate) fn show_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 10.0 {
        format!("{seconds:.1} s")
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{:.2} ms", seconds * 1e3)
    }
}

/// `10,000`: a count of waiters is misread without its separators.
pub(crate) fn show_count(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn as_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(millis(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_its_unit() {
        for (text, millis) in [
            ("5ms", 5.0),
            ("10s", 10_000.0),
            ("1.5m", 90_000.0),
            ("2h", 7_200_000.0),
            ("250us", 0.25),
        ] {
            assert_eq!(
                parse_duration(text).unwrap(),
                Duration::from_secs_f64(millis / 1e3),
                "{text}"
            );
        }
    }

    #[test]
    fn a_duration_that_could_mean_two_things_is_refused() {
        insta::assert_snapshot!(parse_duration("10").unwrap_err(), @r#""10" has no unit: write 10s or 10ms"#);
        insta::assert_snapshot!(parse_duration("10d").unwrap_err(), @r#""d" is no unit of time: use us, ms, s, m or h"#);
        insta::assert_snapshot!(parse_duration("soon").unwrap_err(), @r#""soon" does not start with a number"#);
        insta::assert_snapshot!(parse_duration("-1s").unwrap_err(), @r#""-1s" does not start with a number"#);
    }

    #[test]
    fn sizes_know_thousands_and_1024s() {
        assert_eq!(parse_bytes("14k"), Ok(14_000.0));
        assert_eq!(parse_bytes("14KiB"), Ok(14_336.0));
        assert_eq!(parse_bytes("1.5 MB"), Ok(1_500_000.0));
        assert_eq!(parse_bytes("512"), Ok(512.0));
        assert!(parse_bytes("14x").is_err());
    }

    #[test]
    fn numbers_are_shown_with_their_units() {
        assert_eq!(show_duration(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(show_duration(Duration::from_millis(1234)), "1.23 s");
        assert_eq!(show_count(1_000_000), "1,000,000");
        assert_eq!(show_count(999), "999");
    }
}
