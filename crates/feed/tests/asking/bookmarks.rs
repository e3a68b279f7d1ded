//! Bookmarks as text.

use wakeline_feed::bookmark::{Bookmark, Error, MAX_LENGTH};

fn within(from: i64, newest: usize, after: &[i64]) -> Bookmark {
    Bookmark::Within {
        from,
        to: 100,
        newest,
        after: after.to_vec(),
    }
}

#[test]
fn what_is_written_is_read() {
    for (bookmark, text) in [
        (Bookmark::Start, ""),
        (Bookmark::Finished(7), "w1-7"),
        (within(0, 0, &[3, 12]), "w1-0-100-0-3.12"),
        (within(9, 1, &[]), "w1-9-100-1-"),
    ] {
        assert_eq!(bookmark.to_string(), text);
        assert_eq!(text.parse(), Ok(bookmark));
    }
}

#[test]
fn upstreams_mean_the_beginning() {
    for text in ["254", "254.253", "99999999999999999999999999"] {
        assert_eq!(text.parse(), Ok(Bookmark::Start));
    }
}

#[test]
fn anything_else_is_refused() {
    for text in [
        "xyz",
        "w1",
        "w1-",
        "w1--1",
        "w1-+5",
        "w2-5",
        "w1-5-4-0-1",
        "w1-1-2-0-1.",
        "1..2",
        "w1-1-2-999-1",
        "w1-99999999999999999999",
        " ",
        "w1-1-2-0-1-1",
    ] {
        assert_eq!(text.parse::<Bookmark>(), Err(Error::Unreadable), "{text:?}");
    }
    let long = "1".repeat(MAX_LENGTH + 1);
    assert_eq!(long.parse::<Bookmark>(), Err(Error::TooLong));
}

#[test]
fn they_ascend_as_a_reader_gets_them() {
    let order = [
        Bookmark::Start,
        within(0, 0, &[3, 12]),
        within(0, 0, &[4, 1]),
        within(0, 1, &[1, 1]),
        Bookmark::Finished(100),
    ];
    for pair in order.windows(2) {
        assert!(pair[0].compare(&pair[1]).is_lt(), "{pair:?}");
    }
}
