//! Whether a specification excludes the facts that are purged. It must do so itself, because else
//! its answer would change with the moment of the purge.

use crate::{
    fact::Kind,
    specification::{Condition, Existential, Match, Path, Projection, Specification},
};

/// The missing conditions, one text for each match; empty if none is missing.
pub(super) fn missing(specification: &Specification, conditions: &[Specification]) -> Vec<String> {
    let matches = specification.matches.iter();
    matches
        .filter_map(|one| missing_of(one, conditions))
        .collect()
}

fn missing_of(one: &Match, conditions: &[Specification]) -> Option<String> {
    let unknown = &one.unknown.kind;
    let own = described(conditions, |condition| {
        root(condition) == Some(unknown) && !one.conditions.iter().any(|had| says(had, condition))
    });
    if let Some(own) = own {
        return Some(format!(
            "The match for {unknown} is missing purge conditions:\n{own}"
        ));
    }
    let between = described(conditions, |condition| {
        root(condition).is_some_and(|kind| passes_through(one, kind))
    });
    between.map(|between| {
        format!(
            "The match for {unknown} passes through types that should have purge conditions:\n{between}"
        )
    })
}

fn root(condition: &Specification) -> Option<&Kind> {
    condition.givens.first().map(|given| &given.label.kind)
}

fn described(
    conditions: &[Specification],
    is_wanted: impl Fn(&Specification) -> bool,
) -> Option<String> {
    let wanted = conditions.iter().filter(|condition| is_wanted(condition));
    let text: String = wanted
        .map(|condition| {
            let plain = Specification {
                projection: Projection::empty(),
                ..condition.clone()
            };
            format!("!E {}", plain.describe())
        })
        .collect();
    (!text.is_empty()).then_some(text)
}

/// Whether it is the negation of a purge condition.
fn says(had: &Condition, purge: &Specification) -> bool {
    match had {
        Condition::Existential(Existential {
            exists: false,
            matches,
        }) => are_alike(matches, &purge.matches),
        Condition::Existential(_) | Condition::Path(_) => false,
    }
}

fn are_alike(ours: &[Match], theirs: &[Match]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(one, other)| {
            one.unknown.kind == other.unknown.kind
                && one.conditions.len() == other.conditions.len()
                && one
                    .conditions
                    .iter()
                    .zip(&other.conditions)
                    .all(|(one, other)| is_alike(one, other))
        })
}

/// Names do not count, only where the roles lead.
fn is_alike(one: &Condition, other: &Condition) -> bool {
    match (one, other) {
        (Condition::Path(one), Condition::Path(other)) => {
            one.left == other.left && one.right == other.right
        }
        (Condition::Existential(one), Condition::Existential(other)) => {
            one.exists == other.exists && are_alike(&one.matches, &other.matches)
        }
        _ => false,
    }
}

/// Whether a path has the type in between, where it cannot have conditions.
fn passes_through(one: &Match, kind: &Kind) -> bool {
    one.conditions.iter().any(|condition| match condition {
        Condition::Path(Path { left, right, .. }) => {
            // The last of a side on its own is the known fact or the unknown itself.
            let inner = |roles: usize, other: usize| {
                if other == 0 {
                    roles.saturating_sub(1)
                } else {
                    roles
                }
            };
            left[..inner(left.len(), right.len())]
                .iter()
                .chain(&right[..inner(right.len(), left.len())])
                .any(|role| role.kind == *kind)
        }
        Condition::Existential(_) => false,
    })
}
