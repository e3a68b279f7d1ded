//! Times as clients read them.

/// `2026-11-15T22:35:38.261460Z`
#[must_use]
pub(crate) fn shown(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        .unwrap_or_default()
}
