import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { it } from "../../javascript/runner.mjs";
import { follow, load, request, submit, webSocket } from "../page.mjs";
import { refused } from "../steps.mjs";

const POP = "/api/v1/pop/queue/q?autoAck=true";
const PUSH = JSON.stringify({ items: [{ queue: "q", payload: "pushed" }] });
const USER = { email: "evil@evil.example", password: "a long password" };
const WRITTEN = 'let evil: Evil.Site = { domain: "evil" }';
const FACT = {
  type: "Evil.Site",
  hash: createHash("sha512").update('{"fields":{"domain":"evil"},"predecessors":{}}').digest("base64"),
};
// By the name of the page's host. Pages on another port of the server's host are of the same site.
const PAGES = { "another site": "evil.example", "another port": "127.0.0.1", "another name of this machine": "localhost" };
const TEXT_POSTS = [
  ["/api/v1/push", PUSH],
  ["/api/v1/consumer-groups/__QUEUE_MODE__/queues/q/seek", '{"toEnd":true}'],
  ["/v1/auth/register", JSON.stringify(USER)],
  ["/jinaga/write", WRITTEN],
  // Pauses all pushes.
  ["/api/v1/system/maintenance", '{"enabled":true}'],
];

/** A server with one message. */
async function serverWithMessage(context) {
  const server = await context.server();
  // So that there is a consumer group that can be moved.
  await server.push("q", "consumed");
  await server.drain("q");
  await server.push("q", "kept");
  return server;
}

async function isUnchanged(server) {
  assert.deepEqual(await server.drain("q"), ["kept"]);
  assert.equal(await server.isPaused(), false);
  assert.equal(await server.hasUser(USER.email, USER.password), false);
  assert.equal(await server.hasFact(FACT), false);
}

it("the attacks of these cases work where they come from no page", async (context) => {
  const server = await serverWithMessage(context);
  for (const [path, body] of TEXT_POSTS) {
    const answer = await fetch(server.url + path, { method: "POST", headers: { "content-type": "text/plain" }, body });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
  }
  assert.deepEqual(await server.drain("q"), []);
  assert.equal(await server.isPaused(), true);
  assert.equal(await server.hasUser(USER.email, USER.password), true);
  assert.equal(await server.hasFact(FACT), true);
});

for (const [where, name] of Object.entries(PAGES)) {
  it(`a page of ${where} changes nothing by posts of text`, async (context) => {
    const server = await serverWithMessage(context);
    const page = await context.pageOf(name);
    for (const [path, body] of TEXT_POSTS) {
      await refused(server, path, () => request(page, server.url + path, { method: "POST", mode: "no-cors", body }));
      await refused(server, `${path} by a beacon`, () => {
        return page.evaluate(([url, body]) => navigator.sendBeacon(url, body), [server.url + path, body]);
      });
    }
    await isUnchanged(server);
  });

  it(`a page of ${where} changes nothing by what it loads`, async (context) => {
    const server = await serverWithMessage(context);
    const page = await context.pageOf(name);
    const url = server.url + POP;
    for (const tag of ["img", "script", "iframe", "audio"]) {
      await refused(server, tag, () => load(page, tag, { src: url }));
    }
    await refused(server, "a style sheet", () => load(page, "link", { rel: "stylesheet", href: url }));
    await refused(server, "a prefetch", () => load(page, "link", { rel: "preload", as: "fetch", href: url }));
    await refused(server, "an event source", () => page.evaluate((url) => void new EventSource(url), url));
    await refused(server, "fetch", () => request(page, url, { mode: "no-cors" }));
    await refused(server, "a window", () => page.evaluate((url) => void window.open(url), url));
    await isUnchanged(server);
  });

  it(`a page of ${where} changes nothing by a form`, async (context) => {
    const server = await serverWithMessage(context);
    // `name=value` is to be an object.
    const field = [`${PUSH.slice(0, -1)},"x":"`, '"}'];
    for (const target of ["hidden", "_self"]) {
      const page = await context.pageOf(name);
      await refused(server, target, () => submit(page, `${server.url}/api/v1/push`, field, target));
    }
    await isUnchanged(server);
  });

  it(`a page of ${where} reads nothing`, async (context) => {
    const server = await serverWithMessage(context);
    const page = await context.pageOf(name);
    const feeds = { method: "POST", headers: { "content-type": "text/plain" }, body: "(s: Evil.Site) { }" };
    for (const [path, options] of [["/v1/waits"], ["/metrics"], ["/openapi.json"], [POP], ["/jinaga/feeds", feeds]]) {
      const read = await refused(server, path, () => request(page, server.url + path, options));
      assert.ok(read.failed, `${path}: ${JSON.stringify(read)}`);
    }
    // These are served to everybody, and still no page may see them or have them as a part of it.
    for (const mode of ["cors", "no-cors"]) {
      const read = await request(page, `${server.url}/readyz?verbose`, { mode });
      assert.ok(read.failed, `${mode}: ${JSON.stringify(read)}`);
    }
    await isUnchanged(server);
  });

  it(`a page of ${where} has no sockets`, async (context) => {
    const server = await serverWithMessage(context);
    const page = await context.pageOf(name);
    const path = "/socket.io/?EIO=4&transport";
    const opened = await refused(server, "a WebSocket", () => {
      return webSocket(page, `${server.url.replace("http", "ws")}${path}=websocket`);
    });
    assert.equal(opened, "error");
    const polled = await refused(server, "polling", () => request(page, `${server.url}${path}=polling`));
    assert.ok(polled.failed, JSON.stringify(polled));
  });

  it(`a link on a page of ${where} takes no message`, async (context) => {
    const server = await serverWithMessage(context);
    const page = await context.pageOf(name);
    const answer = await refused(server, "a link", () => follow(page, server.url + POP));
    assert.equal(answer.request().isNavigationRequest(), true);
    const probe = await follow(await context.pageOf(name), `${server.url}/livez`);
    assert.equal(probe.status(), 200);
    await isUnchanged(server);
  });
}

