//! Bookmarks as text.

use wakeline_feed::{
    bookmark::{Bookmark, Error, MAX_LENGTH},
    store::{RowCursor, ScanDirection},
};

fn within(from: i64, first_new_output: usize, direction: ScanDirection, at: &[i64]) -> Bookmark {
    Bookmark::Within {
        from,
        to: 100,
        first_new_output,
        cursor: RowCursor {
            direction,
            at: at.to_vec(),
        },
    }
}

#[test]
fn a_written_bookmark_is_read_as_it_was() {
    for (bookmark, text) in [
        (Bookmark::Start, ""),
        (Bookmark::Finished(7), "w1-7"),
        (
            within(0, 0, ScanDirection::FromGiven, &[3, 12]),
            "w1-0-100-0-g-3.12",
        ),
        (within(9, 1, ScanDirection::FromNew, &[]), "w1-9-100-1-n-"),
    ] {
        assert_eq!(bookmark.to_string(), text);
        assert_eq!(text.parse(), Ok(bookmark));
    }
}

#[test]
fn the_span_decides_the_direction_of_an_old_bookmark() {
    for (text, direction) in [
        ("w1-9-100-1-3.12", ScanDirection::FromNew),
        ("w1-9-1009-1-3.12", ScanDirection::FromNew),
        ("w1-9-1010-1-3.12", ScanDirection::FromGiven),
        ("w1-0-100-0-3.12", ScanDirection::FromGiven),
    ] {
        let Ok(Bookmark::Within { cursor, .. }) = text.parse() else {
            panic!("{text} is not read");
        };
        let at = vec![3, 12];
        assert_eq!(cursor, RowCursor { direction, at }, "{text}");
    }
}

#[test]
fn upstreams_bookmarks_mean_the_beginning() {
    for text in ["254", "254.253", "99999999999999999999999999"] {
        assert_eq!(text.parse(), Ok(Bookmark::Start));
    }
}

#[test]
fn an_unknown_text_is_refused() {
    let texts = "xyz,w1,w1-,w1--1,w1-+5,w2-5,w1-5-4-0-1,w1-1-2-0-1.,1..2,w1-1-2-999-1,\
                 w1-99999999999999999999, ,w1-1-2-0-1-1,w1-1-2-0-x-1,w1-1-2-0-n";
    for text in texts.split(',') {
        assert_eq!(text.parse::<Bookmark>(), Err(Error::Unreadable), "{text:?}");
    }
    let long = "1".repeat(MAX_LENGTH + 1);
    assert_eq!(long.parse::<Bookmark>(), Err(Error::TooLong));
}

#[test]
fn bookmarks_ascend_in_the_order_in_which_a_reader_gets_them() {
    let order = [
        Bookmark::Start,
        within(0, 0, ScanDirection::FromNew, &[3, 12]),
        within(0, 0, ScanDirection::FromNew, &[4, 1]),
        within(0, 1, ScanDirection::FromGiven, &[1, 1]),
        Bookmark::Finished(100),
    ];
    for pair in order.windows(2) {
        assert!(pair[0].compare(&pair[1]).is_lt(), "{pair:?}");
    }
}
