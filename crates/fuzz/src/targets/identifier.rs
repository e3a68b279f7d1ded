//! The ids that the queue's clients send back, which contain where a message is.

use uuid::Uuid;
use wakeline_queue::id;

pub fn run(input: &[u8]) {
    let parsed = str::from_utf8(input)
        .ok()
        .and_then(|text| text.parse().ok());
    let raw = input.first_chunk().map(|bytes| Uuid::from_bytes(*bytes));
    for id in [parsed, raw].into_iter().flatten() {
        if let Some(number) = id::partition_number(&id) {
            assert!(number >= 0);
            assert_eq!(id::partition(number), id);
        }
        if let Some((partition, position)) = id::partition_and_position(&id) {
            assert!(partition >= 0 && position >= 0);
            let millis = i64::try_from(id.as_u128() >> 80).expect("48 bits");
            assert_eq!(id::message(millis * 1_000, partition, position), id);
        }
    }
    if let Ok(text) = str::from_utf8(input) {
        let _ = id::hash(text);
    }
}
