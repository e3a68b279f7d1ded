//! A blog: sites, their posts, and the comments on those.

use std::sync::Arc;

use serde_json::{Value, json};
use wakeline_bus::Bus;
use wakeline_feed::{
    fact::{Envelope, Fact, Reference},
    feed::Feed,
    feeds, graph,
    query::Query,
    specification::parser,
    store::{SaveOutcome, Seq, Store},
};

pub(crate) use crate::{build::build, facts::fact};

pub(crate) const POSTS: &str = "(s: Site) { p: Post [p->site: Site = s] }";
pub(crate) const COMMENTS: &str =
    "(s: Site) { p: Post [p->site: Site = s] c: Comment [c->post: Post = p] }";
/// The last of its feeds.
pub(crate) const KEPT_POSTS: &str =
    "(s: Site) { p: Post [p->site: Site = s !E { d: Delete [d->post: Post = p] }] }";
/// Upstream's feeds, and one for restored posts.
pub(crate) const KEPT_COMMENTS: &str = "(s: Site) { p: Post [p->site: Site = s
    !E { d: Delete [d->post: Post = p !E { r: Restore [r->delete: Delete = d] }] }]
    c: Comment [c->post: Post = p] }";
pub(crate) const POSTS_OF: &str =
    "(s: Site, a: Author) { p: Post [p->site: Site = s p->author: Author = a] }";

pub(crate) fn site(name: &str) -> Fact {
    fact("Site", name, &[])
}

pub(crate) fn author(name: &str) -> Fact {
    fact("Author", name, &[])
}

pub(crate) fn post(site: &Fact, name: &str) -> Fact {
    fact("Post", name, &[("site", site)])
}

pub(crate) fn posts(site: &Fact, prefix: &str, count: usize) -> Vec<Fact> {
    (0..count)
        .map(|number| post(site, &format!("{prefix} {number}")))
        .collect()
}

pub(crate) fn comment(post: &Fact, name: &str) -> Fact {
    fact("Comment", name, &[("post", post)])
}

pub(crate) fn references(facts: &[Fact]) -> Vec<Reference> {
    facts.iter().map(|fact| fact.reference.clone()).collect()
}

pub(crate) fn sorted(mut references: Vec<Reference>) -> Vec<Reference> {
    references.sort();
    references
}

pub(crate) fn envelopes(facts: &[Fact]) -> Arc<[Envelope]> {
    facts.iter().cloned().map(Envelope::unsigned).collect()
}

/// The seq of the last of them.
pub(crate) async fn saved(store: &dyn Store, bus: &Arc<Bus>, facts: &[Fact]) -> Seq {
    match store.save(envelopes(facts)).commit(bus).await.unwrap() {
        SaveOutcome::Stored { new } => new.last().map_or(0, |(_, at)| *at),
        refused => panic!("{refused:?}"),
    }
}

pub(crate) fn as_graph(facts: &[Fact]) -> String {
    let (mut writer, mut text) = (graph::Writer::default(), String::new());
    for fact in facts {
        writer.write(&mut text, fact, &[]).unwrap();
    }
    text
}

/// The last feed of a specification.
pub(crate) fn feed(text: &str, given: &[&Fact]) -> Arc<Feed> {
    let specification = parser::parse(text).unwrap();
    let given: Vec<Reference> = given.iter().map(|fact| fact.reference.clone()).collect();
    let feed = feeds::of(&specification, &given).unwrap().pop().unwrap();
    Arc::new(Feed {
        hash: feed.hash.into(),
        query: Arc::new(Query::of_specification(&feed.specification).unwrap()),
        specification: feed.specification,
        given: feed.given,
        owner: None,
    })
}

/// A request's text: the facts by their hashes, then the specification.
pub(crate) fn request_text(text: &str, given: &[&Fact]) -> String {
    let names = text[1..text.find(')').unwrap()].split(',');
    let mut out = String::new();
    for (name, fact) in names.zip(given) {
        let reference = &fact.reference;
        out.push_str(&format!("let {} = #{}\n", name.trim(), reference.hash));
    }
    out + text
}

pub(crate) fn reference_json(reference: &Reference) -> Value {
    json!({ "type": &*reference.kind, "hash": reference.hash.to_string() })
}

/// As `/save` takes it: predecessors by their hashes.
pub(crate) fn as_json(fact: &Fact) -> Value {
    let mut body = reference_json(&fact.reference);
    let roles = fact.references();
    let roles = roles.map(|(role, reference)| (role.to_owned(), reference_json(reference)));
    body["predecessors"] = Value::Object(roles.collect());
    body["fields"] = serde_json::from_str(&fact.fields).unwrap();
    body
}
