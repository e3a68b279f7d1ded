//! The parsers that strangers reach, each as a function of bytes that must not panic, whatever they
//! are, and that checks what must hold of its result.
//!
//! `tests/targets.rs` runs each target on the kept inputs and on a fixed number of mutated ones.
//! `cargo xtask fuzz` runs them for long, guided by coverage.
//!
//! To add a target: its file below `targets/`, its name in [`for_each_target`], and inputs to begin
//! with in `corpus/<target>`.

mod kept;
mod mutator;
mod server;
pub mod targets;

pub use kept::kept_inputs;
pub use mutator::Mutator;

/// A function of bytes that panics where a rule is broken.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// Calls the macro with the names of all targets.
#[macro_export]
macro_rules! for_each_target {
    ($then:ident) => {
        $then! {
            bookmark declaration facts feed frame glob graph head identifier jobs json keys
            parameters policy prefer queue schema socket specification token
        }
    };
}

macro_rules! table {
    ($($name:ident)+) => {
        /// All targets, by name.
        pub const TARGETS: &[Target] = &[
            $( Target { name: stringify!($name), run: targets::$name::run }, )+
        ];
    };
}
for_each_target!(table);

#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
