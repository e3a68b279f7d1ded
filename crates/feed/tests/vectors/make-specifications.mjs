// Writes what the real parser, feed builder and skeleton of the npm package `jinaga` make of the
// specifications below and of random ones:
//   NODE_PATH=<where jinaga is installed>/node_modules node make-specifications.mjs
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const load = createRequire((process.env.NODE_PATH ?? "/tmp/npm/node_modules") + "/");
const jinaga = load("jinaga");

const site = "s: Blog.Site";
const post = "p: Blog.Post [p->site: Blog.Site = s]";
const written = {
    "successors": `(${site}) { ${post} }`,
    "a whole fact": `(${site}) { ${post} } => p`,
    "a field": `(${site}) { ${post} } => p.title`,
    "a hash": `(${site}) { ${post} } => #p`,
    "a time": `(${site}) { ${post} } => @p`,
    "a composite": `(${site}) { ${post} } => { b = p.title a = #p c = @p d = p e = s.domain }`,
    "names in the order of people": `(${site}) { ${post} } => { b = p B = p a_b = p ab = p a1 = p a = p A = p _z = p aB = p Ab = p a10 = p a2 = p AB = p z = p _ = p a_ = p aa = p a_1 = p }`,
    "nothing": `(${site}) { }`,
    "nothing but the given": `(${site}) { } => s`,
    "identity": `(${site}) { t: Blog.Site [t = s] } => t`,
    "predecessors": `(p: Blog.Post) { s: Blog.Site [s = p->site: Blog.Site] } => s`,
    "predecessors of predecessors": `(c: Comment) { s: Blog.Site [s = c->post: Blog.Post->site: Blog.Site] } => s.domain`,
    "several roles to the left": `(${site}) { c: Comment [c->post: Blog.Post->site: Blog.Site = s] }`,
    "many roles to the left": `(${site}) { l: Like [l->reply: Reply->comment: Comment->post: Blog.Post->site: Blog.Site = s] } => l`,
    "up and down": `(c: Comment) { o: Comment [o->post: Blog.Post = c->post: Blog.Post] }`,
    "far up and far down": `(l: Like) { o: Like [o->comment: Comment->post: Blog.Post = l->comment: Comment->post: Blog.Post] } => o`,
    "level by level": `(${site}) { ${post} c: Comment [c->post: Blog.Post = p] l: Like [l->comment: Comment = c] }`,
    "with an author": `(${site}) { ${post} u: Jinaga.User [u = p->author: Jinaga.User] n: Name [n->user: Jinaga.User = u] }`,
    "two givens": `(${site}, u: Jinaga.User) { p: Blog.Post [p->site: Blog.Site = s p->author: Jinaga.User = u] }`,
    "two givens the other way": `(u: Jinaga.User, ${site}) { p: Blog.Post [p->site: Blog.Site = s p->author: Jinaga.User = u] }`,
    "two givens, conditions the other way": `(${site}, u: Jinaga.User) { p: Blog.Post [p->author: Jinaga.User = u p->site: Blog.Site = s] }`,
    "a given without use": `(${site}, u: Jinaga.User) { ${post} }`,
    "the second given only": `(u: Jinaga.User, ${site}) { ${post} }`,
    "a given used late": `(u: Jinaga.User, ${site}) { ${post} c: Comment [c->post: Blog.Post = p c->author: Jinaga.User = u] }`,
    "a given used twice": `(${site}) { ${post} q: Page [q->site: Blog.Site = s q->post: Blog.Post = p] }`,
    "three givens": `(a: A, b: B, c: C) { x: X [x->c: C = c x->a: A = a x->b: B = b] }`,
    "three givens apart": `(a: A, b: B, c: C) { x: X [x->c: C = c] y: Y [y->x: X = x y->a: A = a] z: Z [z->y: Y = y z->b: B = b] }`,
    "givens of one type": `(a: A, b: A) { x: X [x->left: A = a x->right: A = b] }`,
    "given roles to the right": `(c: Comment, u: Jinaga.User) { o: Comment [o->post: Blog.Post = c->post: Blog.Post o->author: Jinaga.User = u] }`,
    "not exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p] }] }`,
    "exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { q: Published [q->post: Blog.Post = p] }] }`,
    "exists and not exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { q: Published [q->post: Blog.Post = p] } !E { d: Deleted [d->post: Blog.Post = p] }] }`,
    "not exists and exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p] } E { q: Published [q->post: Blog.Post = p] }] }`,
    "two not exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p] } !E { h: Hidden [h->post: Blog.Post = p] }] }`,
    "two exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { d: Published [d->post: Blog.Post = p] } E { h: Checked [h->post: Blog.Post = p] }] }`,
    "deleted and restored": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p !E { r: Restored [r->deleted: Deleted = d] }] }] }`,
    "restored with collections": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p !E { r: Restored [r->deleted: Deleted = d] }] }] } => { comments = { c: Comment [c->post: Blog.Post = p] } title = p.title likes = { l: Like [l->post: Blog.Post = p] } => l.n }`,
    "restored thrice": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p !E { r: Restored [r->deleted: Deleted = d !E { x: Undone [x->restored: Restored = r !E { y: Redone [y->undone: Undone = x] }] }] }] }] } => { comments = { c: Comment [c->post: Blog.Post = p] } }`,
    "restored in a collection": `(${site}) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p !E { d: Deleted [d->comment: Comment = c !E { r: Restored [r->deleted: Deleted = d] }] }] } => { likes = { l: Like [l->comment: Comment = c] } } }`,
    "restored outside and inside": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p !E { r: Restored [r->deleted: Deleted = d] }] }] } => { comments = { c: Comment [c->post: Blog.Post = p !E { e: Deleted [e->comment: Comment = c !E { f: Restored [f->deleted: Deleted = e] }] }] } => { likes = { l: Like [l->comment: Comment = c] } } }`,
    "restored by a given": `(${site}, u: Jinaga.User) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p !E { r: Restored [r->deleted: Deleted = d r->by: Jinaga.User = u] }] }] } => { mine = { c: Comment [c->post: Blog.Post = p c->author: Jinaga.User = u] } }`,
    "not exists of a given": `(${site}, u: Jinaga.User) { p: Blog.Post [p->site: Blog.Site = s !E { d: Read [d->post: Blog.Post = p d->by: Jinaga.User = u] }] }`,
    "not exists of a given, then used": `(${site}, u: Jinaga.User) { p: Blog.Post [p->site: Blog.Site = s !E { d: Read [d->post: Blog.Post = p d->by: Jinaga.User = u] }] c: Comment [c->post: Blog.Post = p c->author: Jinaga.User = u] }`,
    "exists of a given": `(${site}, u: Jinaga.User) { p: Blog.Post [p->site: Blog.Site = s E { d: Read [d->post: Blog.Post = p d->by: Jinaga.User = u] }] }`,
    "not exists of two": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deletion [d->post: Blog.Post = p] c: Confirmed [c->deletion: Deletion = d] }] }`,
    "not exists through roles": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Confirmed [d->deletion: Deletion->post: Blog.Post = p] }] }`,
    "not exists with right roles": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { b: Ban [b->user: Jinaga.User = p->author: Jinaga.User] }] }`,
    "exists in exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { q: Published [q->post: Blog.Post = p E { a: Approved [a->published: Published = q] }] }] }`,
    "not exists in exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { q: Published [q->post: Blog.Post = p !E { w: Withdrawn [w->published: Published = q] }] }] }`,
    "exists, then a match, then not exists": `(${site}) { p: Blog.Post [p->site: Blog.Site = s E { q: Published [q->post: Blog.Post = p] }] c: Comment [c->post: Blog.Post = p !E { d: Deleted [d->comment: Comment = c] }] }`,
    "conditions on each level": `(${site}) { p: Blog.Post [p->site: Blog.Site = s !E { d: Deleted [d->post: Blog.Post = p] }] c: Comment [c->post: Blog.Post = p !E { e: Deleted [e->comment: Comment = c] }] }`,
    "the latest title": `(p: Blog.Post) { t: Title [t->post: Blog.Post = p !E { n: Title [n->prior: Title = t] }] } => t.value`,
    "a condition names an earlier match": `(${site}) { ${post} c: Comment [c->post: Blog.Post = p !E { r: Reply [r->comment: Comment = c r->by: Jinaga.User = p->author: Jinaga.User] }] }`,
    "a collection": `(${site}) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p] } => c.text }`,
    "a collection without projection": `(${site}) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p] } }`,
    "two collections": `(${site}) { ${post} } => { z = { c: Comment [c->post: Blog.Post = p] } => c a = { l: Like [l->post: Blog.Post = p] } => #l }`,
    "a collection in a collection": `(${site}) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p] } => { text = c.text likes = { l: Like [l->comment: Comment = c] } => @l } id = #p }`,
    "collections three deep": `(a: A) { b: B [b->a: A = a] } => { c = { c: C [c->b: B = b] } => { d = { d: D [d->c: C = c] } => { e = { e: E1 [e->d: D = d] } => { f = e.f } } } }`,
    "a collection of the given": `(${site}) { } => { posts = { ${post} } => p.title pages = { q: Page [q->site: Blog.Site = s] } => q }`,
    "a collection of predecessors": `(${site}) { ${post} } => { authors = { u: Jinaga.User [u = p->author: Jinaga.User] } => u.publicKey }`,
    "a collection with conditions": `(${site}) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p !E { d: Deleted [d->comment: Comment = c] }] } => c }`,
    "a collection with a given": `(${site}, u: Jinaga.User) { ${post} } => { mine = { c: Comment [c->post: Blog.Post = p c->author: Jinaga.User = u] } => c }`,
    "a given again within": `(${site}, u: Jinaga.User) { ${post} } => { mine = { c: Comment [c->post: Blog.Post = p c->author: Jinaga.User = u] } => { likes = { l: Like [l->comment: Comment = c l->by: Jinaga.User = u] } => l } }`,
    "a given first within": `(${site}, u: Jinaga.User) { ${post} } => { comments = { c: Comment [c->post: Blog.Post = p] } => { likes = { l: Like [l->comment: Comment = c l->by: Jinaga.User = u] } => l } }`,
    "names again in collections": `(${site}) { ${post} } => { a = { x: Comment [x->post: Blog.Post = p] } => x b = { x: Like [x->post: Blog.Post = p] } => x }`,
    "the same feed twice": `(${site}) { ${post} } => { a = { x: Comment [x->post: Blog.Post = p] } => x.a b = { y: Comment [y->post: Blog.Post = p] } => y.b }`,
    "two paths to one": `(${site}) { ${post} l: Link [l->from: Blog.Post = p l->to: Blog.Post->site: Blog.Site = s] }`,
    "two far paths to one": `(a: A, b: B) { x: X [x->m: M->a: A = a x->n: N->b: B = b] }`,
    "two right paths to one": `(a: A, b: A) { x: X [x = a->x: X x = b->x: X] y: Y [y->x: X = x] }`,
    "right roles after left ones": `(a: A, b: B) { x: X [x->a: A = a x = b->x: X] }`,
    "right and left on both": `(a: A, b: B) { x: X [x->m: M = a->m: M x->n: N = b->n: N] }`,
    "a device": `(u: Jinaga.User) { d: Jinaga.Device [d->owner: Jinaga.User = u] r: Role [r->device: Jinaga.Device = d] }`,
    "a condition on a given": `(s: Blog.Site [!E { c: Closed [c->site: Blog.Site = s] }]) { ${post} }`,
    "conditions on givens": `(s: Blog.Site [E { o: Open [o->site: Blog.Site = s] } !E { c: Closed [c->site: Blog.Site = s] }], u: Jinaga.User [!E { b: Ban [b->user: Jinaga.User = u b->site: Blog.Site = s] }]) { p: Blog.Post [p->site: Blog.Site = s p->author: Jinaga.User = u] }`,
    "an authorization": `(p: Blog.Post) { u: Jinaga.User [u = p->author: Jinaga.User] } => u`,
    "an authorization by invitation": `(p: Blog.Post) { i: Invitation [i->site: Blog.Site = p->site: Blog.Site] u: Jinaga.User [u = i->guest: Jinaga.User] } => u`,
    "an authorization after a predecessor": `(c: Comment) { p: Blog.Post [p = c->post: Blog.Post] i: Invitation [i->post: Blog.Post = p !E { r: Revoked [r->invitation: Invitation = i] }] u: Jinaga.User [u = i->guest: Jinaga.User] } => u`,
    "an authorization with a condition": `(p: Blog.Post) { u: Jinaga.User [u = p->author: Jinaga.User !E { b: Ban [b->user: Jinaga.User = u] }] } => u`,
    "an authorization with two paths": `(p: Blog.Post) { i: Invitation [i->site: Blog.Site = p->site: Blog.Site i->guest: Jinaga.User = p->author: Jinaga.User] u: Jinaga.User [u = i->guest: Jinaga.User] } => u`,
    "underscores and digits": `(_s1: _Blog._Site9.x) { p_2: P.o.s.t [p_2->_r0le: _Blog._Site9.x = _s1] } => { _x9 = p_2._f1 }`,
};

