//! The labels that are known at a place, and whether a path between them can be.

use crate::{
    fact::Kind,
    specification::{Label, Match, Name, Path, Role},
};

/// Later ones hide nothing: a name is known once.
#[derive(Debug, Default)]
pub(super) struct Scope {
    labels: Vec<Label>,
}

impl Scope {
    pub(super) fn kind(&self, name: &str) -> Option<&Kind> {
        self.labels
            .iter()
            .find(|label| &*label.name == name)
            .map(|label| &label.kind)
    }

    pub(super) fn named(&self, name: &Name) -> Result<&Kind, String> {
        self.kind(name)
            .ok_or_else(|| format!("The label '{name}' has not been defined"))
    }

    pub(super) fn unused(&self, name: &Name) -> Result<(), String> {
        if self.kind(name).is_some() {
            return Err(used(name));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, label: Label) {
        self.labels.push(label);
    }

    /// The state that [`Self::forget`] restores.
    pub(super) fn mark(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn forget(&mut self, mark: usize) {
        self.labels.truncate(mark);
    }

    /// Both sides of a path lead to a fact of one type.
    pub(super) fn agrees(&self, unknown: &Label, path: &Path) -> Result<(), String> {
        let left = end(&unknown.kind, &path.left);
        let right = end(self.named(&path.right_label)?, &path.right);
        if left == right {
            Ok(())
        } else {
            Err(format!("Type mismatch: {left} is compared to {right}"))
        }
    }
}

fn end<'a>(start: &'a Kind, roles: &'a [Role]) -> &'a Kind {
    roles.last().map_or(start, |role| &role.kind)
}

pub(super) fn used(name: &Name) -> String {
    format!("The name '{name}' has already been used")
}

/// The rest of a match has to be findable: by a path, and not by two equalities that only say which
/// fact it is, since no feed could say that two known facts are one.
pub(super) fn findable(found: &Match) -> Result<(), String> {
    let name = &found.unknown.name;
    if found.paths().next().is_none() {
        return Err(format!("The match for '{name}' has no path"));
    }
    if found.paths().filter(|path| path.is_identity()).count() > 1 {
        return Err(format!(
            "The match for '{name}' has more than one path without roles"
        ));
    }
    Ok(())
}

/// A condition about something else would hold, or not, for all facts at once.
pub(super) fn based_on(matches: &[Match], unknown: &Label) -> Result<(), String> {
    let name = &unknown.name;
    if matches
        .iter()
        .flat_map(Match::paths)
        .any(|path| path.right_label == *name)
    {
        return Ok(());
    }
    Err(format!(
        "The existential condition must be based on the unknown '{name}'"
    ))
}
