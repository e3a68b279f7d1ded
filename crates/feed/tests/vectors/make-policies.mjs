// Writes what the real engines of the npm package `jinaga` decide in the cases below:
//   NODE_PATH=<where jinaga is installed>/node_modules node make-policies.mjs
// A case that is decided otherwise here says so by `ours`, with the reason in `why`.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const load = createRequire((process.env.NODE_PATH ?? "/tmp/npm/node_modules") + "/");
const jinaga = load("jinaga");
const { testSpecificationForCompliance } = load("jinaga/dist/purge/purgeCompliance");
jinaga.Trace.off();

const U = "Jinaga.User";
const facts = {};
function fact(name, type, predecessors, fields) {
    const references = Object.fromEntries(Object.entries(predecessors).map(([role, value]) => [
        role,
        Array.isArray(value) ? value.map(reference) : reference(value),
    ]));
    const hash = jinaga.computeHash(fields, references);
    return { type, hash, predecessors: references, fields };
}
const reference = (name) => ({ type: facts[name].type, hash: facts[name].hash });
const add = (name, ...rest) => { facts[name] = fact(name, ...rest); };

for (const name of ["alice", "bob", "carol", "dave"]) add(name, U, {}, { publicKey: `key of ${name}` });
add("acme", "Company", { creator: "alice" }, { name: "Acme" });
add("other", "Company", { creator: "carol" }, { name: "Other" });
add("office", "Office", { company: "acme" }, { name: "HQ" });
add("branch", "Office", { company: "acme" }, { name: "Branch" });
add("closed", "Office.Closure", { office: "branch" }, {});
add("admin", "Administrator", { company: "acme", user: "bob" }, {});
add("former", "Administrator", { company: "acme", user: "dave" }, {});
add("revoked", "Administrator.Revoked", { administrator: "former" }, {});
add("manager", "Manager", { office: "office", user: "carol" }, {});
add("site", "Site", { creator: "alice" }, { domain: "example.com" });
add("post", "Post", { site: "site", author: "bob" }, { title: "One" });
add("draft", "Post", { site: "site", author: "alice" }, { title: "Two" });
add("published", "Publish", { post: "post" }, {});
add("comment", "Comment", { post: "post", author: "carol" }, { text: "Yes" });
add("message", "Message", { from: "alice", to: "bob" }, { text: "Hello" });
add("talk", "Talk", { members: ["alice", "bob"] }, {});
add("folder", "Folder", {}, { name: "top" });
add("inner", "Folder", { parent: "folder" }, { name: "inner" });
add("inmost", "Folder", { parent: "inner" }, { name: "inmost" });
add("access", "Access", { folder: "folder", user: "bob" }, {});

const offices = "(c: Company) { o: Office [o->company: Company = c] }";
const admins = "(c: Company) { a: Administrator [a->company: Company = c] u: Jinaga.User [u = a->user: Jinaga.User] } => u";
const activeAdmins = "(c: Company) { a: Administrator [a->company: Company = c !E { r: Administrator.Revoked [r->administrator: Administrator = a] }] u: Jinaga.User [u = a->user: Jinaga.User] } => u";
const creator = "(c: Company) { u: Jinaga.User [u = c->creator: Jinaga.User] } => u";
const posts = "(s: Site) { p: Post [p->site: Site = s] }";
const publishedPosts = "(s: Site) { p: Post [p->site: Site = s E { x: Publish [x->post: Post = p] }] }";
const unpublished = "(s: Site) { p: Post [p->site: Site = s !E { x: Publish [x->post: Post = p] }] }";
const comments = "(s: Site) { p: Post [p->site: Site = s] k: Comment [k->post: Post = p] }";
const withComments = "(s: Site) { p: Post [p->site: Site = s] } => { comments = { k: Comment [k->post: Post = p] } title = p.title }";
const siteCreator = "(s: Site) { u: Jinaga.User [u = s->creator: Jinaga.User] } => u";
const own = "(u: Jinaga.User) { p: Post [p->author: Jinaga.User = u] }";
const self = "(u: Jinaga.User) { } => u";
const share = (what, who = "everyone") => `share ${what} with ${who}`;
const rules = (...all) => `distribution { ${all.join("\n")} }`;

