//! The ids that clients see. They contain where a thing is, so that no look-up and no index is needed:
//! a message's id is its time, its partition and its position in the layout of a UUIDv7, a
//! partition's id is its number.

use sha2::{Digest, Sha256};
use uuid::Uuid;

const POSITION_BITS: u32 = 40;
const PARTITION_BITS: u32 = 34;
/// Of a UUIDv7's random bits: those above the variant.
const HIGH_BITS: u32 = 12;
const LOW_BITS: u32 = 62;

/// What every partition's id begins with: version 8, "wakeline" as far as it fits.
const PARTITION_PREFIX: u64 = 0x7761_6b65_6c69_8e65;
const VARIANT: u64 = 0b10 << LOW_BITS;

/// Positions and partitions stay far below what fits; more would repeat ids.
fn low_bits(number: i64, bits: u32) -> u128 {
    u128::try_from(number).unwrap_or_default() & ((1 << bits) - 1)
}

/// The id of the message at `position` that came at `created_us`.
#[must_use]
pub fn message(created_us: i64, partition: i64, position: i64) -> Uuid {
    let millis = low_bits(created_us / 1_000, 48);
    let random =
        (low_bits(partition, PARTITION_BITS) << POSITION_BITS) | low_bits(position, POSITION_BITS);
    let high = random >> LOW_BITS;
    let low = random & ((1 << LOW_BITS) - 1);
    let bits = (millis << 80) | (7 << 76) | (high << 64) | u128::from(VARIANT) | low;
    Uuid::from_u128(bits)
}

/// Partition and position, if this can be a message's id.
#[must_use]
pub fn partition_and_position(id: &Uuid) -> Option<(i64, i64)> {
    if id.get_version_num() != 7 || id.get_variant() != uuid::Variant::RFC4122 {
        return None;
    }
    let bits = id.as_u128();
    let high = (bits >> 64) & ((1 << HIGH_BITS) - 1);
    let random = (high << LOW_BITS) | (bits & ((1 << LOW_BITS) - 1));
    let position = random & ((1 << POSITION_BITS) - 1);
    Some((
        i64::try_from(random >> POSITION_BITS).ok()?,
        i64::try_from(position).ok()?,
    ))
}

/// The id of a partition by its number.
#[must_use]
pub fn partition(number: i64) -> Uuid {
    Uuid::from_u64_pair(
        PARTITION_PREFIX,
        VARIANT | u64::try_from(number).unwrap_or_default(),
    )
}

/// The number of a partition by its id.
#[must_use]
pub fn partition_number(id: &Uuid) -> Option<i64> {
    let (prefix, rest) = id.as_u64_pair();
    if prefix != PARTITION_PREFIX || rest >> LOW_BITS != VARIANT >> LOW_BITS {
        return None;
    }
    i64::try_from(rest & ((1 << LOW_BITS) - 1)).ok()
}

/// The hash that finds a transaction id: half of its SHA-256, which SQL can compute too.
#[must_use]
pub fn hash(transaction_id: &str) -> Uuid {
    let digest = Sha256::digest(transaction_id.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_by_its_id() {
        for (created, partition_number, at) in [
            (0, 0, 0),
            (1_763_000_000_123_456, 1, 7),
            (1_763_000_000_123_456, (1 << 34) - 1, (1 << 40) - 1),
        ] {
            let id = message(created, partition_number, at);
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(partition_and_position(&id), Some((partition_number, at)));
        }
    }

    #[test]
    fn ids_of_a_partition_are_in_order() {
        let ids: Vec<Uuid> = (0..300).map(|at| message(5_000, 9, at)).collect();
        assert!(ids.is_sorted());
        assert!(message(5_999, 9, 299) < message(6_000, 9, 300));
    }

    #[test]
    fn a_partition_is_found_by_its_id() {
        for number in [0, 1, 77, 1 << 40] {
            let id = partition(number);
            assert_eq!(id.get_version_num(), 8);
            assert_eq!(partition_number(&id), Some(number));
            assert_eq!(partition_and_position(&id), None);
        }
        assert_eq!(partition_number(&Uuid::nil()), None);
        assert_eq!(partition_number(&Uuid::now_v7()), None);
    }
}
