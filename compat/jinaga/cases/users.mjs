import assert from "node:assert/strict";

import { library } from "../client.mjs";
import { Comment, Post, Site, somePost, someSite, posts } from "../blog.mjs";
import { post, send } from "../http.mjs";
import { token } from "../rules.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, unique } from "../steps.mjs";
import { Forbidden, Guest, Team } from "../team.mjs";

const { ForbiddenError, HttpError, Jinaga, User } = library();
const PEM = /^-----BEGIN PUBLIC KEY-----\r\n([A-Za-z0-9+/=]+\r\n)+-----END PUBLIC KEY-----\r\n$/;

const login = (url, headers) => send(url, { path: "/login", headers: { accept: "application/json", ...headers } });

it("a login gives the user a key that stays the same", async (context) => {
  const name = unique("alice");
  const client = context.client({ url: context.guardedUrl, user: name });
  const { userFact, profile } = await client.j.login();
  assert.equal(userFact.type, "Jinaga.User");
  assert.match(userFact.publicKey, PEM);
  assert.equal(profile.displayName, name);
  const again = await context.client({ url: context.guardedUrl, user: name }).login();
  assert.equal(again.publicKey, userFact.publicKey);
  const other = await context.client({ url: context.guardedUrl, user: unique("bob") }).login();
  assert.notEqual(other.publicKey, userFact.publicKey);
});

it("logins of one user at the same time give one key", async (context) => {
  const name = unique("alice");
  const users = await Promise.all(Array.from({ length: 8 }, () => context.client({ url: context.guardedUrl, user: name }).login()));
  assert.equal(new Set(users.map((user) => user.publicKey)).size, 1);
});

it("a login without a token is refused", async (context) => {
  await assert.rejects(context.client({ url: context.guardedUrl }).login(), (error) => {
    assert.ok(error instanceof HttpError);
    assert.equal(error.statusCode ?? error.status, 401);
    return true;
  });
});

it("a token of another issuer is refused", async (context) => {
  const url = context.guardedUrl;
  for (const [name, value] of [
    ["broken", "Bearer not-a-token"],
    ["signed by another", `Bearer ${token("eve").slice(0, -4)}AAAA`],
    ["of another issuer", `Bearer ${token("eve", { iss: "https://elsewhere.test" })}`],
    ["for another audience", `Bearer ${token("eve", { aud: "somebody else" })}`],
    ["without a subject", `Bearer ${token(undefined)}`],
    ["expired", `Bearer ${token("eve", { exp: 1_000_000_000 })}`],
  ]) {
    const answer = await login(url, { authorization: value });
    assert.equal(answer.status, 401, `${name}: ${answer.body}`);
  }
});

it("OPTIONS needs no token", async (context) => {
  const answer = await send(context.guardedUrl, { method: "OPTIONS", path: "/save" });
  assert.equal(answer.status, 204);
  assert.match(answer.headers["accept-post"], /application\/x-jinaga-graph-v1/);
});

it("a user saves the facts that the rules allow", async (context) => {
  const alice = context.client({ url: context.guardedUrl, user: unique("alice") });
  const site = new Site(await alice.login(), unique("site"));
  await alice.facts(site, new Post(site, site.creator, "mine"));
  assert.deepEqual(await context.client({ url: context.guardedUrl, user: unique("bob") }).query(posts, site), ["mine"]);
});

it("a save that the rules forbid is refused with the type", async (context) => {
  const alice = context.client({ url: context.guardedUrl, user: unique("alice") });
  const bob = context.client({ url: context.guardedUrl, user: unique("bob") });
  const site = new Site(await alice.login(), unique("site"));
  await alice.fact(site);
  await bob.login();
  await assert.rejects(bob.fact(new Post(site, site.creator, "not his")), (error) => {
    assert.ok(error instanceof ForbiddenError, String(error));
    assert.equal(error.message, "Rejected 1 fact of type Blog.Post.");
    return true;
  });
  assert.deepEqual(await bob.query(posts, site), []);
});

it("a type without a rule, and a type that no user may save, are refused", async (context) => {
  const alice = context.client({ url: context.guardedUrl, user: unique("alice") });
  await alice.login();
  await alice.fact(new Guest());
  for (const fact of [new Forbidden(), { type: "Team.Unheard", name: unique("unheard") }]) {
    await assert.rejects(alice.fact(fact), ForbiddenError, fact.type);
  }
});

