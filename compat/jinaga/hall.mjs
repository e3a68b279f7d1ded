// Where the cases of one store run: an open server and a guarded one for all of them, and a room
// for each case with clients and servers of its own.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { connect } from "./client.mjs";
import { Ground } from "./ground.mjs";
import { Streams } from "./streams.mjs";

export class Hall {
  #grounds = [];
  #rooms = 0;

  constructor(host, store, place) {
    Object.assign(this, { host, store, place });
  }

  async open() {
    // Each on a ground of its own, so that users and rules of one are none of the other.
    [this.openNode, this.guardedNode] = await Promise.all([
      this.ground("open").then((ground) => ground.node()),
      this.ground("guarded").then((ground) => ground.node({ policies: "guarded", providers: true })),
    ]);
  }

  async ground(name) {
    const place = join(this.place, name);
    mkdirSync(place, { recursive: true });
    const ground = await Ground.make(this.host, this.store, place);
    this.#grounds.push(ground);
    return ground;
  }

  room(statement) {
    this.#rooms += 1;
    return new Room(this, `${this.#rooms}-${statement.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 40)}`);
  }

  unexpectedlyEnded() {
    return this.openNode.hasEnded() || this.guardedNode.hasEnded();
  }

  logs() {
    return [this.openNode, this.guardedNode].map((node) => `a server's log:\n${node.log()}`).join("\n");
  }

  async close() {
    await Promise.all(this.#grounds.map((ground) => ground.end()));
  }
}

class Room {
  #hall;
  #name;
  #leaving = [];
  #grounds = 0;

  constructor(hall, name) {
    this.#hall = hall;
    this.#name = name;
  }

  get host() {
    return this.#hall.host;
  }

  /** A server that asks nobody who he is and allows everything. */
  get url() {
    return this.#hall.openNode.url;
  }

  /** A server with policies/guarded and providers. */
  get guardedUrl() {
    return this.#hall.guardedNode.url;
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
  async ground() {
    this.#grounds += 1;
    const ground = await this.#hall.ground(`${this.#name}-${this.#grounds}`);
    this.#leaving.push(() => ground.end());
    return ground;
  }

  async leave() {
    for (const leave of this.#leaving.reverse()) {
      await leave();
    }
  }
}
