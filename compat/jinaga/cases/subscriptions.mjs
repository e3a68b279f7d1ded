import assert from "node:assert/strict";

import { Approved, Comment, Deleted, Restored, Title, liveComments, livePosts, pages, posts, somePost, someSite, someone } from "../blog.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, sorted } from "../steps.mjs";

it("a subscription brings the stored facts and then the new ones", async (context) => {
  const site = someSite();
  const writer = context.client();
  await writer.fact(somePost(site, "before"));
  const { results, loaded } = context.client().subscribe(posts, site);
  await loaded();
  await eventually(() => results, ["before"]);
  await writer.fact(somePost(site, "after"));
  await eventually(() => sorted(results), ["after", "before"]);
});

it("a subscription of a given that is not stored yet goes live when it is saved", async (context) => {
  const site = someSite();
  const { results, loaded } = context.client().subscribe(posts, site);
  await loaded();
  assert.deepEqual(results, []);
  const writer = context.client();
  await writer.fact(site);
  await writer.fact(somePost(site, "first"));
  await eventually(() => results, ["first"]);
});

it("a given and its successor of one save reach the subscription", async (context) => {
  const site = someSite();
  const { results, loaded } = context.client().subscribe(posts, site);
  await loaded();
  await context.client().fact(somePost(site, "first"));
  await eventually(() => results, ["first"]);
});

it("nested projections of a subscription get live facts at each level", async (context) => {
  const site = someSite();
  const writer = context.client();
  const seen = [];
  const note = (text) => {
    seen.push(text);
    return () => seen.splice(seen.indexOf(text), 1);
  };
  const observer = context.client().observe(pages, site, (page) => {
    page.titles.onAdded((title) => note(`${page.createdAt} is called ${title}`));
    page.comments.onAdded((comment) => {
      comment.approvals.onAdded(() => note(`${comment.text} is approved`));
      return note(comment.text);
    });
    return note(page.createdAt);
  });
  await observer.loaded();
  const post = somePost(site, "one");
  const comment = new Comment(post, someone(), "c1");
  const title = new Title(post, "old", undefined);
  await writer.fact(post);
  await eventually(() => seen, ["one"]);
  await writer.fact(title);
  await eventually(() => sorted(seen), ["one", "one is called old"]);
  await writer.fact(comment);
  await eventually(() => sorted(seen), ["c1", "one", "one is called old"]);
  await writer.fact(new Approved(comment));
  await eventually(() => sorted(seen), ["c1", "c1 is approved", "one", "one is called old"]);
  await writer.fact(new Title(post, "new", title));
  await eventually(() => sorted(seen), ["c1", "c1 is approved", "one", "one is called new"]);
});

it("a deleted fact leaves a subscription and comes back when it is restored", async (context) => {
  const site = someSite();
  const post = somePost(site, "one");
  const deleted = new Deleted(post, "today");
  const writer = context.client();
  await writer.fact(post);
  const { results, loaded } = context.client().subscribe(livePosts, site);
  await loaded();
  await eventually(() => results, ["one"]);
  await writer.fact(deleted);
  await eventually(() => results, []);
  await writer.fact(new Restored(deleted));
  await eventually(() => results, ["one"]);
});

it("the successors of a restored fact come with it, and later ones too", {
  wakelineOnly: "upstream has no feed of what follows a restored fact",
}, async (context) => {
  const site = someSite();
  const post = somePost(site, "one");
  const deleted = new Deleted(post, "today");
  const writer = context.client();
  await writer.facts(new Comment(post, someone(), "c1"), deleted);
  const { results, loaded } = context.client().subscribe(liveComments, site);
  await loaded();
  assert.deepEqual(results, []);
  await writer.fact(new Restored(deleted));
  await eventually(() => results, ["c1"]);
  await writer.fact(new Comment(post, someone(), "c2"));
  await eventually(() => sorted(results), ["c1", "c2"]);
  assert.deepEqual(sorted(await context.client().query(liveComments, site)), ["c1", "c2"]);
  await writer.fact(new Deleted(post, "again"));
  await eventually(() => results, []);
});

async function eightSubscribers(context, site) {
  const subscriptions = Array.from({ length: 8 }, () => context.client().subscribe(posts, site));
  await Promise.all(subscriptions.map(({ loaded }) => loaded()));
  return subscriptions;
}

it("every subscriber of a feed gets every fact", async (context) => {
  const site = someSite();
  const subscriptions = await eightSubscribers(context, site);
  const names = Array.from({ length: 10 }, (_, number) => `post ${number}`);
  await context.client().facts(...names.map((name) => somePost(site, name)));
  for (const { results } of subscriptions) {
    await eventually(() => sorted(results), names);
  }
});

it("no subscriber misses a fact of writers that save at the same time", {
  wakelineOnly: "upstream's bookmarks pass a fact that commits after one with a larger id",
}, async (context) => {
  const site = someSite();
  const subscriptions = await eightSubscribers(context, site);
  const names = Array.from({ length: 100 }, (_, number) => `post ${number}`);
  const writers = Array.from({ length: 10 }, () => context.client());
  await Promise.all(names.map((name, number) => writers[number % writers.length].fact(somePost(site, name))));
  for (const { results } of subscriptions) {
    await eventually(() => sorted(results), sorted(names));
  }
});

it("a subscriber gets nothing of another given", async (context) => {
  const [mine, other] = [someSite(), someSite()];
  const { results, loaded } = context.client().subscribe(posts, mine);
  await loaded();
  const writer = context.client();
  await writer.fact(somePost(other, "other's"));
  await writer.fact(somePost(mine, "mine"));
  await eventually(() => results, ["mine"]);
});

it("a subscription that is stopped gets nothing more", async (context) => {
  const site = someSite();
  const reader = context.client();
  const [stopped, open] = [reader.subscribe(posts, site), context.client().subscribe(posts, site)];
  await Promise.all([stopped.loaded(), open.loaded()]);
  stopped.stop();
  await context.client().fact(somePost(site, "late"));
  await eventually(() => open.results, ["late"]);
  assert.deepEqual(stopped.results, []);
});

it("a client's own facts reach its own subscription", async (context) => {
  const site = someSite();
  const client = context.client();
  const { results, loaded } = client.subscribe(posts, site);
  await loaded();
  await client.fact(somePost(site, "own"));
  await eventually(() => results, ["own"]);
});

it("streams that are opened again resume where they were", async (context) => {
  const site = someSite();
  const writer = context.client();
  const { results, loaded } = context.client({ refresh: 1 }).subscribe(posts, site);
  await loaded();
  const names = Array.from({ length: 30 }, (_, number) => `post ${String(number).padStart(2, "0")}`);
  for (const name of names) {
    await writer.fact(somePost(site, name));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await eventually(() => sorted(results), names);
});
