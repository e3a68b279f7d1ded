//! Times on the command line.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

/// A time of an argument, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeArg(pub(super) u64);

impl FromStr for TimeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, Timestamp::now())
            .and_then(|time| u64::try_from(time.as_millisecond()).ok())
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "{text:?} is not a time; use one such as 2026-11-01, 2026-11-01T12:00:00Z, or \
                     30d for thirty days ago (also s, m, h, w)"
                )
            })
    }
}

fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    if let Ok(date) = text.parse::<Date>()
        && text.len() == "2026-11-01".len()
    {
        let midnight = date.to_zoned(TimeZone::UTC).ok()?;
        return Some(midnight.timestamp());
    }
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    now.checked_sub(SignedDuration::from_secs(i64::from(number) * seconds))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_dates_and_ages_are_parsed() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (text, meant) in [
            ("2026-11-01T01:00:00+01:00", "2026-11-01T00:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("90s", "2026-11-16T11:58:30Z"),
            ("30m", "2026-11-16T11:30:00Z"),
            ("0h", "2026-11-16T12:00:00Z"),
            ("2d", "2026-11-14T12:00:00Z"),
            ("2w", "2026-11-02T12:00:00Z"),
        ] {
            assert_eq!(parse(text, now), meant.parse().ok(), "{text}");
        }
    }

    #[test]
    fn any_other_text_is_refused() {
        for text in [
            "",
            "d",
            "5",
            "5y",
            "-5d",
            "1.5d",
            "yesterday",
            "2026-13-01",
            "2026-11-01T25:00:00Z",
            "99999999999d",
            "4000000000w",
            "1960-01-01",
        ] {
            assert!(text.parse::<TimeArg>().is_err(), "{text}");
        }
    }
}
