//! Where in a feed a reader is: `b` of `/jinaga/feeds/{hash}` and `Last-Event-ID`.

use std::cmp::Ordering;

use wakeline_feed::bookmark::{Bookmark, MAX_LENGTH};

pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let Ok(bookmark) = text.parse::<Bookmark>() else {
        return;
    };
    assert!(text.len() <= MAX_LENGTH, "longer than the limit");
    // Leading zeros go, and an old one gets its direction.
    let written = bookmark.to_string();
    assert_eq!(written.parse().as_ref(), Ok(&bookmark), "{written}");
    assert_eq!(bookmark.compare(&bookmark), Ordering::Equal);
    assert!(bookmark.base() >= 0);
    assert!(!bookmark.is_beyond(i64::MAX));
}