it("a page without an origin of its own changes nothing", async (context) => {
  const server = await serverWithMessage(context);
  const page = await context.pageOf("evil.example");
  const script = `fetch("${server.url}/api/v1/push", { method: "POST", mode: "no-cors", body: ${JSON.stringify(PUSH)} })`;
  await refused(server, "a sandbox", () => page.evaluate((script) => {
    const frame = Object.assign(document.createElement("iframe"), { srcdoc: `<script>${script}</script>` });
    frame.sandbox = "allow-scripts";
    document.body.append(frame);
  }, script));
  await isUnchanged(server);
});

it("a redirect of another site changes nothing", async (context) => {
  const server = await serverWithMessage(context);
  const page = await context.pageOf("evil.example");
  for (const name of ["evil.example", "other.example"]) {
    const through = (path) => `${context.origin(name)}/redirect?to=${encodeURIComponent(server.url + path)}`;
    const post = { method: "POST", mode: "no-cors", body: PUSH };
    await refused(server, `a post by ${name}`, () => request(page, through("/api/v1/push"), post));
    await refused(server, `an image by ${name}`, () => load(page, "img", { src: through(POP) }));
  }
  await isUnchanged(server);
});

it("a name that its owner gave to this machine is refused, whatever the page does", async (context) => {
  const server = await serverWithMessage(context);
  const url = server.url.replace("127.0.0.1", "evil.example");
  const page = await context.visit(url + POP);
  assert.equal(page.answer.status(), 403);
  // For this page the answers are of its own origin, so that it could read them.
  for (const path of ["/v1/waits", "/metrics", POP]) {
    const read = await request(page, url + path);
    assert.deepEqual([read.type, read.status], ["basic", 403], path);
  }
  for (const [path, body] of TEXT_POSTS) {
    const read = await request(page, url + path, { method: "POST", body });
    assert.deepEqual([read.type, read.status], ["basic", 403], path);
  }
  const socket = `${url.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`;
  assert.equal(await webSocket(page, socket), "error");
  await isUnchanged(server);
});

it("where the browser does not say whose page it is, a page of another site changes nothing", async (context) => {
  const server = await serverWithMessage(context);
  const page = await context.pageOf("evil.example");
  // No loopback address for the browser, and no TLS.
  const url = server.url.replace("127.0.0.1", "wakeline");
  const [sent] = await Promise.all([
    page.waitForRequest(url + POP),
    refused(server, "an image", () => load(page, "img", { src: url + POP })),
  ]);
  assert.equal((await sent.allHeaders())["sec-fetch-site"], undefined);
  for (const [path, body] of TEXT_POSTS) {
    await refused(server, path, () => request(page, url + path, { method: "POST", mode: "no-cors", body }));
  }
  await isUnchanged(server);
});
