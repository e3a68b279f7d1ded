//! One target under libFuzzer, which `cargo xtask fuzz` builds and starts. Its last argument is the
//! target's name, behind `-ignore_remaining_args=1`.

#![no_main]

use std::{
    env,
    sync::{Mutex, OnceLock, PoisonError},
};

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use wakeline_fuzz::{Mutator, Target, kept_inputs, target};

static TARGET: OnceLock<Target> = OnceLock::new();
static MUTATOR: OnceLock<Mutex<Mutator>> = OnceLock::new();

fn chosen() -> Target {
    *TARGET.get_or_init(|| {
        let name = env::args().next_back().unwrap_or_default();
        target(&name).unwrap_or_else(|| panic!("there is no target {name}"))
    })
}

fuzz_target!(init: chosen(), |input: &[u8]| -> () { (chosen().run)(input) });

// Half of the inputs are changed by libFuzzer, which knows what the last run compared, and half by
// what the kept inputs are made of.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let mutator = MUTATOR.get_or_init(|| {
        let kept = kept_inputs(chosen().name).unwrap_or_default();
        Mutex::new(Mutator::new(
            kept.into_iter().map(|(_, input)| input).collect(),
        ))
    });
    let mut mutator = mutator.lock().unwrap_or_else(PoisonError::into_inner);
    mutator.seed(seed.into());
    let mut input = data[..size].to_vec();
    mutator.change(&mut input, max_size);
    data[..input.len()].copy_from_slice(&input);
    input.len()
});
