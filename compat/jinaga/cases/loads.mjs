import assert from "node:assert/strict";

import { library } from "../client.mjs";
import { chain, items } from "../graphs.mjs";
import { post, send } from "../http.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, unique } from "../steps.mjs";

const { Jinaga, buildModel } = library();
const GRAPH = "application/x-jinaga-graph-v1";

class Root {
  static Type = "Load.Root";
  constructor(root) {
    Object.assign(this, { type: Root.Type, root });
  }
}

class Item {
  static Type = "Load.Item";
  constructor(root, number) {
    Object.assign(this, { type: Item.Type, root, number });
  }
}

const tails = Array.from({ length: 8 }, (_, index) => class {
  static Type = `Load.Tail${index + 1}`;
  constructor(above, number) {
    Object.assign(this, { type: this.constructor.Type, above, number });
  }
});

const model = buildModel((b) => tails.reduce(
  (all, tail, index) => all.type(tail, (f) => f.predecessor("above", tails[index - 1] ?? Item)),
  b.type(Root).type(Item, (f) => f.predecessor("root", Root)),
));

const itemsOf = model.given(Root).match((root) => root.successors(Item, (item) => item.root).select((item) => item.number));

/** One row has nine facts. */
const ninefold = model.given(Root).match((root) => tails.reduce(
  (found, tail) => found.selectMany((above) => above.successors(tail, (one) => one.above)),
  root.successors(Item, (item) => item.root),
).select((last) => last.number));

async function save(url, graph) {
  const answer = await post(url, "/save", GRAPH, graph);
  assert.equal(answer.status, 201, answer.body);
}

const numbers = (count) => Array.from({ length: count }, (_, number) => number);
const inOrder = (found) => [...found].sort((one, other) => one - other);

it("350 facts are brought by a query", async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 350));
  assert.deepEqual(inOrder(await context.client().query(itemsOf, root)), numbers(350));
});

it("2,000 facts reach a subscriber, and live ones after them", async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 2000));
  const { results, loaded } = context.client().subscribe(itemsOf, root);
  await loaded();
  await context.client().fact(new Item(root, 2000));
  await eventually(() => results.length, 2001);
  assert.deepEqual(inOrder(results), numbers(2001));
});

it("a page of 900 facts is loaded at once", {
  wakelineOnly: "upstream refuses a load of more than 100 kB with 413, and the query throws",
}, async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 100, 8));
  assert.deepEqual(inOrder(await context.client().query(ninefold, root)), numbers(100));
});

it("a subscription loads pages of 900 facts", {
  wakelineOnly: "upstream refuses such a load, and the client goes on without the facts",
}, async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 250, 8));
  const { results, loaded } = context.client().subscribe(ninefold, root);
  await loaded();
  await eventually(() => results.length, 250);
});

it("a graph of 10,000 facts is saved and streamed to its end", {
  wakelineOnly: "upstream fails at 5,400 facts in one graph",
}, async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 10_000));
  const text = `let r: Load.Root = #${Jinaga.hash(root)}\n(r: Load.Root) { i: Load.Item [ i->root: Load.Root = r ] }`;
  const streams = context.streams();
  const [feed] = await streams.feeds(text);
  const stream = await streams.open(feed);
  await stream.untilSync(10_000);
  assert.equal(stream.hashes().length, 10_000);
});

it("a chain of 2,000 facts is saved, and loaded from its end", {
  wakelineOnly: "upstream takes minutes for a chain of 400 facts, and fails",
}, async (context) => {
  const root = unique("root");
  await save(context.url, chain(root, 2000));
  const text = `let r: Load.Root = #${Jinaga.hash(new Root(root))}\n(r: Load.Root) { f: Load.First [ f->prior: Load.Root = r ] } => #f`;
  const answer = await post(context.url, "/read", "text/plain", text, { accept: "application/json" });
  assert.equal(JSON.parse(answer.body).length, 1);
  let last = JSON.parse(answer.body)[0];
  const next = (hash, type) => `let f: ${type} = #${hash}\n(f: ${type}) { l: Load.Link [ l->prior: ${type} = f ] } => #l`;
  const second = await post(context.url, "/read", "text/plain", next(last, "Load.First"), { accept: "application/json" });
  [last] = JSON.parse(second.body);
  const loaded = await post(context.url, "/load", "application/json", JSON.stringify({ references: [{ type: "Load.Link", hash: last }] }), { accept: "application/json" });
  assert.equal(JSON.parse(loaded.body).facts.length, 3);
});

it("the JSON pages of a feed end with an empty one that repeats the bookmark", async (context) => {
  const root = new Root(unique("root"));
  await save(context.url, items(root.root, 250));
  const text = `let r: Load.Root = #${Jinaga.hash(root)}\n(r: Load.Root) { i: Load.Item [ i->root: Load.Root = r ] }`;
  const [feed] = await context.streams().feeds(text);
  const seen = new Set();
  const sizes = [];
  let bookmark = "";
  for (;;) {
    const headers = { accept: "application/json" };
    const answer = await send(context.url, { path: `/feeds/${feed}?b=${encodeURIComponent(bookmark)}`, headers });
    const page = JSON.parse(answer.body);
    if (page.references.length === 0) {
      assert.equal(page.bookmark, bookmark);
      break;
    }
    sizes.push(page.references.length);
    page.references.forEach(({ hash }) => seen.add(hash));
    assert.notEqual(page.bookmark, bookmark);
    bookmark = page.bookmark;
  }
  assert.equal(seen.size, 250);
  assert.deepEqual(sizes, [100, 100, 50]);
});
