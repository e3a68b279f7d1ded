//! Text for a terminal.

use std::io::{ErrorKind, Write};

use anyhow::Result;

/// The largest width of a column; longer texts exceed it.
const MAX_WIDTH: usize = 60;

/// Writes to standard output. A reader that closes it early, such as `head`, is no error.
pub(super) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Rows in columns under their headings.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().clamp(*width, MAX_WIDTH.max(*width));
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

/// Text of users with its control characters escaped, which a terminal would obey.
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

/// A time without its fraction of a second.
pub(super) fn seconds(time: &str) -> String {
    time.get(..19)
        .map_or(time.to_owned(), |time| format!("{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [["a".to_owned(), "long one".to_owned(), "x".to_owned()]];
        let text = table(["ID", "NAME", "N"], &rows);
        assert_eq!(text, "ID  NAME      N\na   long one  x\n");
    }

    #[test]
    fn control_characters_of_a_name_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(plain("größe"), "größe");
    }
}