// A small generator with a seed, so that the file is the same each time.
let seed = 20261117;
const next = n => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor(seed / 4294967296 * n);
};
const types = ["A", "B", "C.D"];
const pick = list => list[next(list.length)];

function random() {
    let count = 0;
    const label = () => ({ name: `x${++count}`, type: pick(types) });
    const role = () => ({ name: pick(["r", "s", "t"]), type: pick(types) });
    const roles = list => list.map(r => `->${r.name}: ${r.type}`).join("");
    const path = (unknown, right) => {
        const up = Array.from({ length: next(3) ? 0 : 1 + next(2) }, role);
        const end = up.length ? up[up.length - 1].type : right.type;
        const down = Array.from({ length: next(8) ? 1 + (next(3) ? 0 : 1) : 0 }, role);
        if (down.length) {
            down[down.length - 1].type = end;
        }
        else {
            if (!up.length) up.push({ name: "u", type: unknown.type });
            up[up.length - 1].type = unknown.type;
        }
        return `${unknown.name}${roles(down)} = ${right.name}${roles(up)}`;
    };
    const match = (known, depth, owner) => {
        const unknown = label();
        const conditions = [path(unknown, owner ?? pick(known))];
        if (!next(4)) conditions.push(path(unknown, pick(known)));
        for (let i = next(depth > 2 ? 1 : 3); i > 0; i--) {
            conditions.push(existential([...known, unknown], unknown, depth + 1));
        }
        return { unknown, text: `${unknown.name}: ${unknown.type} [${conditions.join(" ")}]` };
    };
    const matches = (known, depth, count, owner) => {
        const texts = [];
        for (let i = 0; i < count; i++) {
            const { unknown, text } = match(known, depth, i === 0 ? owner : undefined);
            known = [...known, unknown];
            texts.push(text);
        }
        return { known, text: `{ ${texts.join(" ")} }` };
    };
    const existential = (known, owner, depth) =>
        `${next(3) ? "!" : ""}E ${matches(known, depth, 1 + (next(4) ? 0 : 1), owner).text}`;
    const projection = (known, depth) => {
        const single = pick(known).name;
        if (!next(4)) return pick(["", ` => ${single}`, ` => #${single}`, ` => @${single}`, ` => ${single}.f`]);
        const components = Array.from({ length: next(4) }, (_, i) => {
            if (depth < 2 && next(2)) {
                const inner = matches(known, 1, 1 + (next(3) ? 0 : 1));
                return `${pick("abcXYZ_")}${i} = ${inner.text}${projection(inner.known, depth + 1)}`;
            }
            return `${pick("abcXYZ_")}${i} = ${pick(known).name}.f`;
        });
        return components.length ? ` => { ${components.join(" ")} }` : "";
    };
    const givens = Array.from({ length: 1 + next(3) }, label);
    const body = matches(givens, 0, 1 + next(3));
    return `(${givens.map(g => `${g.name}: ${g.type}`).join(", ")}) ${body.text}${projection(body.known, 0)}`;
}

