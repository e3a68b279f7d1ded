//! What the store's errors mean to the runtime.

use duroxide::providers::ProviderError;
use wakeline_store::Error;

/// Whether doing it again may help. Nothing that is the database's own trouble is permanent: the
/// runtime fails an orchestration for a permanent error.
pub(crate) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Unavailable(_) | Error::Overloaded | Error::OutcomeUnknown(_) => true,
        // Serialization failures and deadlocks that were lost again and again.
        Error::Failed(text) => text.starts_with("40"),
    }
}

pub(crate) fn explain(operation: &str, error: &Error) -> ProviderError {
    if is_transient(error) {
        ProviderError::retryable(operation, error.to_string())
    } else {
        ProviderError::permanent(operation, error.to_string())
    }
}

/// What PostgreSQL cannot store is refused with its name, before it spoils a batch.
pub(crate) fn refuse_nul(operation: &str, field: &str, text: &str) -> Result<(), ProviderError> {
    if text.contains('\0') {
        let message = format!("{field} contains U+0000, which PostgreSQL cannot store in a name");
        return Err(ProviderError::permanent(operation, message));
    }
    Ok(())
}
