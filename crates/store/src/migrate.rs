//! Migrations: each door has its own tables and its own version. They run at the start, under a
//! lock.

/// A door's migrations, oldest first. A step is never changed once it is released: the next
/// version is one more step.
#[derive(Clone, Copy, Debug)]
pub struct Migrations {
    pub door: &'static str,
    pub steps: &'static [&'static str],
}

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the database is at version {found} of '{door}', this program knows only {known}: run the newer program"
    )]
    FromTheFuture {
        door: &'static str,
        found: i64,
        known: usize,
    },
    #[error("step {step} of the migrations of '{door}' failed: {reason}")]
    Step {
        door: &'static str,
        step: i64,
        reason: String,
    },
    /// With [`Policy::Verify`](crate::postgres::Policy::Verify).
    #[error(
        "the schema {schema} is not there or not at this program's version, and this program was told not to change it"
    )]
    Behind { schema: String },
    #[error("the database cannot be opened: {0}")]
    Open(String),
}

impl Migrations {
    /// The steps, with their numbers, that a database at `version` has not had.
    pub(crate) fn missing(
        &self,
        version: i64,
    ) -> Result<impl Iterator<Item = (i64, &'static str)> + use<>, OpenError> {
        let done = usize::try_from(version).unwrap_or(usize::MAX);
        if done > self.steps.len() {
            return Err(OpenError::FromTheFuture {
                door: self.door,
                found: version,
                known: self.steps.len(),
            });
        }
        Ok((1..)
            .zip(self.steps)
            .skip(done)
            .map(|(number, step)| (number, *step)))
    }

    pub(crate) fn failed(&self, step: i64, reason: impl Into<String>) -> OpenError {
        OpenError::Step {
            door: self.door,
            step,
            reason: reason.into(),
        }
    }
}
