//! Frames as MessagePack: the body of an append, a replace and a merge.

use std::collections::HashSet;

use wakeline_jobs::frame::{
    Frame, FrameLimits,
    msgpack::{Walk, whole},
};

const LIMITS: FrameLimits = FrameLimits {
    bytes: 1 << 20,
    keys: 50,
    key: 100,
};

pub fn run(input: &[u8]) {
    whole(input);
    if let Ok(value) = Walk::new(input).value() {
        assert!(input.starts_with(value));
    }
    several(input);
    let Ok(frame) = Frame::read(input, LIMITS) else {
        return;
    };
    let pairs: Vec<_> = frame.pairs().collect();
    assert!(pairs.len() <= LIMITS.keys as usize);
    assert!(pairs.iter().all(|(key, _)| key.len() <= LIMITS.key));
    assert_eq!(frame.properties().len(), pairs.len());
    assert_eq!(frame.keys().len(), pairs.len());
    let _ = frame.check_required();
    // As it is stored: all of its keys and values are binaries.
    let kept = Frame::kept(frame.bytes().clone());
    assert_eq!(kept.pairs().collect::<Vec<_>>(), pairs);
    assert_eq!(Frame::read(frame.bytes(), LIMITS).as_ref(), Ok(&frame));
    assert_eq!(frame.merged(&frame, LIMITS).as_ref(), Ok(&frame));
    let keys: HashSet<Vec<u8>> = pairs.iter().map(|(key, _)| key.to_vec()).collect();
    assert_eq!(frame.only(&keys), frame);
    assert_eq!(frame.only(&HashSet::new()).pairs().count(), 0);
}

/// An array of them, as in an append.
fn several(input: &[u8]) {
    let mut walk = Walk::new(input);
    let Ok(count) = walk.array() else { return };
    for _ in 0..count.min(1_000) {
        if Frame::walk(&mut walk, LIMITS).is_err() {
            return;
        }
    }
}
