//! From specifications to text: the one form that clients send and that feeds are kept in.

use std::{
    cmp::Ordering,
    fmt::{self, Write as _},
};

use crate::specification::{
    Component, Condition, Existential, GivenLabel, Match, Name, Path, Projection, Role,
    SingleProjection, Specification,
};

impl Specification {
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        // A string takes everything.
        let _ = write(&mut text, self);
        text
    }
}

struct Indent(usize);

impl fmt::Display for Indent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.0).try_for_each(|_| out.write_str("    "))
    }
}

fn write(out: &mut String, specification: &Specification) -> fmt::Result {
    out.write_char('(')?;
    for (index, given) in specification.givens.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_given(out, given)?;
    }
    out.write_str(") ")?;
    write_child(out, &specification.matches, &specification.projection, 0)?;
    out.write_char('\n')
}

/// Matches and projection, of the whole or of a collection.
fn write_child(
    out: &mut String,
    matches: &[Match],
    projection: &Projection,
    depth: usize,
) -> fmt::Result {
    out.write_str("{\n")?;
    write_matches(out, matches, depth + 1)?;
    write!(out, "{}}}", Indent(depth))?;
    if *projection == Projection::empty() {
        return Ok(());
    }
    out.write_str(" => ")?;
    write_projection(out, projection, depth)
}

fn write_given(out: &mut String, given: &GivenLabel) -> fmt::Result {
    write!(out, "{}: {}", given.label.name, given.label.kind)?;
    if given.conditions.is_empty() {
        return Ok(());
    }
    out.write_str(" [\n")?;
    for condition in &given.conditions {
        write_existential(out, condition, 1)?;
    }
    out.write_char(']')
}

fn write_matches(out: &mut String, matches: &[Match], depth: usize) -> fmt::Result {
    for Match {
        unknown,
        conditions,
    } in matches
    {
        writeln!(out, "{}{}: {} [", Indent(depth), unknown.name, unknown.kind)?;
        for condition in conditions {
            match condition {
                Condition::Path(path) => write_path(out, &unknown.name, path, depth + 1)?,
                Condition::Existential(condition) => write_existential(out, condition, depth + 1)?,
            }
        }
        writeln!(out, "{}]", Indent(depth))?;
    }
    Ok(())
}

fn write_existential(out: &mut String, condition: &Existential, depth: usize) -> fmt::Result {
    let not = if condition.exists { "" } else { "!" };
    writeln!(out, "{}{not}E {{", Indent(depth))?;
    write_matches(out, &condition.matches, depth + 1)?;
    writeln!(out, "{}}}", Indent(depth))
}

fn write_path(out: &mut String, unknown: &Name, path: &Path, depth: usize) -> fmt::Result {
    write!(out, "{}{unknown}", Indent(depth))?;
    write_roles(out, &path.left)?;
    write!(out, " = {}", path.right_label)?;
    write_roles(out, &path.right)?;
    out.write_char('\n')
}

fn write_roles(out: &mut String, roles: &[Role]) -> fmt::Result {
    roles
        .iter()
        .try_for_each(|role| write!(out, "->{}: {}", role.name, role.kind))
}

fn write_projection(out: &mut String, projection: &Projection, depth: usize) -> fmt::Result {
    let components = match projection {
        Projection::Single(single) => return write!(out, "{single}"),
        Projection::Composite(components) => components,
    };
    let mut sorted: Vec<_> = components.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| collated(a, b));
    out.write_str("{\n")?;
    for (name, component) in sorted {
        write!(out, "{}{name} = ", Indent(depth + 1))?;
        match component {
            Component::Single(single) => write!(out, "{single}")?,
            Component::Collection {
                matches,
                projection,
            } => write_child(out, matches, projection, depth + 1)?,
        }
        out.write_char('\n')?;
    }
    write!(out, "{}}}", Indent(depth))
}

impl fmt::Display for SingleProjection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { label, field } => write!(out, "{label}.{field}"),
            Self::Hash(label) => write!(out, "#{label}"),
            Self::Time(label) => write!(out, "@{label}"),
            Self::Fact(label) => out.write_str(label),
        }
    }
}

/// The order of names as people read them, as `localeCompare` has it for identifiers: underscores,
/// digits, letters; case matters only between names that are otherwise the same, small ones first.
fn collated(a: &str, b: &str) -> Ordering {
    let letters = |c: char| (c != '_', c.is_alphabetic(), c.to_ascii_lowercase());
    a.chars()
        .map(letters)
        .cmp(b.chars().map(letters))
        .then_with(|| b.cmp(a))
}
