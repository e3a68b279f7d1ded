use std::{collections::HashSet, sync::Arc};

use super::{InvalidFact, Kind, check_name};

/// How many names are remembered; with more, all are forgotten.
const REMEMBERED: usize = 10_000;

/// Type names that were met, so that a thousand facts share one text.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    known: HashSet<Kind>,
}

impl Kinds {
    /// # Errors
    ///
    /// When it cannot be a type's name.
    pub fn get(&mut self, name: &str) -> Result<Kind, InvalidFact> {
        if let Some(kind) = self.known.get(name) {
            return Ok(kind.clone());
        }
        check_name("type name", name)?;
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        let kind: Kind = Arc::from(name);
        self.known.insert(kind.clone());
        Ok(kind)
    }
}