const distribution = [];
const decide = (name, policy, specification, given, user, more = {}) =>
    distribution.push({ name, policy, specification, given, user, ...more });

const officesToAdmins = rules(share(offices, admins));
const postsToAll = rules(share(posts));
decide("shared with everyone, anonymous", postsToAll, posts, ["site"], null);
decide("shared with everyone, a user", postsToAll, posts, ["site"], "carol");
decide("other names", postsToAll, "(p1: Site) { u1: Post [u1->site: Site = p1] } => u1", ["site"], "carol");
decide("no rules", rules(), posts, ["site"], "alice");
decide("another type", postsToAll, offices, ["acme"], "alice");
decide("another role", postsToAll, "(u: Jinaga.User) { p: Post [p->author: Jinaga.User = u] }", ["bob"], "bob");
decide("an administrator", officesToAdmins, offices, ["acme"], "bob");
decide("not an administrator", officesToAdmins, offices, ["acme"], "carol");
decide("not an administrator of this company", officesToAdmins, offices, ["other"], "bob");
decide("nobody logged in", officesToAdmins, offices, ["acme"], null, {
    ours: { verdict: "denied", code: "not-authenticated" },
    why: "whoever is not logged in cannot become admitted",
});
decide("the creator", rules(share(offices, creator)), offices, ["acme"], "alice");
decide("not the creator", rules(share(offices, creator)), offices, ["acme"], "bob");
decide("a revoked administrator", rules(share(offices, activeAdmins)), offices, ["acme"], "dave");
decide("an active administrator", rules(share(offices, activeAdmins)), offices, ["acme"], "bob");
decide("one's own", rules(share(own, self)), own, ["bob"], "bob");
decide("somebody else's", rules(share(own, self)), own, ["bob"], "carol", {
    ours: { verdict: "denied", code: "principal-excluded" },
    why: "upstream's narrowed feed does not compare the given with the user, and serves it",
});
decide("one's own by a match", rules(share(own, "(u: Jinaga.User) { v: Jinaga.User [v = u] } => v")), own, ["bob"], "bob");
decide("somebody else's by a match", rules(share(own, "(u: Jinaga.User) { v: Jinaga.User [v = u] } => v")), own, ["bob"], "carol", {
    ours: { verdict: "denied", code: "principal-excluded" },
    why: "as above",
});
decide("two rules, the second admits", rules(share(offices, creator), share(offices, admins)), offices, ["acme"], "bob");
decide("two rules, none admits", rules(share(offices, creator), share(offices, admins)), offices, ["acme"], "carol");
decide("a rule for users and one for everyone", rules(share(offices, creator), share(offices)), offices, ["acme"], null);
decide("narrower by a successor", postsToAll, publishedPosts, ["site"], "carol");
decide("wider than the rule", rules(share(publishedPosts)), posts, ["site"], "carol");
decide("the same condition", rules(share(publishedPosts)), publishedPosts, ["site"], "carol");
decide("narrower by another given", postsToAll, "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s p->author: Jinaga.User = u] }", ["site", "bob"], "bob");
decide("without what must not exist", rules(share(unpublished)), posts, ["site"], "carol");
decide("with what must not exist", rules(share(unpublished)), unpublished, ["site"], "carol");
decide("what must not exist is not shared", postsToAll, unpublished, ["site"], "carol");
decide("what must not exist is shared apart", rules(share(posts), share("(p: Post) { x: Publish [x->post: Post = p] }")), unpublished, ["site"], "carol");
decide("what must not exist is shared to somebody", rules(share(posts), share("(p: Post) { x: Publish [x->post: Post = p] }", "(p: Post) { u: Jinaga.User [u = p->author: Jinaga.User] } => u")), unpublished, ["site"], "bob");
decide("a prefix of what is shared", rules(share(comments)), posts, ["site"], "carol");
decide("all of a collection", rules(share(withComments)), withComments, ["site"], "carol");
decide("a collection without the rest", rules(share(withComments)), comments, ["site"], "carol");
decide("the rest without a collection", rules(share(withComments)), posts, ["site"], "carol");
decide("a collection that is not shared", postsToAll, withComments, ["site"], "carol");
decide("a collection that is shared apart", rules(share(posts), share("(p: Post) { k: Comment [k->post: Post = p] }")), withComments, ["site"], "carol");
decide("levels that are shared apart", rules(share(posts), share("(p: Post) { k: Comment [k->post: Post = p] }")), comments, ["site"], null);
decide("levels of which one is for somebody", rules(share(posts, siteCreator), share("(p: Post) { k: Comment [k->post: Post = p] }")), comments, ["site"], "alice");
decide("levels of which one is for somebody else", rules(share(posts, siteCreator), share("(p: Post) { k: Comment [k->post: Post = p] }")), comments, ["site"], "carol");
decide("levels of which the second is for users", rules(share(posts), share("(p: Post) { k: Comment [k->post: Post = p] }", "(p: Post) { u: Jinaga.User [u = p->author: Jinaga.User] } => u")), comments, ["site"], "bob");
const byAuthor = "(s: Site) { p: Post [p->site: Site = s] u: Jinaga.User [u = p->author: Jinaga.User] q: Post [q->author: Jinaga.User = u] }";
decide("a prefix without predecessors", rules(share(byAuthor)), posts, ["site"], "carol");
decide("a predecessor besides", rules(share("(s: Site) { p: Post [p->site: Site = s] u: Jinaga.User [u = p->author: Jinaga.User] }")), posts, ["site"], "carol");
decide("a predecessor more than shared", postsToAll, "(s: Site) { p: Post [p->site: Site = s] u: Jinaga.User [u = p->author: Jinaga.User] }", ["site"], "carol");
const messages = "(a: Jinaga.User, b: Jinaga.User) { m: Message [m->from: Jinaga.User = a m->to: Jinaga.User = b] }";
const toFrom = rules(share(messages, "(a: Jinaga.User, b: Jinaga.User) { } => a"));
decide("two givens of a type, the right one", toFrom, messages, ["alice", "bob"], "alice");
decide("two givens of a type, the wrong one", toFrom, messages, ["alice", "bob"], "bob", {
    ours: { verdict: "denied", code: "principal-excluded", reason: false },
    why: "upstream exchanges givens of one type, whatever part they play",
});
decide("two givens of a type, neither", toFrom, messages, ["alice", "bob"], "carol", {
    ours: { verdict: "denied", code: "principal-excluded", reason: false },
    why: "one binding instead of two, and no narrowed feed for a user that is a given",
});
decide("two givens of a type, named the other way", toFrom, "(b: Jinaga.User, a: Jinaga.User) { m: Message [m->from: Jinaga.User = a m->to: Jinaga.User = b] }", ["bob", "alice"], "alice");
const talks = "(a: Jinaga.User, b: Jinaga.User) { t: Talk [t->members: Jinaga.User = a t->members: Jinaga.User = b] }";
const toFirst = rules(share(talks, "(a: Jinaga.User, b: Jinaga.User) { } => a"));
decide("two givens that can be exchanged, the first", toFirst, talks, ["alice", "bob"], "alice");
decide("two givens that can be exchanged, the second", toFirst, talks, ["alice", "bob"], "bob");
const twoTypes = "(c: Company, u: Jinaga.User) { a: Administrator [a->company: Company = c a->user: Jinaga.User = u] }";
const bothAdmins = "(c: Company, u: Jinaga.User) { a: Administrator [a->company: Company = c] v: Jinaga.User [v = a->user: Jinaga.User] } => v";
decide("givens of two types", rules(share(twoTypes, bothAdmins)), twoTypes, ["acme", "bob"], "bob");
decide("givens of two types, excluded", rules(share(twoTypes, bothAdmins)), twoTypes, ["acme", "bob"], "carol");
decide("givens of two types, in another order", rules(share(twoTypes, bothAdmins)), "(u: Jinaga.User, c: Company) { a: Administrator [a->company: Company = c a->user: Jinaga.User = u] }", ["bob", "acme"], "bob");
const folders = "(f: Folder) { g: Folder [g->parent: Folder = f] }";
const readers = "(f: Folder) { a: Access [a->folder: Folder = f] u: Jinaga.User [u = a->user: Jinaga.User] } => u";
decide("a folder with access", rules(share(folders, readers)), folders, ["folder"], "bob");
decide("a folder without access", rules(share(folders, readers)), folders, ["inner"], "bob");
decide("access to a folder is not access to those in it", rules(share(folders, readers)), "(f: Folder) { g: Folder [g->parent: Folder = f] h: Folder [h->parent: Folder = g] }", ["folder"], "bob", {
    ours: { verdict: "denied", code: "spec-more-restrictive-than-rule", reason: false },
    why: "upstream takes a rule that admits the user for one fact of a type to admit them for all; its reason lists none",
});
decide("a rule with another name for its given", rules(share("(site: Site) { p: Post [p->site: Site = site] }", "(x: Site) { u: Jinaga.User [u = x->creator: Jinaga.User] } => u")), posts, ["site"], "alice");
decide("a rule with another name, excluded", rules(share("(company: Company) { o: Office [o->company: Company = company] }", "(x: Company) { a: Administrator [a->company: Company = x] u: Jinaga.User [u = a->user: Jinaga.User] } => u")), offices, ["acme"], "carol", {
    ours: { verdict: "reactive", code: "principal-excluded" },
    why: "upstream fails: it looks for the rule's name",
});
decide("nothing is asked", postsToAll, "(s: Site) { } => s", ["site"], null);
decide("only predecessors", postsToAll, "(p: Post) { s: Site [s = p->site: Site] }", ["post"], null);
decide("several feeds, one shared", postsToAll, "(s: Site) { p: Post [p->site: Site = s] } => { a = { k: Comment [k->post: Post = p] } }", ["site"], "carol");
decide("a path through a type", rules(share("(s: Site) { k: Comment [k->post: Post->site: Site = s] }")), "(s: Site) { k: Comment [k->post: Post->site: Site = s] }", ["site"], null);
decide("a path with its middle named", rules(share("(s: Site) { k: Comment [k->post: Post->site: Site = s] }")), comments, ["site"], null);
decide("a given that is not stored", officesToAdmins, offices, ["unknown"], "bob");

