import assert from "node:assert/strict";

import { library } from "../client.mjs";
import { Comment, Site, User, model, posts, somePost } from "../blog.mjs";
import { post, send } from "../http.mjs";
import { token } from "../rules.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, sorted, unique } from "../steps.mjs";
import { Member, Task, Team, orphanedTasks, tasks, teamsOf } from "../team.mjs";

const { DistributionDeniedError, Jinaga } = library();

// The rule for tasks calls its given `p1`, as the client does: see the rule for sites below.

/** A team with a task, its owner, a member and somebody else. */
async function team(context) {
  const names = ["owner", "member", "stranger"].map(unique);
  const [owner, member, stranger] = names.map((user) => context.client({ url: context.guardedUrl, user }));
  const [ownerFact, memberFact, strangerFact] = await Promise.all([owner, member, stranger].map((one) => one.login()));
  const team = new Team(ownerFact);
  await owner.facts(team, new Member(team, memberFact), new Task(team, "first"));
  return { owner, member, stranger, memberFact, strangerFact, team, names };
}

it("a member's query finds the facts shared with members", async (context) => {
  const { member, team: given } = await team(context);
  assert.deepEqual(await member.query(tasks, given), ["first"]);
});

it("a query of a user who is no member finds nothing, with the reason", async (context) => {
  const { stranger, team: given } = await team(context);
  const { results, diagnostics } = await stranger.j.queryWithDiagnostics(tasks, given);
  assert.deepEqual(results, []);
  assert.deepEqual(diagnostics.map(({ decision, code }) => [decision, code]), [["reactive", "principal-excluded"]]);
});

const sitesOf = model.given(User).match((user) => user
  .successors(Site, (site) => site.creator)
  .select((site) => site.domain));

it("a rule's given may have another name than the client's", {
  wakelineOnly: "upstream answers 500 to a user who is not in such a rule: Label user not found",
}, async (context) => {
  const { owner, stranger } = await team(context);
  const user = await owner.login();
  const site = await owner.fact(new Site(user, unique("site")));
  assert.deepEqual(await owner.query(sitesOf, user), [site.domain]);
  assert.deepEqual(await stranger.query(sitesOf, user), []);
});

it("a query without a rule throws DistributionDeniedError", async (context) => {
  const { member, memberFact } = await team(context);
  await assert.rejects(member.query(teamsOf, memberFact), (error) => {
    assert.ok(error instanceof DistributionDeniedError, String(error));
    assert.equal(error.diagnostics?.[0]?.code ?? "no-matching-rule", "no-matching-rule");
    return true;
  });
});

it("a query that is narrower than its rule throws DistributionDeniedError", async (context) => {
  const { member, team: given } = await team(context);
  await assert.rejects(member.query(orphanedTasks, given), DistributionDeniedError);
});

it("every user gets the facts shared with everyone", async (context) => {
  const { owner } = await team(context);
  const site = new Site(await owner.login(), unique("site"));
  await owner.fact(somePost(site, "for all"));
  assert.deepEqual(await context.client({ url: context.guardedUrl }).query(posts, site), ["for all"]);
});

it("a member's subscription follows live", async (context) => {
  const { owner, member, team: given } = await team(context);
  const { results, loaded } = member.subscribe(tasks, given);
  await loaded();
  await eventually(() => results, ["first"]);
  await owner.fact(new Task(given, "second"));
  await eventually(() => sorted(results), ["first", "second"]);
});

it("a subscription goes live when the fact that authorises it is saved", async (context) => {
  const { owner, stranger, strangerFact, team: given } = await team(context);
  const { results, loaded } = stranger.subscribe(tasks, given);
  await loaded();
  assert.deepEqual(results, []);
  assert.deepEqual(stranger.diagnostics.map(({ decision }) => decision), ["reactive"]);
  await owner.fact(new Member(given, strangerFact));
  await eventually(() => results, ["first"]);
  await owner.fact(new Task(given, "second"));
  await eventually(() => sorted(results), ["first", "second"]);
});

const commentsBy = model.given(User).match((user) => user
  .successors(Comment, (comment) => comment.author)
  .select((comment) => comment.text));

it("a subscription without a rule is refused and does not hang", {
  wakelineOnly: "upstream's stream of a denied feed stays silent, and loaded() never settles",
}, async (context) => {
  const { stranger, strangerFact } = await team(context);
  const { results, loaded } = stranger.subscribe(commentsBy, strangerFact);
  await loaded();
  assert.deepEqual(results, []);
  assert.deepEqual(stranger.diagnostics.map(({ decision, code }) => [decision, code]), [["denied", "no-matching-rule"]]);
});

const reference = (fact) => ({ type: fact.type, hash: Jinaga.hash(fact) });

function load(context, user, facts) {
  const body = JSON.stringify({ references: facts.map(reference) });
  const authorization = `Bearer ${token(user)}`;
  return post(context.guardedUrl, "/load", "application/json", body, { accept: "application/json", authorization });
}

it("a load of facts that the user may not see is refused", async (context) => {
  const { team: given, names } = await team(context);
  const answer = await load(context, names[2], [new Task(given, "first")]);
  assert.equal(answer.status, 403);
  assert.equal(answer.body, "Unauthorized");
});

it("a load gives the facts that a feed has given", async (context) => {
  const { member, team: given, names } = await team(context);
  assert.deepEqual(await member.query(tasks, given), ["first"]);
  const answer = await load(context, names[1], [new Task(given, "first")]);
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual(JSON.parse(answer.body).facts.map(({ type }) => type), ["Jinaga.User", "Team.Team", "Team.Task"]);
});

it("a load gives the facts that a rule shares, though no feed has given them", {
  wakelineOnly: "upstream remembers what feeds served in the last five minutes in this process",
}, async (context) => {
  const { team: given, names } = await team(context);
  const answer = await load(context, names[1], [new Task(given, "first")]);
  assert.equal(answer.status, 200, answer.body);
  assert.equal(JSON.parse(answer.body).facts.at(-1).type, "Team.Task");
});

it("a read is refused where a feed would be denied", async (context) => {
  const { team: given, names } = await team(context);
  const text = `let t: Team.Team = #${Jinaga.hash(given)}
(t: Team.Team) { task: Team.Task [ task->team: Team.Team = t ] } => task.title`;
  const read = (user) => post(context.guardedUrl, "/read", "text/plain", text, {
    accept: "application/json", authorization: `Bearer ${token(user)}`,
  });
  assert.deepEqual(JSON.parse((await read(names[1])).body), ["first"]);
  assert.equal((await read(names[2])).status, 403);
});

it("the page of a denied feed is empty", async (context) => {
  const { strangerFact, names } = await team(context);
  const headers = { authorization: `Bearer ${token(names[2])}`, accept: "application/json" };
  const text = `let u: Jinaga.User = #${Jinaga.hash(strangerFact)}
(u: Jinaga.User) { comment: Blog.Comment [ comment->author: Jinaga.User = u ] }`;
  const { feeds, decisions } = JSON.parse((await post(context.guardedUrl, "/feeds", "text/plain", text, headers)).body);
  assert.deepEqual(decisions.map(({ decision, code }) => [decision, code]), [["denied", "no-matching-rule"]]);
  const page = await send(context.guardedUrl, { path: `/feeds/${feeds[0]}?b=`, headers });
  assert.equal(page.status, 200);
  assert.deepEqual(JSON.parse(page.body).references, []);
});
