//! A function that ARCHITECTURE.md or CONTRIBUTING.md names as `Type::function` exists: a reader need
//! not look it up to be sure.

use super::sources::Source;

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

pub(crate) fn check(documents: &[Source], sources: &[Source]) -> Vec<String> {
    let documents = documents
        .iter()
        .filter(|document| DOCUMENTS.contains(&&*document.path));
    let mut failures = Vec::new();
    for document in documents {
        for (at, line) in document.text.lines().enumerate() {
            for (of_type, function) in named_functions(line) {
                if !sources
                    .iter()
                    .any(|source| defines(source, of_type, function))
                {
                    failures.push(format!(
                        "{}:{}: there is no `{of_type}::{function}`",
                        document.path,
                        at + 1
                    ));
                }
            }
        }
    }
    failures
}

/// Type and function of each `Type::function` between backticks.
fn named_functions(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let code = line.split('`').skip(1).step_by(2);
    code.filter_map(|code| {
        let (of_type, function) = code.split_once("::")?;
        let function = function.split('(').next()?;
        let is_name = |text: &str| !text.is_empty() && text.chars().all(is_in_name);
        let is_function = function.starts_with(char::is_lowercase) && is_name(function);
        (of_type.starts_with(char::is_uppercase) && is_name(of_type) && is_function)
            .then_some((of_type, function))
    })
}

/// Whether the source has an `impl` or a trait of the type, and the function.
fn defines(source: &Source, of_type: &str, function: &str) -> bool {
    let is_of_type = |line: &str| {
        let line = line.trim_start();
        let is_block = line.starts_with("impl") || has_word(line, "trait");
        is_block && has_word(line, of_type)
    };
    source.text.contains(of_type)
        && source.text.lines().any(is_of_type)
        && source
            .text
            .lines()
            .any(|line| has_word(line, "fn") && has_word(line, function))
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !is_in_name(c))
        .any(|part| part == word)
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(text: &str) -> Vec<String> {
        let source = "impl<T> Outbox<T> {\n    pub fn put_wakes(&self) {}\n}\nfn free() {}";
        let sources = [Source::new("crates/bus/src/outbox.rs", source)];
        check(&[Source::new("ARCHITECTURE.md", text)], &sources)
    }

    #[test]
    fn a_named_function_of_a_type_must_exist() {
        assert_eq!(failures("the outbox\n(`Outbox::put_wakes`)").len(), 0);
        assert_eq!(
            failures("a\n`Outbox::put` and `Inbox::put_wakes(wakes)`"),
            [
                "ARCHITECTURE.md:2: there is no `Outbox::put`",
                "ARCHITECTURE.md:2: there is no `Inbox::put_wakes`",
            ]
        );
    }

    #[test]
    fn modules_variants_and_other_documents_are_not_compared() {
        assert_eq!(
            failures("`web::hold`, Outbox::put, `Policy::Apply`").len(),
            0
        );
        let other = [Source::new("docs/queue.md", "`Outbox::put`")];
        assert_eq!(check(&other, &[]).len(), 0);
    }
}