// Not stored: nobody knows it.
facts.unknown = fact("unknown", "Company", { creator: "alice" }, { name: "Unknown" });

async function store() {
    const memory = new jinaga.MemoryStore();
    const known = Object.entries(facts).filter(([name]) => name !== "unknown");
    await memory.save(known.map(([, fact]) => ({ fact, signatures: [] })));
    return memory;
}

function parsed(text) {
    const parser = new jinaga.SpecificationParser(text);
    parser.skipWhitespace();
    return parser.parseSpecification();
}

async function decided({ policy, specification: text, given, user: name }) {
    const engine = new jinaga.DistributionEngine(jinaga.DistributionRules.loadFromDescription(policy), await store());
    const specification = parsed(text);
    const start = given.map(reference);
    const named = (specification, start) =>
        Object.fromEntries(specification.given.map((g, i) => [g.label.name, start[i]]));
    const user = name && reference(name);
    const can = await engine.canDistributeToAll(jinaga.buildFeeds(specification), named(specification, start), user);
    const hashes = (branches) => branches.flatMap((branch) => new jinaga.FeedCache().addFeeds(
        jinaga.buildFeeds(branch.specification), named(branch.specification, branch.start)));
    if (can.type === "success") {
        return { verdict: "authorized", reason: "Distribution authorized.", feeds: hashes([{ specification, start }]) };
    }
    const { branches, intersected } = await engine.intersectForSubscribe(start, specification, user);
    return {
        verdict: intersected ? "reactive" : "denied",
        code: can.code,
        reason: can.reason,
        feeds: hashes(intersected ? branches : [{ specification, start }]),
        narrowed: intersected ? branches.map((b) => jinaga.describeSpecification(b.specification, 0)) : undefined,
    };
}

