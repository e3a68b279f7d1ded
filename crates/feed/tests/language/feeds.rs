//! Feeds where upstream fails or would not deliver what is asked for.

use wakeline_feed::{
    feeds::{self, TooManyFeeds},
    specification::{Specification, parser},
};

use crate::parsed;

fn feeds_of(text: &str) -> Vec<String> {
    described(&feeds::build(&parsed(text)).expect("few feeds"))
}

/// The feeds that upstream does not have.
fn added_to(text: &str) -> Vec<String> {
    described(&feeds::build_added(&parsed(text)))
}

fn described(feeds: &[Specification]) -> Vec<String> {
    let texts = feeds.iter().map(|feed| {
        let text = feed.describe();
        assert_eq!(parser::parse_feed(&text).as_ref(), Ok(feed));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    texts.collect()
}

#[test]
fn a_condition_within_a_negation_belongs_to_it() {
    let feeds = feeds_of(
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p E { c: C [c->d: D = d] }] }] }",
    );
    assert_eq!(
        feeds,
        [
            "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p ] c: C [ c->d: D = d ] }",
            "(s: S) { p: P [ p->s: S = s !E { d: D [ d->p: P = p ] c: C [ c->d: D = d ] } ] }",
        ]
    );
}

#[test]
fn a_repeated_name_gets_a_name_of_its_own() {
    let feeds = feeds_of(
        "(s: S) { p: P [p->s: S = s E { x: A [x->p: P = p] } E { x: A [x->q: P = p] }] \
         x: B [x->p: P = p] } => { c = { y: C [y->b: B = x] } }",
    );
    let tuple = "p: P [ p->s: S = s ] x: A [ x->p: P = p ] x_2: A [ x_2->q: P = p ] \
                 x_3: B [ x_3->p: P = p ]";
    assert_eq!(
        feeds,
        [
            format!("(s: S) {{ {tuple} }}"),
            format!("(s: S) {{ {tuple} y: C [ y->b: B = x_3 ] }}"),
        ]
    );
}

#[test]
fn an_equality_is_written_before_a_path() {
    let feeds = feeds_of("(s: S, t: T) { p: P [p->s: S = s] q: P [q->t: T = t q = p] }");
    assert_eq!(
        feeds,
        ["(s: S, t: T) { p: P [ p->s: S = s ] q: P [ q = p q->t: T = t ] }"]
    );
}

#[test]
fn collections_below_a_restored_fact_have_feeds() {
    let feeds = feeds_of(
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }] \
         c: C [c->p: P = p] } => { likes = { l: L [l->c: C = c] } }",
    );
    let restored = "p: P [ p->s: S = s ] d: D [ d->p: P = p ] r: R [ r->d: D = d ]";
    let kept = "p: P [ p->s: S = s !E { d: D [ d->p: P = p ] } ] c: C [ c->p: P = p ]";
    assert_eq!(
        feeds,
        [
            format!("(s: S) {{ {restored} }}"),
            format!("(s: S) {{ {restored} c: C [ c->p: P = p ] }}"),
            format!("(s: S) {{ {restored} c: C [ c->p: P = p ] l: L [ l->c: C = c ] }}"),
            "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p !E { r: R [ r->d: D = d ] } ] }"
                .to_owned(),
            format!("(s: S) {{ {kept} }}"),
            format!("(s: S) {{ {kept} l: L [ l->c: C = c ] }}"),
        ]
    );
}

#[test]
fn a_name_of_a_negation_may_be_used_again_in_a_collection() {
    let feeds = feeds_of(
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }] } \
         => { c = { r: C [r->p: P = p] } }",
    );
    assert_eq!(
        feeds[1],
        "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p ] r: R [ r->d: D = d ] \
         r_2: C [ r_2->p: P = p ] }"
    );
}

#[test]
fn feeds_that_multiply_are_refused() {
    let depth = 12;
    let mut text = "(x0: A) {}".to_owned();
    for n in 1..depth {
        text.push_str(&format!(
            " => {{ c = {{ x{n}: A [x{n}->a: A = x{} !E {{ d: A [d->a: A = x{n} !E {{ r: A [r->a: A = d] }}] }}] }}",
            n - 1
        ));
    }
    text.push_str(&" }".repeat(depth - 1));
    assert_eq!(feeds::build(&parsed(&text)), Err(TooManyFeeds));
}

#[test]
fn feeds_that_are_large_together_are_refused() {
    let condition = |n: usize| format!("!E {{ d: A [d->a: A{} = x{n}] }}", "->a: A".repeat(3));
    let matches: String = (1..100)
        .map(|n| format!("x{n}: A [x{n}->a: A = x{} {}]", n - 1, condition(n)))
        .collect();
    assert_eq!(
        feeds::build(&parsed(&format!("(x0: A) {{ {matches} }}"))),
        Err(TooManyFeeds)
    );
}

