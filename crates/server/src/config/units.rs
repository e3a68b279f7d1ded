//! Sizes such as `10MiB` and durations such as `500ms`: one whole number and one unit.

pub(super) const KIB: u64 = 1024;
pub(super) const MIB: u64 = 1024 * KIB;
pub(super) const GIB: u64 = 1024 * MIB;

/// Durations are counted in milliseconds.
pub(super) const MS: u64 = 1;
pub(super) const SECOND: u64 = 1000 * MS;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;

const SIZES: &[(&str, u64)] = &[
    ("GiB", GIB),
    ("MiB", MIB),
    ("KiB", KIB),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

const DURATIONS: &[(&str, u64)] = &[
    ("d", DAY),
    ("h", HOUR),
    ("m", MINUTE),
    ("s", SECOND),
    ("ms", MS),
];

/// Bytes; a number without a unit counts them.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    parse(text, SIZES, Some(1))
}

/// Milliseconds. A unit is required: nobody agrees what a bare 30 is.
pub(super) fn parse_duration(text: &str) -> Option<u64> {
    parse(text, DURATIONS, None)
}

fn parse(text: &str, units: &[(&str, u64)], without_unit: Option<u64>) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let factor = if unit.is_empty() {
        without_unit?
    } else {
        let known = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit);
        units.iter().find(known)?.1
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

pub(super) fn show_size(bytes: u64) -> String {
    // Powers of two only: 10000000 reads better as itself than as a mix of both systems.
    show(bytes, &SIZES[..3], "B")
}

pub(super) fn show_duration(milliseconds: u64) -> String {
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    show(milliseconds, DURATIONS, "ms")
}

/// In the largest unit that loses nothing.
fn show(number: u64, units: &[(&str, u64)], smallest: &str) -> String {
    units
        .iter()
        .find(|(_, factor)| number > 0 && number.is_multiple_of(*factor))
        .map_or_else(
            || format!("{number}{smallest}"),
            |(unit, factor)| format!("{}{unit}", number / factor),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_units_of_both_systems() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("8KiB", 8192),
            ("8 kib", 8192),
            ("10MiB", 10 << 20),
            ("1GiB", 1 << 30),
            ("10kB", 10_000),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Some(milliseconds), "{text}");
        }
        assert_eq!(parse_duration("30"), None);
    }

    #[test]
    fn a_text_that_is_not_one_number_and_one_unit_is_refused() {
        for text in [
            "",
            "MiB",
            "-1MiB",
            "1.5MiB",
            "1MiB2",
            "1Mi",
            "99999999999GiB",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        for text in ["", "s", "1m30s", "-1s", "1.5s", "1 week"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_shown_in_the_largest_unit_that_loses_nothing() {
        assert_eq!(show_size(10 << 20), "10MiB");
        assert_eq!(show_size(1025), "1025B");
        assert_eq!(show_size(0), "0B");
        assert_eq!(show_duration(600_000), "10m");
        assert_eq!(show_duration(90_000), "90s");
        assert_eq!(show_duration(1_500), "1500ms");
        assert_eq!(show_duration(0), "0s");
    }
}