const authorization = [];
const save = (name, policy, made, user, more = {}) =>
    authorization.push({ name, policy: `authorization { ${policy} }`, made, user, ...more });
const byCreator = "(s: Site) { u: Jinaga.User [u = s->creator: Jinaga.User] } => u";
const newSite = ["fresh", "Site", { creator: "alice" }, { domain: "new" }];
const newOffice = ["fresh", "Office", { company: "acme" }, { name: "New" }];
const officeByAdmin = "(o: Office) { a: Administrator [a->company: Company = o->company: Company] u: Jinaga.User [u = a->user: Jinaga.User] } => u";
const officeByActiveAdmin = "(o: Office) { a: Administrator [a->company: Company = o->company: Company !E { r: Administrator.Revoked [r->administrator: Administrator = a] }] u: Jinaga.User [u = a->user: Jinaga.User] } => u";
save("any", "any Site", [newSite], null);
save("no", "no Site", [newSite], "alice");
save("no and any", "no Site any Site", [newSite], "bob");
save("no rule", "any Post", [newSite], "alice");
save("by its creator", byCreator, [newSite], "alice");
save("by another", byCreator, [newSite], "bob");
save("by nobody", byCreator, [newSite], null);
save("signed by its creator", byCreator, [newSite], null, { signed: { fresh: ["alice"] } });
save("signed by another", byCreator, [newSite], null, { signed: { fresh: ["bob"] } });
save("signed by its creator, sent by another", byCreator, [newSite], "bob", { signed: { fresh: ["alice"] } });
save("known facts", "no Site", [["site"]], "carol");
save("by an administrator", officeByAdmin, [newOffice], "bob");
save("by no administrator", officeByAdmin, [newOffice], "carol");
save("by a revoked administrator", officeByActiveAdmin, [newOffice], "dave");
save("by an active administrator", officeByActiveAdmin, [newOffice], "bob");
save("an administrator who is only sent", "any Company any Administrator " + officeByAdmin, [
    ["firm", "Company", { creator: "carol" }, { name: "Firm" }],
    ["boss", "Administrator", { company: "firm", user: "carol" }, {}],
    ["fresh", "Office", { company: "firm" }, {}],
], "carol");
save("one of two rules", byCreator + " (s: Site) { u: Jinaga.User [u = s->owner: Jinaga.User] } => u", [["fresh", "Site", { creator: "alice", owner: "bob" }, {}]], "bob");
save("over facts that are sent", "any Site (p: Post) { u: Jinaga.User [u = p->site: Site->creator: Jinaga.User] } => u", [
    ["place", "Site", { creator: "alice" }, { domain: "sent" }],
    ["fresh", "Post", { site: "place", author: "bob" }, {}],
], "alice");
save("onto what is rejected", "no Site any Post any Comment", [
    ["place", "Site", { creator: "alice" }, { domain: "sent" }],
    ["fresh", "Post", { site: "place", author: "bob" }, {}],
    ["word", "Comment", { post: "fresh", author: "bob" }, {}],
], "alice");
save("two of a type", "no Site", [newSite, ["second", "Site", { creator: "bob" }, {}]], "alice");
save("over several predecessors of a role", "(t: Talk) { u: Jinaga.User [u = t->members: Jinaga.User] } => u", [["fresh", "Talk", { members: ["bob", "carol"] }, {}]], "carol");
save("over an empty role", "(t: Talk) { u: Jinaga.User [u = t->members: Jinaga.User] } => u", [["fresh", "Talk", { members: [] }, {}]], "carol");
save("in two steps", "(k: Comment) { p: Post [p = k->post: Post] u: Jinaga.User [u = p->author: Jinaga.User] } => u", [["fresh", "Comment", { post: "post", author: "carol" }, {}]], "bob");

