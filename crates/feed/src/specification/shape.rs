//! Properties of a specification that need no facts.

use crate::specification::{Match, Path, Specification};

impl Specification {
    /// Its only results are its givens.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.matches.iter().all(|found| {
            found.existentials().next().is_none() && found.paths().all(Path::is_identity)
        })
    }

    /// Whether a match, conditions aside, is found by going to successors.
    #[must_use]
    pub fn seeks_successors(&self) -> bool {
        self.matches
            .iter()
            .flat_map(Match::paths)
            .any(|path| !path.left.is_empty())
    }
}
