import assert from "node:assert/strict";

import { it } from "../../javascript/runner.mjs";
import { load, request, webSocket } from "../page.mjs";
import { refused } from "../steps.mjs";

const POP = "/api/v1/pop/queue/q?autoAck=true";
const SOCKET = "/socket.io/?EIO=4&transport=websocket";
const TOKEN = "correct-horse-battery";

function json(body, headers = {}) {
  return { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

async function isServed(page, url, type) {
  const items = [{ queue: "q", payload: "from a page" }];
  const pushed = await request(page, `${url}/api/v1/push`, json({ items }));
  assert.deepEqual([pushed.type, pushed.status], [type, 201], JSON.stringify(pushed));
  const wrong = await request(page, `${url}/api/v1/push`, json({ itms: [] }));
  assert.deepEqual([wrong.type, wrong.status], [type, 400]);
  assert.equal(JSON.parse(wrong.text).field, "itms");
  const text = { method: "POST", headers: { "content-type": "text/plain" }, body: 'let one: Page.Site = { domain: "one" }' };
  const written = await request(page, `${url}/jinaga/write`, text);
  assert.deepEqual([written.type, written.status], [type, 201], JSON.stringify(written));
  assert.equal(await webSocket(page, url.replace("http", "ws") + SOCKET), "open");
}

async function pops(page, url) {
  const popped = await request(page, url + POP, { headers: { prefer: "wait=30" } });
  assert.equal(popped.status, 200, JSON.stringify(popped));
  assert.equal(JSON.parse(popped.text).messages[0].data, "from a page");
  assert.match(popped.headers["server-timing"], /hold/);
}

it("a page of an allowed origin may do everything that its requests say", async (context) => {
  const server = await context.server("--http-allowed-origins", context.origin("app.example"));
  const page = await context.pageOf("app.example");
  await isServed(page, server.url, "cors");
  await pops(page, server.url);
});

it("other origins stay strangers beside an allowed one, and so do elements of its own page", async (context) => {
  const server = await context.server("--http-allowed-origins", context.origin("app.example"));
  await server.push("q", "kept");
  for (const name of ["evil.example", "127.0.0.1"]) {
    const page = await context.pageOf(name);
    const push = json({ items: [{ queue: "q", payload: "pushed" }] });
    // The browser asks first, and is refused.
    const pushed = await refused(server, name, () => request(page, `${server.url}/api/v1/push`, push));
    assert.ok(pushed.failed, JSON.stringify(pushed));
  }
  const page = await context.pageOf("app.example");
  await refused(server, "an image", () => load(page, "img", { src: server.url + POP }));
  assert.deepEqual(await server.drain("q"), ["kept"]);
});

it("with a login, an allowed page is asked for its token and a preflight is not", async (context) => {
  const origin = context.origin("app.example");
  const server = await context.server("--http-allowed-origins", origin, "--auth-tokens", TOKEN);
  const page = await context.pageOf("app.example");
  const url = `${server.url}/v1/waits`;
  const without = await request(page, url);
  assert.deepEqual([without.type, without.status], ["cors", 401]);
  const read = await request(page, url, { headers: { authorization: `Bearer ${TOKEN}` } });
  assert.deepEqual([read.type, read.status], ["cors", 200]);
  const stranger = await request(await context.pageOf("evil.example"), url, { headers: { authorization: `Bearer ${TOKEN}` } });
  assert.ok(stranger.failed, JSON.stringify(stranger));
});

it("a page of the server's own is served by each name of the server", async (context) => {
  const server = await context.server("--http-allowed-hosts", "wakeline.example");
  for (const name of ["127.0.0.1", "localhost", "wakeline", "wakeline.example"]) {
    const url = server.url.replace("127.0.0.1", name);
    const page = await context.visit(`${url}/livez`);
    assert.equal(page.answer.status(), 200, name);
    await isServed(page, url, "basic");
    if (["127.0.0.1", "localhost"].includes(name)) {
      await pops(page, url);
    } else {
      // Without TLS the browser does not say whose page it is.
      assert.equal((await request(page, url + POP)).status, 403, name);
    }
  }
});