async function authorized({ policy, made, user, signed = {} }) {
    const before = { ...facts };
    const sent = made.map(([name, ...rest]) => {
        if (rest.length) add(name, ...rest);
        const signatures = (signed[name] ?? []).map((by) => ({ publicKey: facts[by].fields.publicKey, signature: "" }));
        return { name, fact: facts[name], signatures };
    });
    const isNew = new Set(made.filter((one) => one.length > 1).map(([name]) => name));
    const memory = new jinaga.MemoryStore();
    const known = Object.entries(facts).filter(([name]) => name !== "unknown" && !isNew.has(name));
    await memory.save(known.map(([, fact]) => ({ fact, signatures: [] })));
    const engine = new jinaga.AuthorizationEngine(jinaga.AuthorizationRules.loadFromDescription(policy), memory);
    let expected;
    try {
        const results = await engine.authorizeFacts(sent.map(({ fact, signatures }) => ({ fact, signatures })), user && facts[user]);
        expected = { verdicts: results.map(({ verdict, newPublicKeys }) => ({ verdict, keys: newPublicKeys })) };
    } catch (error) {
        expected = { error: error.message };
    }
    for (const name of isNew) delete facts[name];
    Object.assign(facts, before);
    return { sent: sent.map(({ fact, signatures }) => ({ fact, keys: signatures.map((one) => one.publicKey) })), expected };
}

