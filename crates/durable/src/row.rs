//! Reading rows.

use tokio_postgres::Row;

/// Numbers here are far below the largest of PostgreSQL.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number of a row; NULL is 0.
pub(crate) fn count(row: &Row, column: &str) -> u64 {
    unsigned(row.get::<_, Option<i64>>(column).unwrap_or(0))
}

/// Text that is stored as bytes.
pub(crate) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
