//! Who calls.

use uuid::Uuid;

/// A known user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: Uuid,
    pub is_superuser: bool,
}

impl Caller {
    /// Whose things this caller may touch: anybody's, or only its own.
    #[must_use]
    pub fn own(self) -> Option<Uuid> {
        (!self.is_superuser).then_some(self.id)
    }
}
