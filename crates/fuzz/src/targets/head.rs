//! A connection's bytes, read by the whole server: the first bytes, heads of requests, and bodies as
//! HTTP/1.1 and HTTP/2 have them. `10.0.0.0/8` and the caller are trusted proxies.

use crate::server;

pub fn run(input: &[u8]) {
    let answered = server::connection(input);
    for (at, _) in answered
        .windows(9)
        .enumerate()
        .filter(|(_, window)| window == b"HTTP/1.1 ")
    {
        let status = answered.get(at + 9..at + 12).unwrap_or_default();
        assert!(
            ![&b"500"[..], b"502"].contains(&status),
            "{}",
            String::from_utf8_lossy(&answered[at..])
        );
    }
}
