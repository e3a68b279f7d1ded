//! Who counts as one caller where callers have limits.

use std::net::{IpAddr, Ipv6Addr};

/// Of an IPv6 address: one site has them all.
const IPV6_PREFIX: u32 = 64;

/// One caller: an address, or the subject of a signed token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallerKey {
    Address(IpAddr),
    Subject(String),
}

impl CallerKey {
    /// All IPv6 addresses of one network are one caller.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => {
                let mask = u128::MAX << (128 - IPV6_PREFIX);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        })
    }

    /// For the text of a refusal.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Address(_) => "this address",
            Self::Subject(_) => "this identity",
        }
    }
}
