//! The names of queues, partitions, groups and transactions.

use wakeline_web::Problem;

/// Refuses an empty name, a name that is too long, and one with NUL.
pub fn check(field: &str, name: &str, max: usize) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::invalid(field, "must not be empty"));
    }
    // A name never has more characters than bytes: short ones need not be counted.
    if name.len() > max && name.chars().count() > max {
        let problem = format!("longer than {max} characters");
        return Err(Problem::invalid(field, problem));
    }
    check_characters(field, name)
}

/// Refuses a text with NUL, which PostgreSQL cannot store.
pub fn check_characters(field: &str, text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        let problem = "must not contain the character U+0000";
        return Err(Problem::invalid(field, problem));
    }
    Ok(())
}

/// The same for a name that may be left out.
pub fn check_given(field: &str, name: Option<&str>, max: usize) -> Result<(), Problem> {
    name.map_or(Ok(()), |name| check(field, name, max))
}
