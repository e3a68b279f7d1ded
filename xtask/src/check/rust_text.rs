//! Rust source taken apart just far enough to tell code, strings and comments
//! from one another.

#[derive(Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) line: usize,
    pub(crate) text: String,
}

pub(crate) struct RustText {
    /// The source with comments and literals blanked, lines kept.
    pub(crate) code: String,
    pub(crate) strings: Vec<Literal>,
}

impl RustText {
    /// Without the inline test module, which by custom ends a file.
    pub(crate) fn outside_tests(source: &str) -> RustText {
        let whole = RustText::of(source);
        let Some(start) = start_of_test_module(&whole.code) else {
            return whole;
        };
        let before = whole.code[..start].to_owned();
        let last = before.lines().count();
        let strings = whole.strings.into_iter();
        RustText {
            strings: strings.filter(|string| string.line <= last).collect(),
            code: before,
        }
    }

    pub(crate) fn of(source: &str) -> RustText {
        let mut text = RustText {
            code: String::with_capacity(source.len()),
            strings: Vec::new(),
        };
        let mut rest = source;
        while let Some(first) = rest.chars().next() {
            let after_word = text
                .code
                .ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let (length, content) = if rest.starts_with("//") {
                (rest.find('\n').unwrap_or(rest.len()), None)
            } else if rest.starts_with("/*") {
                (block_comment(rest), None)
            } else if let Some(found) = string(rest, after_word) {
                (found.length, Some(found.content))
            } else if let Some(length) = character(rest) {
                (length, None)
            } else {
                text.code.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            };
            if let Some(content) = content {
                text.strings.push(Literal {
                    line: text.code.matches('\n').count() + 1,
                    text: content.to_owned(),
                });
            }
            let blanked = rest[..length].chars();
            text.code
                .extend(blanked.map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
        text
    }
}

fn start_of_test_module(code: &str) -> Option<usize> {
    code.match_indices("#[cfg(test)]")
        .find_map(|(start, attribute)| {
            let mut words = code[start + attribute.len()..].split_whitespace();
            let inline =
                words.next() == Some("mod") && words.nth(1).is_some_and(|w| w.starts_with('{'));
            inline.then_some(start)
        })
}

/// Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

struct Found<'a> {
    length: usize,
    content: &'a str,
}

/// `"…"` and `r#"…"#`; the prefixes `b` and `c` are left to the code.
fn string(text: &str, after_word: bool) -> Option<Found<'_>> {
    if let Some(raw) = text.strip_prefix('r')
        // `br"` begins after a word character too, but SQL is never bytes.
        && !after_word
    {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(content) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = content.find(&end).unwrap_or(content.len());
            let whole = (1 + hashes + 1 + length + end.len()).min(text.len());
            return Some(Found {
                length: whole,
                content: &content[..length],
            });
        }
    }
    let content = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in content.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                return Some(Found {
                    length: at + 2,
                    content: &content[..at],
                });
            }
            _ => {}
        }
    }
    Some(Found {
        length: text.len(),
        content,
    })
}

/// `'"'` would otherwise open a string. A lifetime is not a character.
fn character(text: &str) -> Option<usize> {
    let content = text.strip_prefix('\'')?;
    if let Some(escape) = content.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        let end = escape[first..].find('\'')?;
        return Some(2 + first + end + 1);
    }
    let first = content.chars().next()?.len_utf8();
    content[first..].starts_with('\'').then_some(first + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(source: &str) -> Vec<String> {
        let found = RustText::of(source).strings.into_iter();
        found.map(|literal| literal.text).collect()
    }

    #[test]
    fn strings_are_found_and_comments_are_not() {
        let source = "// \"no\"\nlet a = \"yes\"; /* \"no\" /* \"no\" */ \"no\" */ let b = r#\"a \"raw\" one\"#;";
        assert_eq!(strings(source), ["yes", "a \"raw\" one"]);
    }

    #[test]
    fn quotes_in_characters_and_escapes_open_nothing() {
        let source = r#"let a = ['"', '\'', '\\']; fn f<'a>(x: &'a str) { g("one \" two"); }"#;
        assert_eq!(strings(source), [r#"one \" two"#]);
    }

    #[test]
    fn a_string_knows_its_line_and_is_blank_in_the_code() {
        let text = RustText::of("a\n\"b\nc\"\n\"d\"");
        let lines: Vec<usize> = text.strings.iter().map(|string| string.line).collect();
        assert_eq!(lines, [2, 4]);
        assert_eq!(text.code, "a\n  \n  \n   ");
    }

    #[test]
    fn an_inline_test_module_is_left_out_and_a_test_file_is_not() {
        let inline = RustText::outside_tests("f(\"a\");\n#[cfg(test)]\nmod tests {\n g(\"b\"); }");
        assert_eq!(inline.strings.len(), 1);
        let declared = RustText::outside_tests("#[cfg(test)]\nmod tests;\nf(\"a\");");
        assert_eq!(declared.strings.len(), 1);
    }
}
