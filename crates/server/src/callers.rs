//! Where callers are, and how much of the server one of them may take.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, header};
use wakeline_web::{CallerKey, Identity, Problem};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A network, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// A single address is a network of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        (prefix <= bits).then_some(Self { address, prefix })
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - self.prefix;
                let of = |address: u32| address.checked_shr(shift).unwrap_or(0);
                of(network.to_bits()) == of(address.to_bits())
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - self.prefix;
                let of = |address: u128| address.checked_shr(shift).unwrap_or(0);
                of(network.to_bits()) == of(address.to_bits())
            }
            _ => false,
        }
    }
}

/// The proxies whose word counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    pub(crate) fn new(networks: &[String]) -> Self {
        let networks = networks.iter().filter_map(|text| Network::parse(text));
        Self(networks.collect())
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// This machine and the proxies speak for many callers: they have no limit of their own.
    pub(crate) fn is_shared(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.trusts(address)
    }

    /// The caller behind the proxies: the last address in their list that is none of them.
    pub(crate) fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let mut caller = peer;
        for address in forwarded(headers).into_iter().rev() {
            let Some(address) = address else { break };
            caller = address.to_canonical();
            if !self.trusts(caller) {
                break;
            }
        }
        caller
    }
}

/// The addresses of `Forwarded`, else of `X-Forwarded-For`; `None` for one that cannot be read.
fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let texts = |name: &HeaderName| -> Vec<&str> {
        let values = headers.get_all(name).into_iter();
        let texts = values.map(|value| value.to_str().unwrap_or_default());
        texts.flat_map(|text| text.split(',')).collect()
    };
    let hops = texts(&header::FORWARDED);
    if hops.is_empty() {
        return texts(&X_FORWARDED_FOR).into_iter().map(address).collect();
    }
    let hop = |hop: &str| {
        let mut pairs = hop
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, text) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
        address(text.trim_matches('"'))
    };
    hops.into_iter().map(hop).collect()
}

/// With or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    address.or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

/// What each caller has of one thing, such as connections.
#[derive(Debug)]
pub(crate) struct CallerCounts {
    counts: Mutex<HashMap<CallerKey, usize>>,
    most_per_address: usize,
    most_per_subject: usize,
}

impl CallerCounts {
    pub(crate) fn new(most_per_address: usize, most_per_subject: usize) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::default(),
            most_per_address,
            most_per_subject,
        })
    }

    /// One more for this address; `None` past its limit.
    pub(crate) fn take_for_address(self: &Arc<Self>, address: IpAddr) -> Option<CallerShare> {
        self.take(CallerKey::of_address(address), self.most_per_address)
    }

    fn take(self: &Arc<Self>, key: CallerKey, most: usize) -> Option<CallerShare> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(CallerShare {
            counts: self.clone(),
            key,
        })
    }
}

/// One of what a caller has, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallerShare {
    counts: Arc<CallerCounts>,
    key: CallerKey,
}

impl Drop for CallerShare {
    fn drop(&mut self) {
        let mut counts = self
            .counts
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

/// The shares of one request. Boxed, because a held request keeps them.
pub(crate) type RequestShares = Box<[Option<CallerShare>; 2]>;

/// Counts a request for its address and its identity; `None` where neither has a limit.
pub(crate) fn request_shares(
    counts: &Arc<CallerCounts>,
    address: Option<IpAddr>,
    identity: Option<&Identity>,
) -> Result<Option<RequestShares>, Problem> {
    let too_many = |of: &str, setting: &str| {
        Problem::overload(
            "too-many-requests",
            format!(
                "{of} has as many requests under way as it may ({setting}); nothing was done, try \
                 again later"
            ),
        )
    };
    let of_address = match address {
        None => None,
        Some(address) => Some(
            counts
                .take_for_address(address)
                .ok_or_else(|| too_many("this address", "limits.requests_per_address"))?,
        ),
    };
    let subject = identity.and_then(|identity| identity.subject.as_deref());
    let of_subject = match subject {
        None => None,
        Some(subject) => Some(
            counts
                .take(
                    CallerKey::Subject(subject.to_owned()),
                    counts.most_per_subject,
                )
                .ok_or_else(|| too_many("this identity", "limits.requests_per_identity"))?,
        ),
    };
    Ok(match (of_address, of_subject) {
        (None, None) => None,
        shares => Some(Box::new(shares.into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        for (network, address, is_in) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:5::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db9::1", true),
        ] {
            let network_is = Network::parse(network).unwrap();
            assert_eq!(
                network_is.contains(ip(address)),
                is_in,
                "{network} {address}"
            );
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "10.0.0.0/x"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_address_that_is_no_trusted_proxy_is_the_caller() {
        let proxies = TrustedProxies::new(&["10.0.0.0/8".to_owned()]);
        let caller = |peer: &str, name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            proxies.caller(ip(peer), &headers).to_string()
        };
        let list = "x-forwarded-for";
        for (peer, name, value, expected) in [
            // A stranger may write what it likes.
            ("203.0.113.1", list, "192.0.2.1", "203.0.113.1"),
            ("10.0.0.1", list, "192.0.2.1", "192.0.2.1"),
            (
                "10.0.0.1",
                list,
                "6.6.6.6, 192.0.2.1, 10.0.0.2",
                "192.0.2.1",
            ),
            ("10.0.0.1", list, "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", list, "192.0.2.1, unknown", "10.0.0.1"),
            ("10.0.0.1", list, "192.0.2.1:4711", "192.0.2.1"),
            ("10.0.0.1", list, "", "10.0.0.1"),
            (
                "10.0.0.1",
                "forwarded",
                "for=192.0.2.1;proto=http",
                "192.0.2.1",
            ),
            (
                "10.0.0.1",
                "forwarded",
                "for=6.6.6.6, for=\"[2001:db8::1]:4711\"",
                "2001:db8::1",
            ),
            ("10.0.0.1", "forwarded", "by=10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(
                caller(peer, name, value),
                expected,
                "{peer} {name}: {value}"
            );
        }
    }

    #[test]
    fn a_caller_has_at_most_its_share_and_leaves_nothing_behind() {
        let counts = CallerCounts::new(2, 1);
        let one = counts.take_for_address(ip("2001:db8::1")).unwrap();
        let two = counts.take_for_address(ip("2001:db8::2")).unwrap();
        assert!(counts.take_for_address(ip("2001:db8::3")).is_none());
        assert!(counts.take_for_address(ip("2001:db8:0:1::1")).is_some());
        drop(one);
        assert!(counts.take_for_address(ip("2001:db8::3")).is_some());
        drop(two);
        assert!(counts.counts.lock().unwrap().is_empty());
    }
}
