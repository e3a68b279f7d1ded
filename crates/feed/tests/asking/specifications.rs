//! Specifications by their texts.

use std::sync::Arc;

use wakeline_feed::{
    query::Query,
    specification::{Specification, parser},
};

/// Sites have posts, posts have comments.
pub(crate) const POSTS: &str = "(s: Site) { p: Post [p->site: Site = s] }";
pub(crate) const COMMENTS: &str =
    "(s: Site) { p: Post [p->site: Site = s] c: Comment [c->post: Post = p] }";

pub(crate) fn specification(text: &str) -> Specification {
    parser::parse(text).unwrap()
}

pub(crate) fn query(text: &str) -> Arc<Query> {
    Arc::new(Query::of_specification(&specification(text)).unwrap())
}
