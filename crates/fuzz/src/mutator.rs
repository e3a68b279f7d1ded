//! Changes inputs at random, by what other inputs are made of. It knows no format: what it copies are
//! words, lines and spans of the kept inputs.

/// Numbers at which parsers err.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1e400",
    "65536",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "340282366920938463463374607431768211456",
];
/// Texts at which parsers err.
const TEXTS: &[&[u8]] = &[
    b"",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\u0000",
    b"\\ud800",
    b"\r\n",
    b"%00",
    b"%ff",
    b"null",
    b"__proto__",
    "\u{10ffff}".as_bytes(),
    "\u{e9}".as_bytes(),
];
/// Copies of one span, next to each other.
const MOST_COPIES: usize = 200;
/// Changes of one input.
const MOST_CHANGES: usize = 6;

/// Mutates inputs of one target. The same seed makes the same inputs.
#[derive(Debug)]
pub struct Mutator {
    inputs: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    state: u64,
}

impl Mutator {
    #[must_use]
    pub fn new(inputs: Vec<Vec<u8>>) -> Self {
        let mut words: Vec<Vec<u8>> = inputs.iter().flat_map(|input| words(input)).collect();
        words.sort();
        words.dedup();
        Self {
            inputs,
            words,
            state: 0,
        }
    }

    pub fn seed(&mut self, seed: u64) {
        self.state = seed;
    }

    /// One of the inputs, changed.
    pub fn next_input(&mut self, most: usize) -> Vec<u8> {
        let index = self.below(self.inputs.len());
        let mut input = self.inputs.get(index).cloned().unwrap_or_default();
        self.change(&mut input, most);
        input
    }

    /// Changes `input`, which has at most `most` bytes afterwards.
    pub fn change(&mut self, input: &mut Vec<u8>, most: usize) {
        for _ in 0..=self.below(MOST_CHANGES) {
            self.change_once(input);
        }
        input.truncate(most);
    }

    fn change_once(&mut self, input: &mut Vec<u8>) {
        let span = self.span(input.len());
        match self.below(10) {
            0 => drop(input.drain(span)),
            1 => {
                let byte = self.byte();
                if let Some(place) = input.get_mut(span.start) {
                    *place = byte;
                }
            }
            2 => {
                if let Some(place) = input.get_mut(span.start) {
                    *place ^= 1 << self.below(8);
                }
            }
            3 => {
                let copied = input[span.clone()].repeat(1 + self.below(3));
                drop(input.splice(span.start..span.start, copied));
            }
            4 => {
                let most = if self.below(8) == 0 { MOST_COPIES } else { 4 };
                let short = span.start..(span.start + 4).min(span.end);
                let copied = input[short].repeat(self.below(most));
                drop(input.splice(span.start..span.start, copied));
            }
            5 | 6 => {
                let (word, with) = (word_at(input, span.start), self.word());
                drop(input.splice(word, with));
            }
            7 => {
                let with = self.word();
                drop(input.splice(span.start..span.start, with));
            }
            8 => {
                let with = self.span_of_another();
                drop(input.splice(span, with));
            }
            _ => {
                let line = line_at(input, span.start);
                let copied = input[line].to_vec();
                let at = self.below(input.len() + 1);
                drop(input.splice(at..at, copied));
            }
        }
    }

    fn word(&mut self) -> Vec<u8> {
        match (self.below(6), self.words.len()) {
            (0, _) => NUMBERS[self.below(NUMBERS.len())].as_bytes().to_vec(),
            (1, _) | (_, 0) => TEXTS[self.below(TEXTS.len())].to_vec(),
            (_, count) => {
                let index = self.below(count);
                self.words[index].clone()
            }
        }
    }

    fn span_of_another(&mut self) -> Vec<u8> {
        if self.inputs.is_empty() {
            return Vec::new();
        }
        let index = self.below(self.inputs.len());
        let span = self.span(self.inputs[index].len());
        self.inputs[index][span].to_vec()
    }

    /// Mostly short.
    fn span(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 16 };
        start..(start + self.below(most + 1)).min(length)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }

    fn below(&mut self, end: usize) -> usize {
        let most = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % most).unwrap_or_default()
    }

    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn words(input: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let words = input.split(|byte| !in_word(*byte));
    let words = words.filter(|word| (1..=64).contains(&word.len()));
    words.map(<[u8]>::to_vec)
}

fn word_at(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let before = input[..at].iter().rev().take_while(|byte| in_word(**byte));
    let after = input[at..].iter().take_while(|byte| in_word(**byte));
    at - before.count()..at + after.count()
}

fn line_at(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let before = input[..at].iter().rev().take_while(|byte| **byte != b'\n');
    let after = input[at..].iter().take_while(|byte| **byte != b'\n');
    let end = (at + after.count() + 1).min(input.len());
    at - before.count()..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let inputs = || {
            let mut mutator = Mutator::new(vec![b"one two".to_vec(), b"{\"three\":3}".to_vec()]);
            mutator.seed(7);
            (0..1_000)
                .map(|_| mutator.next_input(100))
                .collect::<Vec<_>>()
        };
        assert_eq!(inputs(), inputs());
        assert!(inputs().iter().all(|input| input.len() <= 100));
        assert_ne!(inputs()[0], inputs()[1]);
    }

    #[test]
    fn nothing_to_begin_with_is_changed_too() {
        let mut mutator = Mutator::new(Vec::new());
        let found = (0..1_000).map(|_| mutator.next_input(100));
        assert!(found.max_by_key(Vec::len).is_some_and(|one| one.len() > 5));
    }
}