/// A feed that the parser accepts can be read back from the store.
#[test]
fn the_longest_feed_can_be_read_again() {
    let (kind, role) = ("K".repeat(200), "r".repeat(200));
    let deep = 40;
    let mut text = format!("(x0: {kind}) {{ x1: {kind} [x1->{role}: {kind} = x0 ");
    for n in 2..deep {
        let quantifier = if n == 2 { "!E" } else { "E" };
        text.push_str(&format!(
            "{quantifier} {{ x{n}: {kind} [x{n}{} = x{} ",
            format!("->{role}: {kind}").repeat(20),
            n - 1
        ));
    }
    text.push_str(&"] }".repeat(deep - 1));
    let feeds = feeds::build(&parsed(&text)).expect("few feeds");
    assert_eq!(feeds.len(), 2);
    for feed in feeds {
        assert_eq!(parser::parse_feed(&feed.describe()), Ok(feed));
    }
}

#[test]
fn a_name_of_a_negation_may_be_used_again_after_it() {
    let feeds = feeds_of(
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }] \
         r: C [r->p: P = p] } => { likes = { l: L [l->c: C = r] } }",
    );
    assert_eq!(
        feeds[1],
        "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p ] r: R [ r->d: D = d ] \
         r_2: C [ r_2->p: P = p ] }"
    );
}

const RESTORED: &str = "p: P [ p->s: S = s !E { d: D [ d->p: P = p !E { r: R [ r->d: D = d ] } ] } ] \
                        d: D [ d->p: P = p ] r: R [ r->d: D = d ]";

#[test]
fn matches_after_a_restored_fact_have_a_feed_of_their_own() {
    let text = "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }] \
                c: C [c->p: P = p] }";
    assert_eq!(
        added_to(text),
        [format!("(s: S) {{ {RESTORED} c: C [ c->p: P = p ] }}")]
    );
    // As upstream builds them.
    assert_eq!(
        feeds_of(text),
        [
            "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p ] r: R [ r->d: D = d ] }",
            "(s: S) { p: P [ p->s: S = s ] d: D [ d->p: P = p !E { r: R [ r->d: D = d ] } ] }",
            "(s: S) { p: P [ p->s: S = s !E { d: D [ d->p: P = p ] } ] c: C [ c->p: P = p ] }",
        ]
    );
}

#[test]
fn negations_after_a_restored_fact_have_feeds_of_their_own() {
    let added = added_to(
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }] \
         c: C [c->p: P = p !E { e: E [e->c: C = c] }] }",
    );
    assert_eq!(
        added,
        [
            format!("(s: S) {{ {RESTORED} c: C [ c->p: P = p ] e: E [ e->c: C = c ] }}"),
            format!("(s: S) {{ {RESTORED} c: C [ c->p: P = p !E {{ e: E [ e->c: C = c ] }} ] }}"),
        ]
    );
}

#[test]
fn no_feed_is_added_without_a_match_after_the_restored_fact() {
    let restored = "p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }]";
    let texts = [
        format!("(s: S) {{ {restored} }}"),
        format!("(s: S) {{ b: B [b->s: S = s] {restored} }}"),
        format!("(s: S) {{ {restored} }} => {{ c = {{ c: C [c->p: P = p] }} }}"),
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p] }] c: C [c->p: P = p] }".to_owned(),
    ];
    for text in texts {
        assert_eq!(added_to(&text), [""; 0], "{text}");
    }
}

#[test]
fn a_given_of_a_condition_is_a_given_of_the_added_feed() {
    let added = added_to(
        "(s: S, t: T) { p: P [p->s: S = s !E { d: D [d->p: P = p \
         !E { r: R [r->d: D = d r->t: T = t] }] }] c: C [c->p: P = p] }",
    );
    assert_eq!(added.len(), 1);
    assert!(added[0].starts_with("(s: S, t: T) {"), "{}", added[0]);
}

/// One after another, each of which can be brought back.
fn chain(length: usize) -> String {
    let matches: String = (1..=length)
        .map(|n| {
            let condition = format!(
                "!E {{ d{n}: D [d{n}->a: A = x{n} !E {{ r{n}: R [r{n}->d: D = d{n}] }}] }}"
            );
            format!("x{n}: A [x{n}->a: A = x{} {condition}]", n - 1)
        })
        .collect();
    format!("(x0: A) {{ {matches} }}")
}

#[test]
fn the_number_of_added_feeds_does_not_double_with_every_match() {
    let mut counts = Vec::new();
    for length in 1..8 {
        counts.push(added_to(&chain(length)).len());
    }
    // For each place the rest behind it, and two feeds for each further place.
    assert_eq!(counts, [0, 3, 8, 15, 24, 35, 48]);
}

#[test]
fn a_specification_that_upstream_serves_is_not_refused_for_its_added_feeds() {
    let long = chain(30);
    assert!(feeds::build(&parsed(&long)).is_ok());
    assert_eq!(added_to(&long), [""; 0]);
}
