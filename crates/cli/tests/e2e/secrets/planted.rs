//! The secrets, and the texts where none of them may be.

/// Each begins in its own way, so that a part of it is found too.
pub(super) mod values {
    pub(crate) const TOKEN: &str = "zqtoken-of-the-settings";
    pub(crate) const WRONG_TOKEN: &str = "zqwrongto-ken-of-a-caller";
    pub(crate) const JWT_SECRET: &str = "zqjwtsecr-et-of-thirty-two-characters";
    pub(crate) const JOBS_SECRET: &str = "zqjobssec-ret-of-thirty-two-characters";
    pub(crate) const ADMIN_PASSWORD: &str = "zqadminpa-ssword";
    pub(crate) const ENCRYPTION_KEY: &str =
        "5ec2e75ec2e70123456789abcdef0123456789abcdef0123456789abcdef0123";
    pub(crate) const STORE_PASSWORD: &str = "zqstorepa-ssword";
    pub(crate) const REDIS_PASSWORD: &str = "zqredispa-ssword";
    pub(crate) const WRONG_PASSWORD: &str = "zqwrongpa-ssword";
    pub(crate) const USER_PASSWORD: &str = "zquserpas-sword";
    pub(crate) const NEW_PASSWORD: &str = "zqnewpass-word";
    pub(crate) const SHORT_PASSWORD: &str = "zqshort";
    pub(crate) const PAYLOAD: &str = "zqpayload-of-a-message-or-task";
    pub(crate) const RESULT: &str = "zqresult-of-a-task-or-provider";
    pub(crate) const PARAMETER: &str = "zqparamet-er-of-a-read";
    pub(crate) const FRAME: &str = "zqframe12-of-a-room";
    pub(crate) const CHAT: &str = "zqchat123-in-a-room";
    pub(crate) const FACT: &str = "zqfact123-in-a-field";
    /// At the place of any field.
    pub(crate) const TEXT: &str = "zqbody123-of-a-request";
    pub(crate) const NUMBER: u64 = 7_394_615_508;
}

const SECRETS: [(&str, &str); 21] = [
    ("a token of the settings", values::TOKEN),
    ("a wrong token", values::WRONG_TOKEN),
    ("auth.jwt.secret", values::JWT_SECRET),
    ("jobs.secret", values::JOBS_SECRET),
    ("jobs.admin_password", values::ADMIN_PASSWORD),
    ("queue.encryption_key", values::ENCRYPTION_KEY),
    ("the database's password", values::STORE_PASSWORD),
    ("Redis' password", values::REDIS_PASSWORD),
    ("a wrong password", values::WRONG_PASSWORD),
    ("a user's password", values::USER_PASSWORD),
    ("a user's new password", values::NEW_PASSWORD),
    ("a password that is too short", values::SHORT_PASSWORD),
    ("a payload", values::PAYLOAD),
    ("a result", values::RESULT),
    ("a parameter of a read", values::PARAMETER),
    ("a frame", values::FRAME),
    ("a chat message", values::CHAT),
    ("a fact's field", values::FACT),
    ("a text in a body", values::TEXT),
    ("a number in a body", "7394615508"),
    ("a user and password in base64", BASIC),
];
/// `ada:zquserpas-sword`.
pub(super) const BASIC: &str = "YWRhOnpxdXNlcnBhcy1zd29yZA==";
/// So many of its first characters are enough to know a secret by.
const KNOWN_BY: usize = 9;
const SHOWN: usize = 160;

#[derive(Default)]
pub(super) struct SearchedTexts {
    texts: Vec<(String, String)>,
    /// Secrets that the server has made.
    made: Vec<(&'static str, String)>,
}

impl SearchedTexts {
    /// A place that must not have a secret.
    pub(super) fn add(&mut self, place: &str, text: impl Into<String>) {
        self.texts.push((place.to_owned(), text.into()));
    }

    /// A signed token. Only its signature is a secret.
    pub(super) fn add_token(&mut self, name: &'static str, token: &str) {
        let (_, signature) = token.rsplit_once('.').expect("a signed token");
        self.made.push((name, signature.to_owned()));
    }

    pub(super) fn assert_no_secrets(&self) {
        let leaks: Vec<String> = self.leaks().collect();
        let count = leaks.len();
        assert!(leaks.is_empty(), "{count} leaks:\n{}", leaks.join("\n"));
    }

    fn leaks(&self) -> impl Iterator<Item = String> {
        let made = self.made.iter().map(|(name, text)| (*name, text.as_str()));
        let secrets: Vec<_> = SECRETS.into_iter().chain(made).collect();
        self.texts.iter().flat_map(move |(place, text)| {
            let found = secrets
                .clone()
                .into_iter()
                .filter_map(move |(name, secret)| {
                    let known_by = secret.get(..KNOWN_BY).unwrap_or(secret);
                    let at = text.find(known_by)?;
                    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
                    let line: String = text[line.max(at.saturating_sub(SHOWN))..]
                        .chars()
                        .take(2 * SHOWN)
                        .collect();
                    Some(format!("{name} in {place}: {line}"))
                });
            found.collect::<Vec<_>>()
        })
    }
}