const purge = "purge { (c: Company) { x: Company.Deleted [x->company: Company = c] } (p: Post) { x: Post.Deleted [x->post: Post = p] y: Post.Purged [y->deleted: Post.Deleted = x] } }";
const compliance = [
    offices,
    posts,
    "(s: Site) { p: Post [p->site: Site = s !E { x: Post.Deleted [x->post: Post = p] }] }",
    "(s: Site) { p: Post [p->site: Site = s !E { x: Post.Deleted [x->post: Post = p] y: Post.Purged [y->deleted: Post.Deleted = x] }] }",
    "(s: Site) { p: Post [p->site: Site = s E { x: Post.Deleted [x->post: Post = p] y: Post.Purged [y->deleted: Post.Deleted = x] }] }",
    "(s: Site) { k: Comment [k->post: Post->site: Site = s] }",
    "(p: Post) { k: Comment [k->post: Post = p] }",
    "(k: Comment) { l: Comment [l->post: Post = k->post: Post] }",
    "(u: Jinaga.User) { c: Company [c->creator: Jinaga.User = u !E { d: Company.Deleted [d->company: Company = c] }] p: Post [p->company: Company = c] }",
    "(k: Comment) { s: Site [s = k->post: Post->site: Site] }",
];

function compliant(text) {
    const parser = new jinaga.SpecificationParser(purge);
    parser.skipWhitespace();
    const { specifications } = parser.parsePurgeConditions();
    return testSpecificationForCompliance(parsed(text), specifications);
}

const written = {
    facts: Object.fromEntries(Object.entries(facts)),
    distribution: [],
    authorization: [],
    purge,
    compliance: compliance.map((specification) => ({ specification, missing: compliant(specification) })),
};
for (const one of distribution) {
    let expected;
    try {
        expected = await decided(one);
    } catch (error) {
        expected = { error: error.message };
    }
    written.distribution.push({ ...one, expected });
}
for (const one of authorization) {
    const { made, signed, ...rest } = one;
    written.authorization.push({ ...rest, ...await authorized(one) });
}
writeFileSync(new URL("policies.json", import.meta.url), JSON.stringify(written, null, 1) + "\n");
for (const { name, user, expected } of written.distribution) console.log(name, "|", user, "|", expected.verdict ?? expected.error, expected.code ?? "");
for (const { name, expected } of written.authorization) console.log(name, "|", JSON.stringify(expected));