function parse(text) {
    const parser = new jinaga.SpecificationParser(text);
    parser.skipWhitespace();
    const specification = parser.parseSpecification();
    parser.expectEnd();
    return specification;
}

// Describing sorts the components in place.
const describe = specification => jinaga.describeSpecification(structuredClone(specification), 0);

function vector(name, text) {
    const ast = parse(text);
    const given = ast.given.map(({ label }) => ({
        type: label.type,
        hash: jinaga.computeHash({ name: label.name }, {}),
    }));
    const named = Object.fromEntries(ast.given.map((g, i) => [g.label.name, given[i]]));
    const feeds = jinaga.buildFeeds(ast);
    const { head, tail } = jinaga.splitBeforeFirstSuccessor(ast);
    return {
        name,
        text,
        ast,
        described: describe(ast),
        reduced: describe(jinaga.reduceSpecification(ast)),
        identity: jinaga.specificationIsIdentity(ast),
        deterministic: jinaga.specificationIsDeterministic(ast),
        head: head && describe(head),
        tail: tail && describe(tail),
        given,
        feeds: feeds.map(feed => ({
            text: describe(feed),
            skeleton: jinaga.skeletonOfSpecification(feed),
            hash: new jinaga.FeedCache().addFeeds([feed], named)[0],
        })),
        hashes: new jinaga.FeedCache().addFeeds(feeds, named),
    };
}

const vectors = Object.entries(written).map(([name, text]) => vector(name, text));
let refused = 0;
while (vectors.length < Object.keys(written).length + 120) {
    const text = random();
    try {
        const { described, given, hashes } = vector("", text);
        vectors.push({ name: `random ${vectors.length}`, text, described, given, hashes });
    }
    catch (error) {
        // Upstream loses the label around a positive condition within a negative one, and has no
        // matches behind a restored fact that a collection starts from.
        if (!/^Label \w+ not found/.test(error.message)) throw error;
        refused++;
    }
}
const lines = vectors.map(v => JSON.stringify(v));
writeFileSync(new URL("specifications.json", import.meta.url), `[\n${lines.join(",\n")}\n]\n`);
console.log(`${vectors.length} specifications (${Object.keys(written).length} written), ${refused} that upstream fails on left out`);
