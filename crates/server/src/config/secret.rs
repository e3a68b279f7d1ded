//! Values that must not appear in a log, an error or a printed configuration.

use std::fmt;

/// Shown instead of a secret.
pub(super) const HIDDEN: &str = "***";

/// A text whose `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the one place that compares or sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// A URL that is displayed without its passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(String);

impl Url {
    pub(super) fn new(url: String) -> Self {
        Self(url)
    }

    /// The URL with its passwords, for the client that connects.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.0))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hides the password before the host and those among the parameters.
pub(super) fn mask(url: &str) -> String {
    let (scheme, rest) = url
        .find("://")
        .map_or(("", url), |at| url.split_at(at + "://".len()));
    // To the last `@`, wherever it is: a password with a raw `/`, `?` or `@` makes a bad URL, but
    // must not be shown for that. Hiding too much is the lesser harm.
    let (login, place) = rest.rfind('@').map_or(("", rest), |at| rest.split_at(at));
    let login = match login.split_once(':') {
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        None => login.to_owned(),
    };
    format!("{scheme}{login}{}", mask_parameters(place))
}

fn mask_parameters(place: &str) -> String {
    let Some((before, parameters)) = place.split_once('?') else {
        return place.to_owned();
    };
    let masked: Vec<String> = parameters
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{before}?{}", masked.join("&"))
}

fn is_secret(parameter: &str) -> bool {
    let name = parameter.to_ascii_lowercase();
    ["pass", "secret", "token", "key"]
        .iter()
        .any(|word| name.contains(word))
}

/// The same for a text in place of a URL that may be anything, such as `host=db password=…`.
pub(super) fn mask_unknown(text: &str) -> String {
    if text.contains("://") {
        mask(text)
    } else if text.contains(['@', '=']) {
        HIDDEN.to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_hidden_wherever_they_stand() {
        for (url, shown) in [
            ("postgres://u:pw@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
            ("postgres://h:5432/db", "postgres://h:5432/db"),
            ("redis://:pw@h/0", "redis://:***@h/0"),
            ("postgres://u:p@w/x?y@h/db", "postgres://u:***@h/db"),
            (
                "postgres:///db?host=/run&user=u&password=pw",
                "postgres:///db?host=/run&user=u&password=***",
            ),
            (
                "postgres://u:pw@h/db?sslPassword=pw&sslmode=require",
                "postgres://u:***@h/db?sslPassword=***&sslmode=require",
            ),
        ] {
            assert_eq!(mask(url), shown);
        }
    }

    #[test]
    fn an_unreadable_url_is_shown_only_when_it_cannot_hold_a_password() {
        assert_eq!(mask_unknown("sqlit"), "sqlit");
        assert_eq!(mask_unknown("localhost:6379"), "localhost:6379");
        assert_eq!(mask_unknown("host=db password=pw"), "***");
        assert_eq!(mask_unknown("postgres:/u:pw@h"), "***");
        assert_eq!(mask_unknown("mysql://u:pw@h"), "mysql://u:***@h");
    }
}
