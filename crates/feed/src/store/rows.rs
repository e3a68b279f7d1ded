//! What both databases do with the rows of a question.

use wakeline_store::Error;

use super::{Cursor, Gathered, Position, Row, sql::Walking};
use crate::fact::{Hash, Reference};

/// A row as the databases give it: which of the givens, the walk's variables, the outputs' hashes.
pub(super) struct Raw {
    pub(super) at: Vec<i64>,
    pub(super) hashes: Vec<Option<Vec<u8>>>,
}

/// Rows must ascend: a cursor is worth nothing otherwise.
pub(super) fn is_in_order(rows: &[Gathered]) -> Result<(), Error> {
    let is_ascending =
        |pair: &[Gathered]| (pair[0].of, &pair[0].row.at) < (pair[1].of, &pair[1].row.at);
    if rows.windows(2).all(is_ascending) {
        Ok(())
    } else {
        Err(Error::Failed("the rows of a feed are out of order".into()))
    }
}

/// Reads a row, with what was given to the walk it is of. `first` is the number of the first given.
pub(super) fn gathered(
    walking: &Walking<'_>,
    raw: Raw,
    givens: &[Vec<Position>],
    first: usize,
) -> Result<Gathered, Error> {
    let wrong = || Error::Failed("a row of a feed cannot be read".into());
    let (number, at) = raw.at.split_first().ok_or_else(wrong)?;
    let number = usize::try_from(*number).map_err(|_| wrong())?;
    let given = givens.get(number).ok_or_else(wrong)?;
    let query = walking.query;
    let mut outputs = Vec::with_capacity(query.outputs.len());
    for (&variable, hash) in query.outputs.iter().zip(raw.hashes) {
        let position = match given.get(variable) {
            Some(position) => *position,
            None => {
                let step = walking
                    .walk
                    .steps
                    .iter()
                    .position(|step| step.variable == variable);
                *step.and_then(|step| at.get(step)).ok_or_else(wrong)?
            }
        };
        let hash = hash.and_then(|hash| Some(Hash(hash.try_into().ok()?)));
        let reference = Reference {
            kind: query.variables[variable].clone(),
            hash: hash.ok_or_else(wrong)?,
        };
        outputs.push((position, reference));
    }
    Ok(Gathered {
        of: first + number,
        row: Row {
            at: Cursor {
                way: walking.way,
                at: at.to_vec(),
            },
            outputs,
        },
    })
}
