//! The names of queues, partitions, groups and transactions.

use wakeline_web::Problem;

/// Refuses an empty name, a name that is too long, and one with NUL (which PostgreSQL cannot store).
pub fn check(field: &str, name: &str, max: usize) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::invalid(field, "must not be empty"));
    }
    // A name never has more characters than bytes: short ones need not be counted.
    if name.len() > max && name.chars().count() > max {
        return Err(Problem::invalid(
            field,
            format!("longer than {max} characters"),
        ));
    }
    if name.contains('\0') {
        return Err(Problem::invalid(
            field,
            "must not contain the character U+0000",
        ));
    }
    Ok(())
}
