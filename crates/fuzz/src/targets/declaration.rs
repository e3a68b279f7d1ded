//! Facts that are declared in text: the body of `/jinaga/write`.

use wakeline_feed::{
    declaration::{self, facts},
    fact::Envelope,
    graph::Writer,
};

use super::specification::{check_place, known};

pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let (labels, user) = known();
    let declarations = match declaration::parse(text, &labels) {
        Ok(declarations) => declarations,
        Err(error) => return check_place(&error, text),
    };
    let Ok(resolved) = facts::resolve(&declarations, vec![user]) else {
        return;
    };
    assert_eq!(resolved.len(), declarations.len() + 1);
    let Ok(facts) = facts::saved(resolved) else {
        return;
    };
    // Each stands behind its predecessors, as they are saved.
    let mut writer = Writer::default();
    let mut graph = String::new();
    for Envelope { fact, signatures } in facts.into_iter().map(Envelope::unsigned) {
        let written = writer.write(&mut graph, &fact, &signatures);
        written.expect("declared facts stand behind their predecessors");
    }
}
