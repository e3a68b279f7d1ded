// A server, and what its state is: asked from outside of the browser.

import assert from "node:assert/strict";

const JSON_TYPE = { "content-type": "application/json", accept: "application/json" };

export class Wakeline {
  #node;

  constructor(node) {
    this.#node = node;
  }

  get url() {
    return this.#node.url;
  }

  log() {
    return this.#node.log();
  }

  async post(path, body) {
    const answer = await fetch(this.url + path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return answer.json();
  }

  async get(path) {
    const answer = await fetch(this.url + path);
    assert.equal(answer.status, 200, path);
    return answer.json();
  }

  async push(queue, payload) {
    await this.post("/api/v1/push", { items: [{ queue, payload }] });
  }

  /** The payloads that can be popped. They are gone then. */
  async drain(queue) {
    const answer = await fetch(`${this.url}/api/v1/pop/queue/${queue}?batch=100&autoAck=true`);
    if (answer.status === 204) {
      return [];
    }
    const { messages } = await answer.json();
    return messages.map(({ data }) => data);
  }

  async isPaused() {
    const { maintenanceMode } = await this.get("/api/v1/system/maintenance");
    return maintenanceMode;
  }

  async hasUser(username, password) {
    const form = new URLSearchParams({ username, password });
    const answer = await fetch(`${this.url}/v1/auth/jwt/login`, { method: "POST", body: form });
    return answer.ok;
  }

  async hasFact(reference) {
    const { facts } = await this.post("/jinaga/load", { references: [reference] });
    return facts.length > 0;
  }

  /** How many requests got this status. */
  async answered(status) {
    const metrics = await (await fetch(`${this.url}/metrics`)).text();
    const lines = metrics.split("\n").filter((line) => line.startsWith("wakeline_http_requests_total{"));
    const counts = lines.filter((line) => line.includes(`status="${status}"`)).map((line) => Number(line.split(" ").at(-1)));
    return counts.reduce((sum, count) => sum + count, 0);
  }
}
