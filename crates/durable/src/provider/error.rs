//! The store's errors as the runtime's.

use duroxide::providers::ProviderError;
use wakeline_store::Error;

use crate::store::is_transient;

pub(crate) fn provider_error(operation: &str, error: &Error) -> ProviderError {
    if is_transient(error) {
        ProviderError::retryable(operation, error.to_string())
    } else {
        ProviderError::permanent(operation, error.to_string())
    }
}

/// Refuses a name that PostgreSQL cannot store, before it makes a whole batch fail.
pub(crate) fn refuse_nul(operation: &str, field: &str, text: &str) -> Result<(), ProviderError> {
    if text.contains('\0') {
        let message = format!(
            "{field} contains U+0000, which PostgreSQL cannot store in a name; choose another"
        );
        return Err(ProviderError::permanent(operation, message));
    }
    Ok(())
}
