//! The mistakes in a configuration, reported all at once.

use std::fmt;
use std::path::PathBuf;

/// The source of a value, in rising order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    /// The variable's name.
    Environment(String),
    /// The flag with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => {
                // A path may hold a line break, which would break out of a comment.
                write!(f, "{}:{line}", path.display().to_string().escape_debug())
            }
            Self::Environment(name) => write!(f, "environment {}", name.escape_debug()),
            Self::Flag(flag) => write!(f, "flag {}", flag.escape_debug()),
        }
    }
}

/// One mistake. No variant carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// The file is not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    Syntax { origin: Origin, message: String },
    /// No setting has this name.
    #[error("{}: no such setting{}", NamedOrigin(.name, .origin), DidYouMean(.suggestions))]
    Unknown {
        /// As it was written.
        name: String,
        origin: Origin,
        /// Names written in the same manner.
        suggestions: Vec<String>,
    },
    /// A section was given a value.
    #[error("{name} ({origin}): a section, not a setting: write [{name}] and its settings below")]
    Section { name: String, origin: Origin },
    /// The value does not fit the setting's kind.
    #[error("{key} ({origin}): found {found}, expected {expected}")]
    Value {
        key: &'static str,
        origin: Origin,
        found: String,
        expected: String,
    },
    /// Each value is right by itself, but they do not fit together.
    #[error("{}: {message}", Keys(.keys))]
    Conflict {
        keys: Vec<(&'static str, Origin)>,
        message: String,
    },
}

impl Mistake {
    /// Conflicts come last, because single values are mended first.
    fn order(&self) -> (bool, &Origin) {
        match self {
            Self::Syntax { origin, .. }
            | Self::Unknown { origin, .. }
            | Self::Section { origin, .. }
            | Self::Value { origin, .. } => (false, origin),
            Self::Conflict { .. } => (true, &Origin::Default),
        }
    }
}

struct NamedOrigin<'a>(&'a str, &'a Origin);

impl fmt::Display for NamedOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            // A variable is its own name.
            Origin::Environment(_) => write!(f, "{}", self.1),
            origin => write!(f, "{} ({origin})", self.0),
        }
    }
}

struct DidYouMean<'a>(&'a [String]);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; did you mean {}?", self.0.join(" or "))
    }
}

struct Keys<'a>(&'a [(&'static str, Origin)]);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, origin)) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{key} ({origin})")?;
        }
        Ok(())
    }
}

/// All mistakes of a configuration, in the order of its sources. Displays as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    pub(super) fn new(mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by(|a, b| a.order().cmp(&b.order()));
        Self(mistakes)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("1 mistake in the configuration:")?,
            n => write!(f, "{n} mistakes in the configuration:")?,
        }
        for mistake in &self.0 {
            write!(f, "\n  - {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
