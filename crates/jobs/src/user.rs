//! Users: the owners of workers, providers and tasks.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Characters of an email address.
pub const MAX_EMAIL: usize = 254;
/// The domain of addresses that this server gives itself; no user can register there.
pub const OWN_DOMAIN: &str = "wakeline.localhost";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct User {
    pub id: Uuid,
    /// In lower case: addresses that differ only in case are the same.
    pub email: String,
    pub is_active: bool,
    pub is_superuser: bool,
    pub is_verified: bool,
    /// How often the password was changed: tokens from before a change are refused.
    #[serde(skip)]
    pub epoch: i32,
}

/// The hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PasswordHash")
    }
}

/// A user and the hash of its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRecord {
    pub user: User,
    /// Without one there is no login by password.
    pub password: Option<PasswordHash>,
}

#[derive(Clone, Debug)]
pub struct NewUser {
    pub id: Uuid,
    pub email: String,
    pub password: Option<PasswordHash>,
    pub is_superuser: bool,
    pub is_verified: bool,
    pub is_guest: bool,
}

/// What is changed; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    pub email: Option<String>,
    pub password: Option<PasswordHash>,
    pub is_active: Option<bool>,
    pub is_superuser: Option<bool>,
    pub is_verified: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserChangeOutcome {
    NotFound,
    /// Another user has this email.
    EmailTaken,
    Done(User),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserDeletion {
    NotFound,
    /// Its workers have to be removed first, each with what it has.
    HasWorkers,
    Done,
}

/// An address as it is stored, or what is wrong with it.
///
/// This checks the form alone: only a mail can show whether the address is read.
pub fn email(text: &str) -> Result<String, &'static str> {
    let email = text.trim().to_lowercase();
    let Some((name, domain)) = email.rsplit_once('@') else {
        return Err("An email address must have an @-sign.");
    };
    if name.is_empty() || domain.is_empty() {
        return Err("There must be something before and after the @-sign.");
    }
    if email.chars().count() > MAX_EMAIL {
        return Err("The email address is too long; it has at most 254 characters.");
    }
    let strange = |c: char| c.is_whitespace() || c.is_control() || "\"(),:;<>[\\]@".contains(c);
    if email.matches('@').count() > 1 || name.contains(strange) || domain.contains(strange) {
        return Err("The email address contains characters that are not allowed.");
    }
    if name.split('.').any(str::is_empty) || domain.split('.').any(str::is_empty) {
        return Err("An email address cannot have a period at an end or two in a row.");
    }
    if !domain.contains('.') {
        return Err("The part after the @-sign must have a period.");
    }
    if domain == OWN_DOMAIN || domain.ends_with(&format!(".{OWN_DOMAIN}")) {
        return Err("Addresses of this domain are given by the server itself.");
    }
    Ok(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_is_kept_in_lower_case() {
        assert_eq!(
            email(" Ada.L+x@Example.COM"),
            Ok("ada.l+x@example.com".to_owned())
        );
    }

    #[test]
    fn a_text_that_is_no_email_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(MAX_EMAIL));
        let texts = [
            "",
            "ada",
            "@example.com",
            "ada@",
            "ada@example",
            "a@b@example.com",
            "a b@example.com",
            "a\0b@example.com",
            ".ada@example.com",
            "ada@example..com",
            "local@wakeline.localhost",
            "x@subject.Wakeline.localhost",
            &long,
        ];
        for text in texts {
            assert!(email(text).is_err(), "{text:?}");
        }
    }
}
