//! The bodies of pushes: written once, with fresh random payloads for each request.

use std::sync::Arc;

use bytes::Bytes;

use super::args::QueueArgs;

/// 64 characters that JSON does not escape: six random bits each.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_DIGITS: usize = 16;

/// A body with gaps for the parts that differ from request to request.
#[derive(Debug)]
pub(super) struct PushTemplate {
    text: Vec<u8>,
    /// Where a payload's characters begin.
    payloads: Vec<usize>,
    payload_chars: usize,
    /// Where a transaction id's digits begin.
    ids: Vec<usize>,
}

impl PushTemplate {
    /// A push to `queue` of one item for each of `partitions`.
    pub(super) fn new<'a>(
        args: &QueueArgs,
        queue: &str,
        partitions: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut template = Self {
            text: br#"{"items":["#.to_vec(),
            payloads: Vec::new(),
            // Without the quotation marks.
            payload_chars: args.payload - 2,
            ids: Vec::new(),
        };
        for (index, partition) in partitions.into_iter().enumerate() {
            if index > 0 {
                template.text.push(b',');
            }
            template.item(args, queue, partition);
        }
        template.text.extend(b"]}");
        template
    }

    fn item(&mut self, args: &QueueArgs, queue: &str, partition: &str) {
        let head = format!(r#"{{"queue":"{queue}","partition":"{partition}","#);
        self.text.extend(head.as_bytes());
        if args.transaction_ids {
            self.text.extend(br#""transactionId":""#);
            self.ids.push(self.text.len());
            self.text.extend([b'0'; ID_DIGITS]);
            self.text.extend(br#"","#);
        }
        self.text.extend(br#""payload":""#);
        self.payloads.push(self.text.len());
        self.text
            .extend(std::iter::repeat_n(b'x', self.payload_chars));
        self.text.extend(br#""}"#);
    }

    pub(super) fn items(&self) -> usize {
        self.payloads.len()
    }
}

/// One template for each partition of the queue, whose items all go there.
pub(super) fn templates(args: &QueueArgs, queue: &str, batch: usize) -> Arc<[PushTemplate]> {
    (0..args.partitions)
        .map(|partition| {
            let name = format!("p{partition}");
            PushTemplate::new(args, queue, std::iter::repeat_n(&*name, batch))
        })
        .collect()
}

/// The bodies that one connection sends.
#[derive(Debug)]
pub(super) struct PushBodies {
    templates: Arc<[PushTemplate]>,
    next: usize,
    random: u64,
    id: u64,
}

impl PushBodies {
    /// Every connection starts with another template and has its own transaction ids.
    pub(super) fn new(templates: Arc<[PushTemplate]>, connection: usize) -> Self {
        Self {
            next: connection,
            random: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(connection as u64 + 1) | 1,
            id: (connection as u64) << 40,
            templates,
        }
    }

    /// How many items the next body has, and the body.
    pub(super) fn next(&mut self) -> (usize, Bytes) {
        let index = self.next % self.templates.len();
        self.next += 1;
        (self.templates[index].items(), self.of(index))
    }

    /// The body from this template.
    pub(super) fn of(&mut self, index: usize) -> Bytes {
        let templates = Arc::clone(&self.templates);
        let template = &templates[index];
        let mut text = template.text.clone();
        for &start in &template.payloads {
            for chars in text[start..start + template.payload_chars].chunks_mut(10) {
                let mut bits = self.draw();
                for char in chars {
                    *char = ALPHABET[(bits & 63) as usize];
                    bits >>= 6;
                }
            }
        }
        for &start in &template.ids {
            self.id += 1;
            let digits = format!("{:0width$x}", self.id, width = ID_DIGITS);
            text[start..start + ID_DIGITS].copy_from_slice(digits.as_bytes());
        }
        text.into()
    }

    /// xorshift64*: cheap, and random enough that nothing compresses.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::args::parse;

    fn bodies(line: &str, connection: usize) -> PushBodies {
        let args: QueueArgs = parse(line);
        let templates = ["a", "b"].map(|p| PushTemplate::new(&args, "q", [p, p]));
        PushBodies::new(Arc::new(templates), connection)
    }

    fn items(body: &Bytes) -> Vec<serde_json::Value> {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        body["items"].as_array().unwrap().clone()
    }

    #[test]
    fn no_two_payloads_are_alike_and_each_has_its_length() {
        let mut seen = HashSet::new();
        for connection in 0..3 {
            let mut bodies = bodies("queue", connection);
            for item in (0..10).flat_map(|_| items(&bodies.next().1)) {
                assert_eq!(item["payload"].to_string().len(), 100);
                assert!(seen.insert(item["payload"].to_string()));
                assert!(item.get("transactionId").is_none());
            }
        }
    }

    #[test]
    fn partitions_take_turns_and_transaction_ids_are_never_used_twice() {
        let mut seen = HashSet::new();
        for connection in 0..2 {
            let mut bodies = bodies("queue --transaction-ids", connection);
            let turns: Vec<String> = (0..4)
                .map(|_| {
                    let items = items(&bodies.next().1);
                    for item in &items {
                        assert!(seen.insert(item["transactionId"].to_string()));
                    }
                    items[0]["partition"].as_str().unwrap().to_owned()
                })
                .collect();
            let expected = [["a", "b", "a", "b"], ["b", "a", "b", "a"]][connection];
            assert_eq!(turns, expected);
        }
    }
}
