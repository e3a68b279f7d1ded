//! Where upstream's split loses something, and what else is said of shapes.

use crate::parsed;

#[test]
fn the_fact_between_head_and_tail_has_a_name_of_its_own() {
    let text = "(s1: A) { x: X [x->b: B = s1->b: B] } => x";
    let split = parsed(text).split_before_successors();
    let head = split.head.expect("a head").describe();
    assert_eq!(
        head,
        "(s1: A) {\n    s1_2: B [\n        s1_2 = s1->b: B\n    ]\n} => s1_2\n"
    );
    let tail = split.tail.expect("a tail").describe();
    assert_eq!(
        tail,
        "(s1_2: B) {\n    x: X [\n        x->b: B = s1_2\n    ]\n} => x\n"
    );
}

#[test]
fn the_tail_has_the_givens_of_its_projection() {
    let text = "(a: A) { u: U [u = a->u: U] b: B [b = a->b: B] x: X [x->b: B = b] } => u";
    let tail = parsed(text).split_before_successors().tail.expect("a tail");
    let givens: Vec<_> = tail.givens.iter().map(|given| &*given.label.name).collect();
    assert_eq!(givens, ["u", "b"]);
}

#[test]
fn conditions_of_givens_are_kept_in_a_split() {
    let text = "(a: A [!E { c: C [c->a: A = a] }]) { u: U [u = a->u: U] } => u";
    let specification = parsed(text);
    let split = specification.split_before_successors();
    assert_eq!((split.head, split.tail), (None, Some(specification)));
}
