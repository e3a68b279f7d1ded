//! Requests that a web page of another site makes through its visitor's browser. Without these rules
//! any page could use a server that asks for no login, such as one on the visitor's own machine.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

use axum::body::Body;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    uri::Authority,
};
use wakeline_web::Problem;

use crate::config::Config;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
/// How long a browser may remember the answer to a preflight, in seconds.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("600");
/// Refused origins and hosts that are named in the log, once each.
const MAX_LOGGED: usize = 100;
/// Of a refused origin or host in a text.
const MAX_SHOWN: usize = 120;

#[derive(Debug)]
pub(crate) struct BrowserRules {
    any_origin: bool,
    origins: Vec<String>,
    hosts: Vec<String>,
    /// Callers need no token.
    is_open: bool,
    logged: Mutex<BTreeSet<String>>,
}

/// What the answer says about the page that made the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// No page, or one of this server.
    Own,
    /// One of `http.allowed_origins`; the value names it in the answer. Boxed, because a held request
    /// keeps it.
    Allowed(Box<HeaderValue>),
}

impl BrowserRules {
    pub(crate) fn new(config: &Config, is_open: bool) -> Self {
        let origins = &config.http.allowed_origins;
        Self {
            any_origin: origins.iter().any(|origin| origin == "*"),
            origins: origins.clone(),
            hosts: config.http.allowed_hosts.clone(),
            is_open,
            logged: Mutex::default(),
        }
    }

    /// Refuses what a page of another site has sent.
    pub(crate) fn check(&self, request: &Request<Body>) -> Result<Page, Problem> {
        let headers = request.headers();
        let host = host(request);
        if self.is_open {
            self.check_host(host)?;
        }
        if let Some(origin) = headers.get(header::ORIGIN)
            && !is_own(origin, host)
        {
            return match self.allowed(origin) {
                Some(value) => Ok(Page::Allowed(Box::new(value))),
                None => Err(self.foreign_origin(origin)),
            };
        }
        match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
            // The browser says that the page is not ours, such as for an `<img>`, which has no
            // `Origin`, or for a page of this host with another scheme. A page on another port of
            // this host is of the same site.
            Some(b"cross-site" | b"same-site") => Err(cross_site()),
            None if self.is_open && consumes(request) && is_browser(headers) => Err(cross_site()),
            _ => Ok(Page::Own),
        }
    }

    /// A page can make a name of its own mean this machine, and is then no stranger to its browser.
    fn check_host(&self, host: Option<&str>) -> Result<(), Problem> {
        // HTTP/1.0, which no browser speaks.
        let Some(host) = host else { return Ok(()) };
        let name = without_port(host).trim_end_matches('.');
        let is_known = self
            .hosts
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if is_known || is_never_foreign(name) {
            return Ok(());
        }
        let shown = shown(host.as_bytes());
        self.log(&shown, "Host", "http.allowed_hosts");
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-host",
            format!(
                "Host: {shown} is not known as a name of this server, which asks for no login: \
                 add it to http.allowed_hosts, or configure authentication"
            ),
        ))
    }

    fn allowed(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        if self.any_origin {
            return Some(HeaderValue::from_static("*"));
        }
        let is_named = |known: &String| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        self.origins.iter().any(is_named).then(|| origin.clone())
    }

    /// Logged, because a browser hides the refusal's text from the page.
    fn foreign_origin(&self, origin: &HeaderValue) -> Problem {
        let shown = shown(origin.as_bytes());
        self.log(&shown, "Origin", "http.allowed_origins");
        Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            format!(
                "Origin: pages of {shown} may not call this server: add it to http.allowed_origins"
            ),
        )
    }

    fn log(&self, shown: &str, header: &str, setting: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MAX_LOGGED && logged.insert(format!("{header} {shown}")) {
            tracing::warn!(
                "requests with {header} {shown} are refused (to serve them, add it to {setting})"
            );
        }
    }
}

/// A browser asks first whether a page of an allowed origin may send its request.
pub(crate) fn preflight(request: &Request<Body>, page: &Page) -> Option<Response<Body>> {
    let method = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
    if request.method() != Method::OPTIONS || matches!(page, Page::Own) {
        return None;
    }
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    if let Some(names) = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
    Some(answer)
}

/// The headers of every answer.
pub(crate) fn protect(headers: &mut HeaderMap, page: Page) {
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let readers = match page {
        Page::Own => "same-origin",
        Page::Allowed(origin) => {
            if *origin != "*" {
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
            }
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, *origin);
            if !headers.contains_key(header::ACCESS_CONTROL_EXPOSE_HEADERS) {
                headers.insert(
                    header::ACCESS_CONTROL_EXPOSE_HEADERS,
                    HeaderValue::from_static("*"),
                );
            }
            "cross-origin"
        }
    };
    headers.insert(
        CROSS_ORIGIN_RESOURCE_POLICY,
        HeaderValue::from_static(readers),
    );
}

/// The name and port by which the client calls this server.
fn host(request: &Request<Body>) -> Option<&str> {
    let authority = request.uri().authority().map(Authority::as_str);
    authority.or_else(|| {
        let host = request.headers().get(header::HOST)?;
        // No name at all is none that is known.
        Some(host.to_str().unwrap_or("."))
    })
}

