//! What a queue, a partition, a group or a transaction may be called.

use wakeline_web::Problem;

/// Refuses what cannot be a name: nothing at all, too much, or NUL (which PostgreSQL cannot store).
pub fn check(field: &str, name: &str, max: usize) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::invalid(field, "must not be empty"));
    }
    // Never more characters than bytes: the usual name is not counted through.
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
