//! Patterns of paths: `*` and `?` within a part, `[…]` for one of some characters, `**` for any
//! number of parts.

/// Characters of a pattern at most: what it costs grows with it.
const MAX_CHARS: usize = 1_000;

#[derive(Clone, Debug)]
pub(super) struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Any number of parts.
    Any,
    One(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Any number of characters.
    Many,
    Single,
    Exactly(char),
    OneOf {
        ranges: Vec<(char, char)>,
        is_not: bool,
    },
}

impl Glob {
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.chars().count() > MAX_CHARS {
            return Err(format!("glob: more than {MAX_CHARS} characters"));
        }
        let parts = pattern.split('/').filter(|part| !part.is_empty());
        let parts: Vec<_> = parts
            .map(|part| match part {
                ".." | "." => Err(format!("glob: '{part}' is no part of a pattern")),
                "**" => Ok(Part::Any),
                part => Ok(Part::One(tokens(part))),
            })
            .collect::<Result<_, _>>()?;
        if parts.is_empty() {
            return Err("glob: it is empty".to_owned());
        }
        Ok(Self { parts })
    }

    /// At any depth.
    pub(super) fn anywhere(mut self) -> Self {
        self.parts.insert(0, Part::Any);
        self
    }

    /// Whether it fits the path of these names, and whether it can fit one below that.
    pub(super) fn fits(&self, names: &[&str]) -> GlobMatch {
        // Where in the pattern one can be after the names so far.
        let mut at = vec![false; self.parts.len() + 1];
        at[0] = true;
        self.pass(&mut at);
        for name in names {
            let mut next = vec![false; at.len()];
            for (index, part) in self.parts.iter().enumerate() {
                if !at[index] {
                    continue;
                }
                match part {
                    Part::Any => next[index] = true,
                    Part::One(tokens) if matches(tokens, name) => next[index + 1] = true,
                    Part::One(_) => {}
                }
            }
            self.pass(&mut next);
            at = next;
        }
        let (end, within) = at.split_last().expect("there is always an end");
        GlobMatch {
            here: *end,
            below: within.contains(&true),
        }
    }

    /// `**` may also be no part at all.
    fn pass(&self, at: &mut [bool]) {
        for (index, part) in self.parts.iter().enumerate() {
            if at[index] && *part == Part::Any {
                at[index + 1] = true;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GlobMatch {
    pub(super) here: bool,
    pub(super) below: bool,
}

fn tokens(part: &str) -> Vec<Token> {
    let chars: Vec<char> = part.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(char) = chars.get(at) {
        at += 1;
        let token = match char {
            '*' if tokens.last() == Some(&Token::Many) => continue,
            '*' => Token::Many,
            '?' => Token::Single,
            '[' => match one_of(&chars[at..]) {
                Some((token, length)) => {
                    at += length;
                    token
                }
                // A bracket that is never closed is a bracket.
                None => Token::Exactly('['),
            },
            other => Token::Exactly(*other),
        };
        tokens.push(token);
    }
    tokens
}

/// The set after a `[`, and its length with its `]`.
fn one_of(chars: &[char]) -> Option<(Token, usize)> {
    let is_not = matches!(chars.first(), Some('!' | '^'));
    let begin = usize::from(is_not);
    // A bracket that comes first is one of the characters.
    let length = chars.iter().skip(begin + 1).position(|char| *char == ']')?;
    let mut members = &chars[begin..=begin + length];
    let mut ranges = Vec::new();
    while let [first, rest @ ..] = members {
        match rest {
            ['-', last, rest @ ..] => {
                ranges.push((*first, *last));
                members = rest;
            }
            rest => {
                ranges.push((*first, *first));
                members = rest;
            }
        }
    }
    Some((Token::OneOf { ranges, is_not }, begin + length + 2))
}

/// By the last `*` seen: each character of the name is looked at once per `*` at most.
fn matches(tokens: &[Token], name: &str) -> bool {
    // As shells and Python have it: what is hidden is asked for by its dot.
    if name.starts_with('.') && tokens.first() != Some(&Token::Exactly('.')) {
        return false;
    }
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    let mut retry = None;
    while at < name.len() {
        if tokens.get(token) == Some(&Token::Many) {
            retry = Some((token, at));
            token += 1;
        } else if tokens.get(token).is_some_and(|token| token.fits(name[at])) {
            token += 1;
            at += 1;
        } else if let Some((many, from)) = retry {
            retry = Some((many, from + 1));
            token = many + 1;
            at = from + 1;
        } else {
            return false;
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Many)
}

impl Token {
    fn fits(&self, char: char) -> bool {
        match self {
            Self::Many => false,
            Self::Single => true,
            Self::Exactly(exactly) => *exactly == char,
            Self::OneOf { ranges, is_not } => {
                let within = |(first, last): &(char, char)| (*first..=*last).contains(&char);
                ranges.iter().any(within) != *is_not
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let names: Vec<_> = path.split('/').collect();
        Glob::parse(pattern).unwrap().fits(&names).here
    }

    #[test]
    fn patterns_match_paths() {
        for (pattern, path) in [
            ("*.xyz", "a.xyz"),
            ("*", "a"),
            ("a*b*c", "axxbyybzc"),
            ("?at", "cat"),
            ("[bc]at", "cat"),
            ("[a-c]at", "bat"),
            ("[!a-b]at", "cat"),
            ("[]x]", "]"),
            ("[x", "[x"),
            ("[a-]", "-"),
            ("sub/*.xyz", "sub/a.xyz"),
            ("**/*.xyz", "a.xyz"),
            ("**/*.xyz", "a/b/c.xyz"),
            ("a/**", "a/b/c"),
            ("a/**/d", "a/d"),
            (".*", ".hidden"),
            ("*", "ä"),
            ("?", "😀"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.xyz", "a.xyzz"),
            ("*.xyz", "sub/a.xyz"),
            ("a*b", "a"),
            ("?", ""),
            ("[!a]at", "aat"),
            ("[c-a]", "b"),
            ("*", ".hidden"),
            ("a/**/d", "a/b/c"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_directory_is_entered_only_if_the_pattern_can_match_below_it() {
        let glob = Glob::parse("a/*/c").unwrap();
        let below = |names: &[&str]| glob.fits(names).below;
        assert!(below(&[]));
        assert!(below(&["a"]));
        assert!(!below(&["b"]));
        assert!(below(&["a", "b"]));
        assert!(!below(&["a", "b", "c"]));
        assert!(Glob::parse("c").unwrap().anywhere().fits(&["a", "b"]).below);
    }

    #[test]
    fn a_pattern_out_of_the_root_is_refused() {
        for pattern in ["../x", "a/./b", "", "/", &"*".repeat(1_001)] {
            assert!(Glob::parse(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_with_many_stars_is_matched_fast() {
        let pattern = "*a".repeat(400);
        assert!(!fits(&pattern, &"a".repeat(300)));
        assert!(fits(&pattern, &"a".repeat(400)));
    }
}
