//! URLs: names may contain any character, and paths may not.

use std::fmt::Write;

use http::Uri;
use http::uri::{Authority, Scheme};

use crate::Error;

/// The server's address: its authority, and a path if a proxy serves it under a prefix.
#[derive(Debug, Clone)]
pub(crate) struct BaseUrl {
    authority: Authority,
    prefix: String,
}

impl BaseUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::BaseUrl {
            url: text.to_owned(),
            reason: reason.to_owned(),
        };
        let uri: Uri = text.parse().map_err(|_| refuse("it is not a URL"))?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) if *scheme == Scheme::HTTPS => {
                return Err(refuse(
                    "this client has no TLS; use the server's http:// address",
                ));
            }
            _ => return Err(refuse("it must start with http://")),
        }
        if uri.query().is_some() {
            return Err(refuse("it must not have a query"));
        }
        let authority = uri
            .authority()
            .cloned()
            .ok_or_else(|| refuse("it names no host"))?;
        Ok(Self {
            authority,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn uri(&self, path_and_query: &str) -> Uri {
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path_and_query}", self.prefix))
            .build()
            .expect("a checked base and an encoded path make a URL")
    }
}

/// Percent-encodes everything but the unreserved characters of RFC 3986, so that the result is one
/// path segment or one query value.
pub(crate) fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a String succeeds");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_path_segment() {
        assert_eq!(encode("orders-1.eu_~"), "orders-1.eu_~");
        assert_eq!(encode("sp ace"), "sp%20ace");
        assert_eq!(encode("sl/ash?x=1&y#z"), "sl%2Fash%3Fx%3D1%26y%23z");
        assert_eq!(encode("üñ"), "%C3%BC%C3%B1");
        assert_eq!(encode("a%b+c"), "a%25b%2Bc");
    }

    #[test]
    fn a_base_keeps_its_prefix_and_loses_its_last_slash() {
        let plain = BaseUrl::parse("http://127.0.0.1:6632").unwrap();
        assert_eq!(plain.uri("/livez"), "http://127.0.0.1:6632/livez");
        let behind = BaseUrl::parse("http://proxy/wake/").unwrap();
        assert_eq!(behind.uri("/livez?a=b"), "http://proxy/wake/livez?a=b");
    }

    #[test]
    fn a_base_that_cannot_work_is_refused_with_the_reason() {
        for (url, reason) in [
            ("https://host", "no TLS"),
            ("ftp://host", "must start with http://"),
            ("host:6632", "must start with http://"),
            ("http://host/?a=b", "must not have a query"),
            ("not a url", "not a URL"),
        ] {
            let error = BaseUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
