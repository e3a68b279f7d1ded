//! Ports for servers that must come back on the same port after a restart.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

/// Below Linux's ephemeral range (32768 and up): in it, an outgoing connection
/// could take the port while its server is down, and a client that reconnects
/// in a loop can even connect to itself.
const FIRST: u16 = 10_000;
const LAST: u16 = 30_000;

const DRAWS: usize = 200;
const STARTS: usize = 3;
const TAKEN: &str = "Address already in use";

/// A loopback port nobody listens on now. Drawn at random, because test
/// processes draw at the same time and do not know of each other.
pub fn free_port() -> Result<u16> {
    for _ in 0..DRAWS {
        let drawn = RandomState::new().hash_one(()) % u64::from(LAST - FIRST);
        let port = FIRST + u16::try_from(drawn)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free loopback port between {FIRST} and {LAST} in {DRAWS} draws")
}

/// Between drawing a port and listening on it another process can take it;
/// only that failure is tried again.
pub(crate) fn on_free_port<T>(start: impl Fn(u16) -> Result<T>) -> Result<T> {
    for _ in 1..STARTS {
        match start(free_port()?) {
            Err(error) if format!("{error:#}").contains(TAKEN) => {}
            settled => return settled,
        }
    }
    start(free_port()?).with_context(|| format!("attempt {STARTS} of {STARTS}"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_free_port_can_be_listened_on() {
        let port = free_port().unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[test]
    fn a_port_that_another_process_takes_meanwhile_is_replaced() {
        let starts = Cell::new(0);
        let port = on_free_port(|port| {
            starts.set(starts.get() + 1);
            if starts.get() < STARTS {
                bail!("bind: {TAKEN}");
            }
            Ok(port)
        });
        assert!(port.is_ok());
        assert_eq!(starts.get(), STARTS);
    }

    #[test]
    fn another_failure_is_not_repeated() {
        let starts = Cell::new(0);
        let failed: Result<()> = on_free_port(|_| {
            starts.set(starts.get() + 1);
            bail!("no space left on device")
        });
        assert!(failed.is_err());
        assert_eq!(starts.get(), 1);
    }
}