it("a refused save leaves nothing of its graph behind", async (context) => {
  const alice = context.client({ url: context.guardedUrl, user: unique("alice") });
  const bob = context.client({ url: context.guardedUrl, user: unique("bob") });
  const owner = await alice.login();
  await bob.login();
  const site = new Site(owner, unique("site"));
  // The whole closure goes along: the site would be saved by somebody who may not.
  await assert.rejects(bob.fact(new Post(site, owner, "not his")), ForbiddenError);
  const answer = await load(context, [reference(site)], {});
  assert.notDeepEqual(JSON.parse(answer.status === 200 ? answer.body : '{"facts":[]}').facts.map(({ type }) => type), ["Blog.Site"]);
});

const reference = (fact) => ({ type: fact.type, hash: Jinaga.hash(fact) });

function load(context, references, headers) {
  const body = JSON.stringify({ references });
  return post(context.guardedUrl, "/load", "application/json", body, { accept: "application/json", ...headers });
}

it("an anonymous client saves facts that it signs itself", async (context) => {
  const client = context.client({ url: context.guardedUrl });
  const site = await client.j.singleUse(async (principal) => {
    const site = await client.fact(new Site(principal, unique("single-use")));
    await client.fact(new Post(site, principal, "signed"));
    return site;
  });
  assert.match(site.creator.publicKey, PEM);
  assert.deepEqual(await context.client({ url: context.guardedUrl }).query(posts, site), ["signed"]);
});

it("an anonymous client cannot save for a user", async (context) => {
  const alice = context.client({ url: context.guardedUrl, user: unique("alice") });
  const site = new Site(await alice.login(), unique("site"));
  await assert.rejects(context.client({ url: context.guardedUrl }).fact(site), ForbiddenError);
});

it("signatures of the server come with a graph and hold", async (context) => {
  const { GraphDeserializer, verifyEnvelopes } = library();
  const name = unique("alice");
  const alice = context.client({ url: context.guardedUrl, user: name });
  const owner = await alice.login();
  const site = new Site(owner, unique("site"));
  await alice.fact(new Post(site, owner, "signed"));
  // Served by a feed first: upstream gives out nothing else.
  assert.deepEqual(await alice.query(posts, site), ["signed"]);
  const body = JSON.stringify({ references: [reference(new Post(site, owner, "signed"))] });
  const headers = { accept: "application/x-jinaga-graph-v1", authorization: `Bearer ${token(name)}` };
  const answer = await post(context.guardedUrl, "/load", "application/json", body, headers);
  assert.equal(answer.status, 200, answer.body);
  assert.match(answer.headers["content-type"], /^application\/x-jinaga-graph-v1/);
  const lines = answer.body.split("\n");
  const envelopes = [];
  const reader = new GraphDeserializer(async () => (lines.length > 0 ? lines.shift() : null));
  await reader.read(async (found) => {
    envelopes.push(...found);
  });
  assert.deepEqual(envelopes.map(({ fact }) => fact.type).sort(), ["Blog.Post", "Blog.Site", "Jinaga.User"]);
  const signed = envelopes.filter(({ fact }) => fact.type !== "Jinaga.User");
  for (const { fact, signatures } of signed) {
    assert.deepEqual(signatures.map(({ publicKey }) => publicKey), [owner.publicKey], fact.type);
  }
  assert.ok(await verifyEnvelopes(envelopes));
});

it("a forged signature is refused", async (context) => {
  const text = (value) => JSON.stringify(value);
  const { publicKey } = await context.client({ url: context.guardedUrl, user: unique("alice") }).login();
  const forged = Buffer.alloc(256, 7).toString("base64");
  const graph = [
    "PK0", text(publicKey), "",
    text("Jinaga.User"), "{}", text({ publicKey }), "",
    text("Blog.Site"), text({ creator: 0 }), text({ domain: unique("forged") }), "PK0", text(forged), "", "",
  ].join("\n");
  const answer = await post(context.guardedUrl, "/save", "application/x-jinaga-graph-v1", graph);
  assert.equal(answer.status, 403);
  assert.match(answer.body, /^The signatures on the facts are invalid\./);
});

it("without rules every user may read a user's facts", async (context) => {
  const site = someSite();
  const post = somePost(site);
  await context.client().fact(new Comment(post, new User(unique("key")), "c1"));
  const { results, loaded } = context.client().subscribe(posts, site);
  await loaded();
  await eventually(() => results, [post.createdAt]);
});

it("teams are named by their owners only", async (context) => {
  const [alice, bob] = ["alice", "bob"].map((name) => context.client({ url: context.guardedUrl, user: unique(name) }));
  const [owner] = await Promise.all([alice.login(), bob.login()]);
  const team = new Team(owner);
  await assert.rejects(bob.fact(team), ForbiddenError);
  await alice.fact(team);
});
