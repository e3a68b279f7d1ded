//! Rooms, and the names of jobs and providers.

use std::fmt;

use crate::error::Error;

/// Offered to every room; registering there takes a superuser.
pub const GLOBAL: &str = "@global";
/// Offered by the server itself.
pub const INTERNAL: &str = "@internal";

/// Characters of a room, a category or a name.
pub const MAX_CHARS: usize = 255;

/// Bytes of the three together. PostgreSQL indexes them, and a row of an index has at most 2,704
/// bytes.
pub const MAX_BYTES: usize = 2_048;

/// The name of a job or provider: `room:category:name`. The name may contain colons.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FullName {
    pub room: String,
    pub category: String,
    pub name: String,
}

impl FullName {
    #[must_use]
    pub fn new(room: &str, category: &str, name: &str) -> Self {
        Self {
            room: room.to_owned(),
            category: category.to_owned(),
            name: name.to_owned(),
        }
    }

    /// `None` unless there are three valid parts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        Self::fitting(parts.next()?, parts.next()?, parts.next()?)
    }

    /// `None` for a part that no store accepts: PostgreSQL refuses a NUL, and with it all that is
    /// read in the same statement.
    #[must_use]
    pub fn fitting(room: &str, category: &str, name: &str) -> Option<Self> {
        let fits = |part: &str| part.chars().count() <= MAX_CHARS && !part.contains('\0');
        [room, category, name]
            .into_iter()
            .all(fits)
            .then(|| Self::new(room, category, name))
    }

    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.room == INTERNAL
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.room, self.category, self.name)
    }
}

/// Checks a room's name: any text without `@` and `:`, or one of the two scopes.
pub fn check_room(room: &str) -> Result<(), Error> {
    if room == GLOBAL || room == INTERNAL {
        return Ok(());
    }
    if room.is_empty() || room.chars().count() > MAX_CHARS || room.contains('\0') {
        return Err(Error::InvalidRoom(format!(
            "Room ID must have 1 to {MAX_CHARS} characters and no NUL"
        )));
    }
    if room.contains(['@', ':']) {
        return Err(Error::InvalidRoom(format!(
            "Room ID '{room}' contains invalid characters (@ or :)"
        )));
    }
    Ok(())
}

/// The rooms whose jobs and providers are listed for `room`: its own and those for all.
#[must_use]
pub fn scopes(room: &str, with_internal: bool) -> Vec<String> {
    let mut scopes = vec![room.to_owned()];
    if room != GLOBAL && room != INTERNAL {
        scopes.push(GLOBAL.to_owned());
        if with_internal {
            scopes.push(INTERNAL.to_owned());
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_the_first_two_colons() {
        let name = FullName::parse("@global:modifiers:a:b/c").unwrap();
        assert_eq!(name, FullName::new("@global", "modifiers", "a:b/c"));
        assert_eq!(name.to_string(), "@global:modifiers:a:b/c");
        assert_eq!(FullName::parse("room:modifiers"), None);
    }

    #[test]
    fn a_name_that_is_too_long_or_has_a_nul_is_refused() {
        let (most, more) = ("ä".repeat(MAX_CHARS), "ä".repeat(MAX_CHARS + 1));
        for part in 0..3 {
            let name = |text: &str| {
                let mut parts = ["r", "c", "n"];
                parts[part] = text;
                FullName::parse(&parts.join(":"))
            };
            assert!(name(&most).is_some(), "{part}");
            assert_eq!(name(&more), None, "{part}");
            assert_eq!(name("a\0"), None, "{part}");
        }
    }

    #[test]
    fn a_room_name_with_a_reserved_character_is_refused() {
        for room in ["room-1", "@global", "@internal", "ä b"] {
            assert!(check_room(room).is_ok(), "{room}");
        }
        for room in ["", "a@b", "a:b", "@other", "a\0b"] {
            assert!(check_room(room).is_err(), "{room:?}");
        }
    }
}
