// The servers of the cases on one store: an open and a guarded one for all of them, and for each case
// a context with clients and servers of its own.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { connect } from "./client.mjs";
import { Deployment } from "./deployment.mjs";
import { Streams } from "./streams.mjs";

export class Servers {
  #deployments = [];
  #rooms = 0;

  constructor(host, store, place) {
    Object.assign(this, { host, store, place });
  }

  async open() {
    // Each with a store of its own, so that users and rules of one are none of the other.
    [this.openNode, this.guardedNode] = await Promise.all([
      this.deployment("open").then((deployment) => deployment.node()),
      this.deployment("guarded").then((deployment) => deployment.node({ policies: "guarded", providers: true })),
    ]);
  }

  async deployment(name) {
    const place = join(this.place, name);
    mkdirSync(place, { recursive: true });
    const deployment = await Deployment.make(this.host, this.store, place);
    this.#deployments.push(deployment);
    return deployment;
  }

  context(statement) {
    this.#rooms += 1;
    return new CaseContext(this, `${this.#rooms}-${statement.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 40)}`);
  }

  unexpectedlyEnded() {
    return this.openNode.hasEnded() || this.guardedNode.hasEnded();
  }

  logs() {
    return [this.openNode, this.guardedNode].map((node) => `a server's log:\n${node.log()}`).join("\n");
  }

  async close() {
    await Promise.all(this.#deployments.map((deployment) => deployment.end()));
  }
}

class CaseContext {
  #servers;
  #name;
  #leaving = [];
  #deployments = 0;

  constructor(servers, name) {
    this.#servers = servers;
    this.#name = name;
  }

  get host() {
    return this.#servers.host;
  }

  /** A server without login and rules. */
  get url() {
    return this.#servers.openNode.url;
  }

  /** A server with policies/guarded and providers. */
  get guardedUrl() {
    return this.#servers.guardedNode.url;
  }

  /** A real client: of `url`, or of the open server. */
  client({ url = this.url, ...options } = {}) {
    const client = connect(url, options);
    this.#leaving.push(() => client.stop());
    return client;
  }

  /** Feed streams without the client. */
  streams(url = this.url) {
    const streams = new Streams(url);
    this.#leaving.push(() => streams.close());
    return streams;
  }

  /** A store for servers of the case's own. */
  async deployment() {
    this.#deployments += 1;
    const deployment = await this.#servers.deployment(`${this.#name}-${this.#deployments}`);
    this.#leaving.push(() => deployment.end());
    return deployment;
  }

  async leave() {
    for (const leave of this.#leaving.reverse()) {
      await leave();
    }
  }
}
