import assert from "node:assert/strict";

import { posts, somePost, someSite } from "../blog.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, sorted } from "../steps.mjs";

it("facts outlive a server that is killed", async (context) => {
  const node = await (await context.deployment()).node();
  const site = someSite();
  await context.client({ url: node.url }).facts(somePost(site, "one"), somePost(site, "two"));
  await node.kill();
  await node.start();
  assert.deepEqual(sorted(await context.client({ url: node.url }).query(posts, site)), ["one", "two"]);
});

it("a subscription recovers when its server is killed and comes back", {
  wakelineOnly: "upstream forgets its feeds: the client asks for the same hash for ever and gets 404",
}, async (context) => {
  const node = await (await context.deployment()).node();
  const site = someSite();
  const writer = context.client({ url: node.url });
  await writer.fact(somePost(site, "before"));
  const { results, loaded } = context.client({ url: node.url, refresh: 1 }).subscribe(posts, site);
  await loaded();
  await eventually(() => results, ["before"]);
  await node.kill();
  await node.start();
  await writer.fact(somePost(site, "after"));
  await eventually(() => sorted(results), ["after", "before"]);
});

it("a subscription that begins while its server is away is served when it comes", {
  wakelineOnly: "upstream forgets its feeds",
}, async (context) => {
  const node = await (await context.deployment()).node();
  const site = someSite();
  const client = context.client({ url: node.url, refresh: 2 });
  await client.fact(somePost(site, "before"));
  // So that the client knows the feed's hash already.
  assert.deepEqual(await client.query(posts, site), ["before"]);
  await node.kill();
  const { results, loaded } = client.subscribe(posts, site);
  await node.start();
  await loaded();
  await context.client({ url: node.url }).fact(somePost(site, "after"));
  await eventually(() => sorted(results), ["after", "before"]);
});

it("a server that is stopped ends its streams, and they resume at the next one", {
  wakelineOnly: "upstream forgets its feeds",
}, async (context) => {
  const node = await (await context.deployment()).node();
  const site = someSite();
  const { results, loaded } = context.client({ url: node.url, refresh: 1 }).subscribe(posts, site);
  await loaded();
  await node.stop();
  await node.start();
  await context.client({ url: node.url }).fact(somePost(site, "after"));
  await eventually(() => results, ["after"]);
});

it("a client that keeps writing through a restart loses no acknowledged fact", {
  wakelineOnly: "upstream forgets its feeds",
}, async (context) => {
  // The client takes SYNC's bookmark although it has not loaded the page before it yet. On a busy machine
  // that takes longer than the pause before SYNC, and the fact would be lost to this client.
  const node = await (await context.deployment()).node({ syncDelay: "10s" });
  const site = someSite();
  const { results, loaded } = context.client({ url: node.url, refresh: 1 }).subscribe(posts, site);
  await loaded();
  const acknowledged = [];
  let restarts = Promise.resolve();
  for (let number = 0; number < 60; number += 1) {
    if (number === 20) {
      // The client loads pages side by side, and goes past one whose load fails when a later one has
      // come: so none is under way when the server is killed.
      await eventually(() => acknowledged.filter((name) => !results.includes(name)), []);
      restarts = node.kill().then(() => node.start());
    }
    const name = `post ${String(number).padStart(2, "0")}`;
    try {
      // A client of its own: a memory store takes a fact that the server did not.
      await context.client({ url: node.url }).fact(somePost(site, name));
      acknowledged.push(name);
    } catch {
      await restarts;
    }
  }
  assert.ok(acknowledged.length >= 40, `only ${acknowledged.length} were acknowledged`);
  await eventually(() => acknowledged.filter((name) => !results.includes(name)), []);
  const newcomer = context.client({ url: node.url }).subscribe(posts, site);
  await eventually(() => acknowledged.filter((name) => !newcomer.results.includes(name)), []);
});