/// The page has this server's own host and port. Its scheme does not count: a proxy in front of the
/// server may speak TLS.
fn is_own(origin: &HeaderValue, host: Option<&str>) -> bool {
    let origin = origin.as_bytes();
    let name = [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    match (name, host) {
        (Some(name), Some(host)) => name.eq_ignore_ascii_case(host.as_bytes()),
        _ => false,
    }
}

fn without_port(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    address.unwrap_or(name)
}

/// Names that no stranger can have: addresses, this machine, and names without a dot, which only a
/// local network gives.
fn is_never_foreign(name: &str) -> bool {
    let is_address = name.parse::<Ipv4Addr>().is_ok() || name.parse::<Ipv6Addr>().is_ok();
    let last = name.rsplit('.').next().unwrap_or_default();
    is_address || last.eq_ignore_ascii_case("localhost") || (!name.is_empty() && last == name)
}

/// A GET that changes something. A HEAD runs the same handler.
fn consumes(request: &Request<Body>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
        && request
            .uri()
            .path()
            .starts_with(wakeline_queue::http::POP_PREFIX)
}

fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT);
    agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

fn cross_site() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "cross-site",
        "a browser sent this for a page of another site; to call from a page, use fetch() and add \
         the page's origin to http.allowed_origins",
    )
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let short: String = text.chars().take(MAX_SHOWN).collect();
    format!("\"{}\"", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(origins: &[&str], hosts: &[&str], is_open: bool) -> BrowserRules {
        let mut config = Config::default();
        config.http.allowed_origins = origins.iter().map(ToString::to_string).collect();
        config.http.allowed_hosts = hosts.iter().map(ToString::to_string).collect();
        BrowserRules::new(&config, is_open)
    }

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    fn outcome(rules: &BrowserRules, path: &str, headers: &[(&str, &str)]) -> String {
        match rules.check(&request(path, headers)) {
            Ok(page) => format!("{page:?}"),
            Err(problem) => problem.detail().to_owned(),
        }
    }

    #[test]
    fn without_a_login_a_host_with_a_dot_is_foreign() {
        let open = rules(&[], &["wakeline.example.com"], true);
        let with_login = rules(&[], &[], false);
        for host in [
            "127.0.0.1:6632",
            "[::1]:6632",
            "10.1.2.3",
            "localhost",
            "app.localhost:80",
            "LOCALHOST.",
            "wakeline",
            "wakeline:6632",
            "Wakeline.example.com:6632",
        ] {
            assert_eq!(outcome(&open, "/x", &[("host", host)]), "Own", "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:6632",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            ".",
            "[::1].evil.example",
            "1.2.3",
        ] {
            let refused = outcome(&open, "/x", &[("host", host)]);
            assert!(refused.starts_with("Host: "), "{host}: {refused}");
            assert_eq!(outcome(&with_login, "/x", &[("host", host)]), "Own");
        }
        // Over HTTP/2.
        let refused = outcome(&open, "http://evil.example/x", &[]);
        assert!(refused.starts_with("Host: \"evil.example\""), "{refused}");
        assert_eq!(outcome(&open, "/x", &[]), "Own");
    }

    #[test]
    fn a_foreign_origin_is_refused_unless_it_is_named() {
        let host = ("host", "127.0.0.1:6632");
        let named = rules(&["https://app.example.com"], &[], true);
        let any = rules(&["*"], &[], false);
        let of = |rules, origin| outcome(rules, "/x", &[host, ("origin", origin)]);
        for own in ["http://127.0.0.1:6632", "https://127.0.0.1:6632"] {
            assert_eq!(of(&named, own), "Own");
        }
        for foreign in [
            "http://127.0.0.1:7000",
            "http://evil.example",
            "null",
            "https://app.example.com.evil.example",
            "",
        ] {
            let refused = of(&named, foreign);
            assert!(refused.starts_with("Origin: "), "{foreign}: {refused}");
            assert_eq!(of(&any, foreign), "Allowed(\"*\")");
        }
        assert_eq!(
            of(&named, "https://app.example.com"),
            "Allowed(\"https://app.example.com\")"
        );
    }

    #[test]
    fn requests_of_a_page_of_another_site_are_refused() {
        let (open, with_login) = (rules(&[], &[], true), rules(&[], &[], false));
        let pop = "/api/v1/pop/queue/q";
        for site in ["cross-site", "same-site"] {
            let refused = outcome(&with_login, "/x", &[("sec-fetch-site", site)]);
            assert!(refused.starts_with("a browser sent this"), "{refused}");
        }
        // Both have their scheme's port: a page of https://127.0.0.1 called http://127.0.0.1.
        let other_scheme = [
            ("host", "127.0.0.1"),
            ("origin", "https://127.0.0.1"),
            ("sec-fetch-site", "cross-site"),
        ];
        let refused = outcome(&open, "/x", &other_scheme);
        assert!(refused.starts_with("a browser sent this"), "{refused}");
        for site in ["none", "same-origin"] {
            assert_eq!(outcome(&open, pop, &[("sec-fetch-site", site)]), "Own");
        }
        // A browser that does not say whose page it is.
        let browser = [("user-agent", "Mozilla/5.0 (X11; Linux x86_64)")];
        let refused = outcome(&open, pop, &browser);
        assert!(refused.starts_with("a browser sent this"), "{refused}");
        assert_eq!(outcome(&open, "/v1/waits", &browser), "Own");
        assert_eq!(outcome(&with_login, pop, &browser), "Own");
        assert_eq!(outcome(&open, pop, &[("user-agent", "curl/8.5")]), "Own");
    }

    #[test]
    fn each_refused_origin_is_logged_once() {
        let rules = rules(&[], &[], false);
        for number in 0..2 * MAX_LOGGED {
            let origin = format!("http://{}.example", number / 2);
            outcome(&rules, "/x", &[("origin", &origin), ("host", "x")]);
        }
        assert_eq!(rules.logged.lock().unwrap().len(), MAX_LOGGED);
    }
}
