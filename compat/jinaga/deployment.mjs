// Servers with a store of their own. Two servers of one deployment are two nodes.

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { Node } from "../javascript/node.mjs";
import * as upstream from "./upstream.mjs";
import * as wakeline from "./wakeline.mjs";

const HOSTS = { upstream, wakeline };

export class Deployment {
  #nodes = [];

  static async make(host, store, place) {
    return new Deployment(host, place, store === "postgres" ? database() : undefined);
  }

  constructor(host, place, database) {
    Object.assign(this, { host, place, database });
    // Nodes of other deployments share the PostgreSQL, and must not receive the wakes of these.
    this.channel = `jinaga_${randomUUID().slice(0, 8)}`;
  }

  /** A server that is ready. Settings have the names in wakeline.mjs and upstream.mjs. */
  async node(settings = {}) {
    const number = this.#nodes.length;
    const node = new Node(HOSTS[this.host].process(this, number, settings), join(this.place, `node-${number}.log`), "/jinaga");
    this.#nodes.push(node);
    await node.start();
    return node;
  }

  async end() {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }
}

/** A new one. It goes away with the PostgreSQL of the test run. */
function database() {
  const url = process.env.WAKELINE_TEST_POSTGRES;
  if (!url) {
    throw new Error("WAKELINE_TEST_POSTGRES is not set");
  }
  const name = `jinaga_${randomUUID().replaceAll("-", "").slice(0, 16)}`;
  const ended = spawnSync(psql(), ["--no-psqlrc", "--quiet", "--dbname", url, "--command", `CREATE DATABASE ${name}`]);
  if (ended.error || ended.status !== 0) {
    throw new Error(`CREATE DATABASE failed: ${ended.error?.message ?? ended.stderr}`);
  }
  const made = new URL(url);
  made.pathname = `/${name}`;
  return made.href;
}

/** Not Debian's wrapper on PATH first: it guesses a cluster and needs Perl. */
function psql() {
  const versions = "/usr/lib/postgresql";
  const places = existsSync(versions) ? readdirSync(versions).sort().reverse() : [];
  return places.map((version) => `${versions}/${version}/bin/psql`).find(existsSync) ?? "psql";
}
