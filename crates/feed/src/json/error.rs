use thiserror::Error;

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{problem} at byte {at}")]
pub struct Error {
    pub problem: Problem,
    /// Counted from 0.
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error("the JSON text ends too early, expected {0}")]
    Ends(&'static str),
    #[error("unexpected text after the JSON value")]
    Trailing,
    #[error("a control character in a string must be escaped")]
    Control,
    #[error("unknown escape in a string")]
    Escape,
    #[error("this number does not fit into a double")]
    Huge,
    #[error("not UTF-8")]
    Encoding,
    #[error("nested deeper than {0}")]
    Deep(usize),
    #[error("more than {0} values")]
    Many(usize),
    #[error("longer than {0} bytes")]
    Long(usize),
}
