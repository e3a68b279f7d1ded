//! How things look in a terminal.

use std::io::{ErrorKind, Write};

use anyhow::Result;

/// The widest a column is made; longer texts stand out of it.
const WIDEST: usize = 60;

/// To standard output. Whoever reads only the beginning has what they wanted.
pub(super) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Columns under their headings.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().clamp(*width, WIDEST.max(*width));
        }
    }
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let mut padded = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            padded.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    };
    line(headings);
    for row in rows {
        line(row.each_ref().map(String::as_str));
    }
    text
}

/// What users wrote, without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    let escaped = |c: char| -> String {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            c.into()
        }
    };
    text.chars().map(escaped).collect()
}

/// A time to the second.
pub(super) fn seconds(time: &str) -> String {
    time.get(..19)
        .map_or(time.to_owned(), |time| format!("{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["a".to_owned(), "long one".to_owned(), "x".to_owned()]];
        let text = table(["ID", "NAME", "N"], &rows);
        assert_eq!(text, "ID  NAME      N\na   long one  x\n");
    }

    #[test]
    fn a_terminal_is_not_told_anything_by_a_name() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(plain("größe"), "größe");
    }
}
