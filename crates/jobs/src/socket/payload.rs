//! The packets of an answer to a poll.

use bytes::Bytes;

/// Python's client takes no more in one answer: with more it ends without a word.
pub(super) const MAX_PACKETS: usize = 16;
/// JSON has it only escaped.
const BETWEEN: u8 = 0x1e;

/// The first packets, and those for the next poll.
pub(super) fn split(mut payload: Bytes) -> (Bytes, Option<Bytes>) {
    let mut ends = payload
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == BETWEEN);
    let Some((end, _)) = ends.nth(MAX_PACKETS - 1) else {
        return (payload, None);
    };
    let rest = payload.split_off(end + 1);
    payload.truncate(end);
    (payload, Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: usize) -> Bytes {
        let packets: Vec<String> = (0..count).map(|number| format!("4{number}")).collect();
        packets.join("\u{1e}").into()
    }

    #[test]
    fn packets_up_to_the_limit_are_one_payload() {
        for count in [1, MAX_PACKETS] {
            assert_eq!(split(packets(count)), (packets(count), None));
        }
    }

    #[test]
    fn packets_past_the_limit_are_in_the_next_payload() {
        let all = packets(MAX_PACKETS + 2);
        let (first, rest) = split(all.clone());
        assert_eq!(first, packets(MAX_PACKETS));
        let rest = rest.unwrap();
        assert_eq!([&first[..], &rest[..]].join(&BETWEEN), all);
    }
}
