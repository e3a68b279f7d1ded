import assert from "node:assert/strict";

import { pages, posts, Comment, somePost, someSite, someone } from "../blog.mjs";
import { post, send } from "../http.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, sorted, unique } from "../steps.mjs";

async function twoNodes(context, settings) {
  const deployment = await context.deployment();
  return [await deployment.node(settings), await deployment.node(settings)];
}

it("a fact saved at one node is found at the other", { nodes: true }, async (context) => {
  const [one, other] = await twoNodes(context);
  const site = someSite();
  await context.client({ url: one.url }).fact(somePost(site, "one"));
  assert.deepEqual(await context.client({ url: other.url }).query(posts, site), ["one"]);
});

it("a subscription at one node gets the facts saved at the other", {
  nodes: true,
  wakelineOnly: "upstream's processes know nothing of one another",
}, async (context) => {
  const [one, other] = await twoNodes(context);
  const site = someSite();
  const { results, loaded } = context.client({ url: one.url }).subscribe(posts, site);
  await loaded();
  await context.client({ url: other.url }).fact(somePost(site, "there"));
  await eventually(() => results, ["there"]);
  await context.client({ url: one.url }).fact(somePost(site, "here"));
  await eventually(() => sorted(results), ["here", "there"]);
});

it("nested projections get the facts saved at the other node", {
  nodes: true,
  wakelineOnly: "upstream's processes know nothing of one another",
}, async (context) => {
  const [one, other] = await twoNodes(context);
  const site = someSite();
  const seen = [];
  const observer = context.client({ url: one.url }).observe(pages, site, (page) => {
    page.comments.onAdded((comment) => {
      seen.push(comment.text);
    });
    seen.push(page.createdAt);
  });
  await observer.loaded();
  const post = somePost(site, "post");
  const writer = context.client({ url: other.url });
  await writer.fact(post);
  await eventually(() => seen, ["post"]);
  await writer.fact(new Comment(post, someone(), "comment"));
  await eventually(() => seen, ["post", "comment"]);
});

it("one node answers a feed that another made", {
  nodes: true,
  wakelineOnly: "upstream keeps its feeds in memory",
}, async (context) => {
  const [one, other] = await twoNodes(context);
  const site = someSite();
  await context.client({ url: one.url }).fact(somePost(site, "one"));
  const { Jinaga } = (await import("../client.mjs")).library();
  const text = `let s: Blog.Site = #${Jinaga.hash(site)}\n(s: Blog.Site) { p: Blog.Post [ p->site: Blog.Site = s ] }`;
  const [feed] = await context.streams(one.url).feeds(text);
  const stream = await context.streams(other.url).open(feed);
  assert.equal(stream.status, 200);
  await stream.untilSync(1);
});

it("a subscriber moves to the other node when its own is killed", {
  nodes: true,
  wakelineOnly: "upstream keeps its feeds in memory, and its processes know nothing of one another",
}, async (context) => {
  const [one, other] = await twoNodes(context);
  const { Jinaga } = (await import("../client.mjs")).library();
  const site = someSite();
  const writer = context.client({ url: other.url });
  await writer.fact(somePost(site, "one"));
  const text = `let s: Blog.Site = #${Jinaga.hash(site)}\n(s: Blog.Site) { p: Blog.Post [ p->site: Blog.Site = s ] }`;
  const [feed] = await context.streams(one.url).feeds(text);
  const first = await context.streams(one.url).open(feed);
  await first.untilSync(1);
  await one.kill();
  await writer.fact(somePost(site, "two"));
  const second = await context.streams(other.url).open(feed, { bookmark: first.bookmark });
  await second.untilSync(1);
  assert.equal(second.hashes().length, 1);
  assert.ok(!first.hashes().includes(second.hashes()[0]));
});

it("facts of concurrent writers at two nodes reach the subscribers of both", {
  nodes: true,
  wakelineOnly: "upstream's processes know nothing of one another",
}, async (context) => {
  const nodes = await twoNodes(context);
  const site = someSite();
  const subscriptions = [...nodes, ...nodes].map(({ url }) => context.client({ url }).subscribe(posts, site));
  await Promise.all(subscriptions.map(({ loaded }) => loaded()));
  const names = Array.from({ length: 80 }, (_, number) => `post ${number}`);
  const writers = Array.from({ length: 8 }, (_, number) => context.client({ url: nodes[number % 2].url }));
  await Promise.all(names.map((name, number) => writers[number % writers.length].fact(somePost(site, name))));
  for (const { results } of subscriptions) {
    await eventually(() => sorted(results), sorted(names));
  }
});

const TEXT = "text/plain";
const ITEMS = "(root: Kill.Root) { item: Kill.Item [ item->root: Kill.Root = root ] }";

/** Follows a feed for ever, at the next node whenever its own has gone, from where it was. */
async function follow(context, nodes, feed, first, isOver) {
  const seen = new Set();
  let bookmark = "";
  const following = (async () => {
    for (let turn = first; !isOver(); turn += 1) {
      try {
        const stream = await context.streams(nodes[turn % nodes.length].url).open(feed, { bookmark });
        await eventually(() => {
          stream.hashes().forEach((hash) => seen.add(hash));
          bookmark = stream.bookmark || bookmark;
          return stream.hasEnded || isOver();
        }, true);
        stream.close();
      } catch {
        // Its node is away, or quiet for long: the next one, from the last bookmark.
      }
    }
  })();
  return { seen, following };
}

it("twenty clients get the facts of four writers at two nodes of which one is killed", {
  nodes: true,
  wakelineOnly: "upstream's processes know nothing of one another, and late commits are skipped",
}, async (context) => {
  const nodes = await twoNodes(context);
  const root = `let root: Kill.Root = { name: "${unique("kill")}" }`;
  const [feed] = await context.streams(nodes[0].url).feeds(`${root} ${ITEMS}`);
  let isOver = false;
  const clients = await Promise.all(Array.from({ length: 20 }, (_, number) => follow(context, nodes, feed, number, () => isOver)));
  let acknowledged = 0;
  const write = async (writer) => {
    for (let number = 0; number < 60; number += 1) {
      const item = `${root} let item: Kill.Item = { root, number: ${writer * 1000 + number} }`;
      for (let turn = writer + number; ; turn += 1) {
        const answer = await post(nodes[turn % nodes.length].url, "/write", TEXT, item).catch(() => undefined);
        if (answer?.status === 201) {
          acknowledged += 1;
          break;
        }
      }
    }
  };
  const writing = Promise.all([0, 1, 2, 3].map(write));
  await eventually(() => acknowledged > 60, true);
  await nodes[1].kill();
  await nodes[1].start();
  await writing;
  assert.equal(acknowledged, 240);
  const stored = new Set();
  for (let bookmark = ""; ;) {
    const page = JSON.parse((await send(nodes[0].url, { path: `/feeds/${feed}?b=${encodeURIComponent(bookmark)}` })).body);
    if (page.references.length === 0) {
      break;
    }
    page.references.forEach(({ hash }) => stored.add(hash));
    bookmark = page.bookmark;
  }
  assert.equal(stored.size, 240);
  for (const { seen } of clients) {
    await eventually(() => [...stored].filter((hash) => !seen.has(hash)), []);
    assert.equal(seen.size, stored.size);
  }
  isOver = true;
  await Promise.all(clients.map(({ following }) => following));
});
