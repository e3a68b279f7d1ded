//! The bus' messages: JSON texts that fit PostgreSQL's limit for a notification.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wakeline_wake::{Topic, WaitGroup, Wake, WakeMode};

use crate::chunks::Chunk;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// The sender, which has woken its own waiters already.
    pub(crate) from: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wakes: Vec<WakeText>,
    /// Anything of these doors may have become ready: there was too much to list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) doors: Vec<String>,
    /// Texts that a door broadcasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) texts: Vec<Chunk>,
    /// The number of the sender's canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) canary: Option<u64>,
    /// With a canary: how often the sender sends one, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) every: Option<u64>,
    /// With a canary: the connection is new, and the others shall send a canary too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hello: bool,
}

/// A wake that the receiver gives to its engine after `delay`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DelayedWake {
    pub(crate) wake: Wake,
    pub(crate) delay: Duration,
}

/// A wake as text: its topics, its group if it has one, and `all`, `chain` or a count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WakeText {
    #[serde(rename = "t")]
    topics: Vec<String>,
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(rename = "m")]
    mode: ModeText,
    /// Milliseconds from now.
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    delay: u64,
}

fn is_zero(delay: &u64) -> bool {
    *delay == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeText {
    All,
    Chain,
    #[serde(untagged)]
    Count(u32),
}

impl From<&DelayedWake> for WakeText {
    fn from(DelayedWake { wake, delay }: &DelayedWake) -> Self {
        Self {
            delay: milliseconds(*delay),
            topics: wake
                .topics
                .iter()
                .map(|topic| topic.encoded().to_owned())
                .collect(),
            group: wake.group.as_ref().map(|group| group.name().to_owned()),
            mode: match wake.mode {
                WakeMode::All => ModeText::All,
                WakeMode::Chain => ModeText::Chain,
                WakeMode::Count(count) => ModeText::Count(count),
            },
        }
    }
}

/// Rounded up: a wake that comes a little late still finds what is due.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

impl From<&WakeText> for DelayedWake {
    fn from(text: &WakeText) -> Self {
        let wake = Wake {
            topics: text
                .topics
                .iter()
                .map(|topic| Topic::from_encoded(topic))
                .collect(),
            group: text.group.as_deref().map(WaitGroup::new),
            mode: match text.mode {
                ModeText::All => WakeMode::All,
                ModeText::Chain => WakeMode::Chain,
                ModeText::Count(count) => WakeMode::Count(count),
            },
        };
        Self {
            wake,
            delay: Duration::from_millis(text.delay),
        }
    }
}

/// Packs `wakes` and `texts` into as few messages as fit `max_bytes` each. More than `max_messages`,
/// or a wake that does not fit at all, becomes "everything of the door".
pub(crate) fn pack(
    from: u64,
    wakes: &[DelayedWake],
    texts: &[Chunk],
    mut doors: Vec<String>,
    max_bytes: usize,
    max_messages: usize,
) -> Vec<String> {
    let mut packer = Packer {
        from,
        max_bytes: max_bytes - ENVELOPE,
        max_messages,
        messages: Vec::new(),
        room: 0,
    };
    for wake in wakes {
        let entry = WakeText::from(wake);
        let size = serde_json::to_string(&entry).map_or(usize::MAX, |text| text.len() + 1);
        if let Some(message) = packer.message_with_room(size) {
            message.wakes.push(entry);
        } else {
            let door = wake.wake.topics.first().map(Topic::door);
            let door = door.unwrap_or_default();
            if !doors.iter().any(|listed| listed == door) {
                doors.push(door.to_owned());
            }
        }
    }
    // A text that does not fit is lost.
    let most = packer.max_bytes;
    for (chunk, size) in texts.iter().flat_map(|text| text.split(most)) {
        let Some(message) = packer.message_with_room(size) else {
            break;
        };
        message.texts.push(chunk);
    }
    if !doors.is_empty() {
        packer.messages.push(Message {
            from,
            doors,
            ..Message::default()
        });
    }
    packer.messages.iter().map(text).collect()
}

/// Bytes of a message around its entries.
const ENVELOPE: usize = 128;

/// The messages of one send.
struct Packer {
    from: u64,
    /// Of the entries of one message.
    max_bytes: usize,
    max_messages: usize,
    messages: Vec<Message>,
    /// Bytes that the last message has left.
    room: usize,
}

impl Packer {
    /// The last message, or a new one if that has no room for `size` bytes. `None` if there may be no
    /// further message, or if none is long enough.
    fn message_with_room(&mut self, size: usize) -> Option<&mut Message> {
        if size > self.room {
            if size > self.max_bytes || self.messages.len() >= self.max_messages {
                return None;
            }
            self.messages.push(Message {
                from: self.from,
                ..Message::default()
            });
            self.room = self.max_bytes;
        }
        self.room -= size;
        self.messages.last_mut()
    }
}

pub(crate) fn text(message: &Message) -> String {
    serde_json::to_string(message).expect("a message is plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wake: Wake) -> DelayedWake {
        let delay = Duration::ZERO;
        DelayedWake { wake, delay }
    }

    fn wake(name: &str, count: u32) -> DelayedWake {
        now(Wake::count([Topic::new("queue", [name, "p\"1"])], count).in_group(WaitGroup::new("g")))
    }

    fn unpack(texts: &[String]) -> (Vec<DelayedWake>, Vec<String>) {
        let messages: Vec<Message> = texts
            .iter()
            .map(|text| serde_json::from_str(text).expect("it is JSON"))
            .collect();
        let wakes = messages
            .iter()
            .flat_map(|m| m.wakes.iter().map(DelayedWake::from))
            .collect();
        (wakes, messages.into_iter().flat_map(|m| m.doors).collect())
    }

    #[test]
    fn a_packed_message_is_unpacked_as_it_was() {
        let topic = || Topic::new("durable", ["orchestration"]);
        let later = DelayedWake {
            wake: Wake::count([topic()], 1),
            delay: Duration::from_millis(1_500),
        };
        let wakes = [
            wake("orders", 3),
            now(Wake::all(topic())),
            now(Wake::chain(topic())),
            later,
        ];
        let texts = pack(7, &wakes, &[], Vec::new(), 7_900, 8);
        assert_eq!(texts.len(), 1);
        assert!(!texts[0].contains('\0'), "PostgreSQL refuses NUL");
        assert_eq!(unpack(&texts), (wakes.to_vec(), vec![]));
    }

    #[test]
    fn many_wakes_are_spread_over_messages_that_fit() {
        let wakes: Vec<_> = (0..500).map(|n| wake(&format!("queue-{n}"), 1)).collect();
        let texts = pack(u64::MAX, &wakes, &[], Vec::new(), 7_900, 16);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= 7_900));
        assert_eq!(unpack(&texts), (wakes, vec![]));
    }

    #[test]
    fn too_many_or_too_long_wakes_become_a_recheck_of_the_door() {
        let wakes: Vec<_> = (0..5_000).map(|n| wake(&format!("queue-{n}"), 1)).collect();
        let texts = pack(1, &wakes, &[], Vec::new(), 7_900, 2);
        let (listed, doors) = unpack(&texts);
        assert_eq!((texts.len(), doors), (3, vec!["queue".to_owned()]));
        assert!(listed.len() < wakes.len());
        let texts = pack(1, &[wake(&"x".repeat(9_000), 1)], &[], Vec::new(), 7_900, 2);
        assert_eq!(unpack(&texts), (vec![], vec!["queue".to_owned()]));
    }

    #[test]
    fn a_long_text_is_sent_in_chunks_that_fit() {
        let text = "ä\"\0".repeat(5_000);
        let whole = Chunk::whole("jobs", text.clone(), 9);
        let texts = pack(3, &[], &[whole], Vec::new(), 7_900, 32);
        assert!(texts.len() > 2 && texts.iter().all(|text| text.len() <= 7_900));
        let mut chunks = crate::chunks::Chunks::default();
        let mut received = Vec::new();
        for text in &texts {
            let message: Message = serde_json::from_str(text).unwrap();
            for chunk in message.texts {
                received.extend(chunks.add(message.from, chunk));
            }
        }
        assert_eq!(received, [("jobs".to_owned(), text)]);
    }
}
