import assert from "node:assert/strict";
import { connect as socket } from "node:net";

import { library } from "../client.mjs";
import { items } from "../graphs.mjs";
import { post, send } from "../http.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, unique } from "../steps.mjs";

const { Jinaga, computeHash } = library();
const GRAPH = "application/x-jinaga-graph-v1";

const itemsOf = (root) => `let r: Load.Root = #${Jinaga.hash({ type: "Load.Root", root })}
(r: Load.Root) { i: Load.Item [ i->root: Load.Root = r ] }`;

/** The bytes of an answer as they come. */
function raw(url, path, accept) {
  const { hostname, port, pathname } = new URL(url + path);
  const connection = socket(Number(port), hostname);
  const found = { text: "", close: () => connection.destroy() };
  connection.setEncoding("utf8");
  connection.on("data", (text) => {
    found.text += text;
  });
  connection.on("error", () => {});
  connection.write(`GET ${pathname}?b= HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: ${accept}\r\n\r\n`);
  return found;
}

function unchunked(text) {
  const [head, ...rest] = text.split("\r\n\r\n");
  let body = rest.join("\r\n\r\n");
  let decoded = "";
  for (let size; (size = Number.parseInt(body, 16)) > 0;) {
    const start = body.indexOf("\r\n") + 2;
    decoded += body.slice(start, start + size);
    body = body.slice(start + size + 2);
  }
  return { head: head.split("\r\n"), body: decoded };
}

it("a stream's bytes are chunks of JSON lines with a blank line after each, and SYNC after each page", async (context) => {
  const root = unique("root");
  await post(context.url, "/save", GRAPH, items(root, 3));
  const [feed] = await context.streams().feeds(itemsOf(root));
  const stream = raw(context.url, `/feeds/${feed}`, "application/x-jinaga-feed-stream");
  const frames = () => unchunked(stream.text).body.split("\n\n").slice(0, -1);
  const shape = () => frames().filter((frame) => frame.trim()).map((frame) => JSON.parse(frame).references.length);
  await eventually(shape, [3, 0]);
  const { head, body } = unchunked(stream.text);
  assert.equal(head[0], "HTTP/1.1 200 OK");
  const headers = head.slice(1).map((line) => line.toLowerCase());
  for (const header of [
    "content-type: application/x-jinaga-feed-stream",
    "cache-control: no-cache", "transfer-encoding: chunked",
  ]) {
    assert.ok(headers.includes(header), `${header} is missing in ${headers}`);
  }
  const [page, sync] = body.split("\n\n").map((line) => line && JSON.parse(line));
  assert.deepEqual(Object.keys(page), ["references", "bookmark"]);
  assert.deepEqual(page.references.map(({ type }) => type), ["Load.Item", "Load.Item", "Load.Item"]);
  assert.deepEqual(Object.keys(page.references[0]), ["type", "hash"]);
  assert.deepEqual(sync, { references: [], bookmark: page.bookmark });
  await post(context.url, "/save", GRAPH, items(root, 4));
  await eventually(shape, [3, 0, 1, 0]);
  stream.close();
});

/** Everything that JSON can hold, but what a jsonb of upstream's cannot. */
function anything(random, depth = 0) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const kind = Math.floor(random() * (depth > 2 ? 4 : 6));
  switch (kind) {
    case 0: return pick([0, -0, 1, -1, 1e21, 1e-7, 123456789.125, 5e-324, 1.7976931348623157e308, 2 ** 53, 0.1 + 0.2, random() * 1e6]);
    case 1: return pick(["", "a", "\u2028", "\"\\/\b\f\n\r\t\u0001", "Ω≈ç", "😀", "ｆ\uFFFF", "é"]);
    case 2: return pick([true, false]);
    case 3: return pick([null, ""]);
    case 4: return Array.from({ length: Math.floor(random() * 3) }, () => anything(random, depth + 1));
    default: return Object.fromEntries(["z", "é", "😀", "ｆ", "A", "10", "9"].slice(0, Math.floor(random() * 8))
      .map((key) => [key, anything(random, depth + 1)]));
  }
}

it("the server computes the hashes that the client does", async (context) => {
  let seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`the seed of random facts: ${seed}`);
  const random = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed / 0x7fffffff;
  };
  const facts = Array.from({ length: 200 }, () => {
    const fields = { one: anything(random), two: anything(random) };
    return { type: "Any.Thing", hash: computeHash(fields, {}), predecessors: {}, fields };
  });
  const answer = await post(context.url, "/save", "application/json", JSON.stringify({ facts }));
  assert.equal(answer.status, 201, answer.body);
  const graph = facts.map(({ fields }) => `"Any.Thing"\n{}\n${JSON.stringify(fields)}\n\n`).join("");
  assert.equal((await post(context.url, "/save", GRAPH, graph)).status, 201);
  const references = [...new Set(facts.map(({ hash }) => hash))].map((hash) => ({ type: "Any.Thing", hash }));
  const loaded = await post(context.url, "/load", "application/json", JSON.stringify({ references }), { accept: "application/json" });
  const found = new Map(JSON.parse(loaded.body).facts.map((fact) => [fact.hash, fact.fields]));
  for (const { hash, fields } of facts) {
    assert.equal(computeHash(found.get(hash), {}), computeHash(fields, {}));
  }
});

it("a fact that is saved repeatedly and in other forms is stored once", async (context) => {
  const root = unique("root");
  const fields = { root };
  const fact = { type: "Load.Root", hash: computeHash(fields, {}), predecessors: {}, fields };
  await Promise.all([
    post(context.url, "/save", GRAPH, items(root, 5)),
    post(context.url, "/save", GRAPH, items(root, 5)),
    post(context.url, "/save", "application/json", JSON.stringify({ facts: [fact] })),
  ]);
  const [feed] = await context.streams().feeds(itemsOf(root));
  const page = await send(context.url, { path: `/feeds/${feed}?b=`, headers: { accept: "application/json" } });
  assert.equal(JSON.parse(page.body).references.length, 5);
});

it("a fact whose predecessor is not stored is refused by name", {
  wakelineOnly: "upstream stores it and loses its edge for ever",
}, async (context) => {
  const missing = { type: "Load.Root", hash: computeHash({ root: unique("root") }, {}) };
  const predecessors = { root: missing };
  const fields = { number: 1 };
  const fact = { type: "Load.Item", hash: computeHash(fields, predecessors), predecessors, fields };
  const answer = await post(context.url, "/save", "application/json", JSON.stringify({ facts: [fact] }));
  assert.equal(answer.status, 400, answer.body);
  assert.ok(answer.body.includes(missing.hash), answer.body);
  const body = JSON.stringify({ references: [{ type: fact.type, hash: fact.hash }] });
  const loaded = await post(context.url, "/load", "application/json", body, { accept: "application/json" });
  assert.deepEqual(JSON.parse(loaded.body), { facts: [] });
});

it("bookmarks of upstream's form are accepted", async (context) => {
  const root = unique("root");
  await post(context.url, "/save", GRAPH, items(root, 3));
  const [feed] = await context.streams().feeds(itemsOf(root));
  for (const bookmark of ["0", "1.1.1"]) {
    const page = await send(context.url, { path: `/feeds/${feed}?b=${bookmark}`, headers: { accept: "application/json" } });
    assert.equal(page.status, 200, page.body);
    assert.equal(JSON.parse(page.body).references.length, 3);
  }
});
