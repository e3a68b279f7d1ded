//! Rust source, separated into code, strings and comments.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};

#[derive(Debug, PartialEq)]
pub(crate) struct StringLiteral {
    pub(crate) line: usize,
    pub(crate) text: String,
}

pub(crate) struct RustText {
    /// The source with comments, strings and characters blanked, lines kept.
    pub(crate) code: String,
    pub(crate) strings: Vec<StringLiteral>,
}

impl RustText {
    /// Without the inline test module, which by custom ends a file.
    pub(crate) fn outside_tests(source: &str) -> RustText {
        let whole = RustText::of(source);
        match start_of_test_module(&whole.code) {
            Some(start) => RustText::of(&source[..start]),
            None => whole,
        }
    }

    /// Empty for a source that is not Rust, which the compiler reports.
    pub(crate) fn of(source: &str) -> RustText {
        let blank = |byte| if byte == b'\n' { byte } else { b' ' };
        let mut reader = Reader {
            source,
            code: source.bytes().map(blank).collect(),
            strings: Vec::new(),
        };
        reader.read(source.parse().unwrap_or_default());
        RustText {
            code: String::from_utf8(reader.code).unwrap_or_default(),
            strings: reader.strings,
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    code: Vec<u8>,
    strings: Vec<StringLiteral>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    self.keep(group.span_open());
                    // The tokens of `/// text` are `#[doc = "text"]`, but it is a comment.
                    if !self.source[group.span().byte_range()].starts_with('/') {
                        self.read(group.stream());
                    }
                    self.keep(group.span_close());
                }
                TokenTree::Literal(literal) => self.read_literal(&literal),
                other => self.keep(other.span()),
            }
        }
    }

    fn read_literal(&mut self, literal: &Literal) {
        let text = literal.to_string();
        if text.ends_with('\'') {
            return;
        }
        match (text.find('"'), text.rfind('"')) {
            (Some(start), Some(end)) => self.strings.push(StringLiteral {
                line: literal.span().start().line,
                text: text[start + 1..end].to_owned(),
            }),
            _ => self.keep(literal.span()),
        }
    }

    fn keep(&mut self, span: Span) {
        let range = span.byte_range();
        let text = &self.source[range.clone()];
        if !text.starts_with("//") && !text.starts_with("/*") {
            self.code[range].copy_from_slice(text.as_bytes());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(source: &str) -> Vec<String> {
        let found = RustText::of(source).strings.into_iter();
        found.map(|literal| literal.text).collect()
    }

    #[test]
    fn strings_are_found_and_comments_are_not() {
        let source = "// \"no\"\nlet a = \"yes\"; /* \"no\" /* \"no\" */ \"no\" */ let b = r#\"a \"raw\" one\"#;\
            \n/// \"no\"\nfn f() {}";
        assert_eq!(strings(source), ["yes", "a \"raw\" one"]);
        assert!(!RustText::of(source).code.contains("no"));
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
