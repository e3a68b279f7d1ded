//! Each target on its kept inputs and on a fixed number of mutated ones, always the same.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    panic::catch_unwind,
    path::Path,
};

use wakeline_fuzz::{Mutator, TARGETS, for_each_target, kept_inputs, target};

/// About a second of a debug build.
const MUTATED: usize = 400;
/// Those that ask a whole server.
const MUTATED_REQUESTS: usize = 60;
const WHOLE_SERVER: [&str; 5] = ["feed", "head", "jobs", "queue", "socket"];
/// Bytes of a mutated input at most.
const MOST: usize = 4_096;

/// What a failed input is written to, so that it can be repeated.
fn write(target: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-{:x}", hasher.finish()));
    fs::write(&path, input).expect("the directory for tests can be written");
    path.display().to_string()
}

fn check(name: &str) {
    let target = target(name).expect("a target");
    let kept = kept_inputs(name).expect("inputs to begin with");
    assert!(!kept.is_empty(), "crates/fuzz/corpus/{name} has no inputs");
    let run = |input: &[u8], from: &str| {
        if catch_unwind(|| (target.run)(input)).is_err() {
            let path = write(name, input);
            panic!("{from}: repeat it with `cargo xtask fuzz {name} {path}`");
        }
    };
    for (path, input) in &kept {
        run(input, &path.display().to_string());
    }
    let mut mutator = Mutator::new(kept.into_iter().map(|(_, input)| input).collect());
    mutator.seed(1);
    let count = if WHOLE_SERVER.contains(&name) {
        MUTATED_REQUESTS
    } else {
        MUTATED
    };
    for _ in 0..count {
        run(&mutator.next_input(MOST), "a mutated input");
    }
}

mod no_input_breaks {
    macro_rules! tests {
        ($($name:ident)+) => {
            $(
                #[test]
                fn $name() {
                    super::check(stringify!($name));
                }
            )+
        };
    }
    super::for_each_target!(tests);
}

#[test]
fn every_directory_of_inputs_is_of_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(corpus).expect("the kept inputs") {
        let name = entry.expect("an entry").file_name();
        let is_target = TARGETS.iter().any(|target| name == target.name);
        assert!(is_target, "{} is no target", name.display());
    }
}
