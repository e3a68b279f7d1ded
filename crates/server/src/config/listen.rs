//! Where the server listens: a port of an address, or of each address that a name has.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};

use tokio::net::lookup_host;

/// Longest name that DNS takes.
const MAX_NAME: usize = 253;

/// The setting `listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    text: String,
    /// Of a name none before [`resolve`](Self::resolve).
    addresses: Vec<SocketAddr>,
}

impl Listen {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let address = text.parse().ok();
        if address.is_none() {
            let (name, port) = text.rsplit_once(':')?;
            let _: u16 = port.parse().ok()?;
            is_name(name).then_some(())?;
        }
        Some(Self {
            text: text.to_owned(),
            addresses: address.into_iter().collect(),
        })
    }

    /// Looks a name up. This is no part of loading, which asks nobody.
    pub(super) async fn resolve(&mut self) -> io::Result<()> {
        if self.addresses.is_empty() {
            for address in lookup_host(&self.text).await? {
                if !self.addresses.contains(&address) {
                    self.addresses.push(address);
                }
            }
        }
        if self.addresses.is_empty() {
            return Err(io::Error::other("it has no address"));
        }
        Ok(())
    }

    /// Of a name none before it was looked up.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether only this machine reaches the server, as far as that is known.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        !self.addresses.is_empty() && self.open_address().is_none()
    }

    /// The first address that other machines may reach.
    pub(super) fn open_address(&self) -> Option<SocketAddr> {
        // Canonical, so that ::ffff:127.0.0.1 counts as the loopback address that it is.
        let is_open = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        self.addresses.iter().find(is_open).copied()
    }

    #[cfg(test)]
    pub(super) fn resolved(text: &str, addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        Self {
            addresses: addresses.collect(),
            ..Self::parse(text).unwrap()
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A name that could be in the DNS or in `/etc/hosts`. None ends with a number, so that a mistyped
/// address is not taken for a name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !label.is_empty() && label.chars().all(known)
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= MAX_NAME
        && name.split('.').all(is_label)
        && !last.chars().all(|c| c.is_ascii_digit())
        && name.parse::<IpAddr>().is_err()
}
