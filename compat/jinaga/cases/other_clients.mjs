import assert from "node:assert/strict";

import { library } from "../client.mjs";
import { items } from "../graphs.mjs";
import { open, post, send } from "../http.mjs";
import { it } from "../../javascript/runner.mjs";
import { eventually, unique } from "../steps.mjs";

const { Jinaga } = library();
const GRAPH = "application/x-jinaga-graph-v1";
const OWN = { wakelineOnly: "only Wakeline has this for clients that are not Jinaga's" };

const itemsOf = (root) => `let r: Load.Root = #${Jinaga.hash({ type: "Load.Root", root })}
(r: Load.Root) { i: Load.Item [ i->root: Load.Root = r ] }`;

/** The events of an event stream, as a browser reads them. */
function events(url, feed, headers = {}) {
  const found = { list: [], text: "" };
  const request = open(url, { path: `/feeds/${feed}`, headers: { accept: "text/event-stream", ...headers } }, (response) => {
    found.type = response.headers["content-type"];
    response.setEncoding("utf8");
    response.on("error", () => {});
    response.on("data", (text) => {
      found.text += text;
      const blocks = found.text.split("\n\n").slice(0, -1).filter((block) => !block.startsWith(":"));
      found.list = blocks.map((block) => Object.fromEntries(block.split("\n").map((line) => {
        const end = line.indexOf(":");
        return [line.slice(0, end), line.slice(end + 1).trimStart()];
      })));
    });
  });
  request.on("error", () => {});
  found.close = () => request.destroy();
  found.shape = () => found.list.map(({ event, data }) => [event, JSON.parse(data).references.length]);
  return found;
}

it("server-sent events bring pages, SYNC and live facts, and resume at Last-Event-ID", OWN, async (context) => {
  const root = unique("root");
  await post(context.url, "/save", GRAPH, items(root, 3));
  const [feed] = await context.streams().feeds(itemsOf(root));
  const first = events(context.url, feed);
  await eventually(first.shape, [["page", 3], ["sync", 0]]);
  assert.match(first.type, /^text\/event-stream/);
  await post(context.url, "/save", GRAPH, items(root, 4));
  await eventually(first.shape, [["page", 3], ["sync", 0], ["page", 1], ["sync", 0]]);
  first.close();
  await post(context.url, "/save", GRAPH, items(root, 6));
  const second = events(context.url, feed, { "last-event-id": first.list.at(-1).id });
  await eventually(second.shape, [["page", 2], ["sync", 0]]);
  second.close();
});

it("an empty page is held until a fact is saved", OWN, async (context) => {
  const root = unique("root");
  await post(context.url, "/save", GRAPH, items(root, 1));
  const [feed] = await context.streams().feeds(itemsOf(root));
  const page = (bookmark, wait) => send(context.url, {
    path: `/feeds/${feed}?b=${encodeURIComponent(bookmark)}`,
    headers: { accept: "application/json", prefer: `wait=${wait}` },
  });
  const first = JSON.parse((await page("", 30)).body);
  assert.equal(first.references.length, 1);
  const held = page(first.bookmark, 30);
  await post(context.url, "/save", GRAPH, items(root, 2));
  const answer = await held;
  assert.equal(answer.headers["preference-applied"], "wait=30");
  assert.equal(JSON.parse(answer.body).references.length, 1);
  const empty = await page(JSON.parse(answer.body).bookmark, 1);
  assert.deepEqual(JSON.parse(empty.body), { references: [], bookmark: JSON.parse(answer.body).bookmark });
});

it("a stream that reads slowly gets everything", OWN, async (context) => {
  const root = unique("root");
  await post(context.url, "/save", GRAPH, items(root, 5000));
  const [feed] = await context.streams().feeds(itemsOf(root));
  const hashes = new Set();
  let rest = "";
  let isSynced = false;
  const request = open(context.url, { path: `/feeds/${feed}?b=`, headers: { accept: "application/x-jinaga-feed-stream" } }, (response) => {
    response.setEncoding("utf8");
    response.on("error", () => {});
    response.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines.filter((one) => one.trim())) {
        const { references } = JSON.parse(line);
        isSynced = references.length === 0;
        references.forEach(({ hash }) => hashes.add(hash));
      }
      response.pause();
      setTimeout(() => response.resume(), 20);
    });
  });
  request.on("error", () => {});
  await eventually(() => [hashes.size, isSynced], [5000, true]);
  request.destroy();
});
