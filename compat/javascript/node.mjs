// A server process: started, stopped, killed, started again, with a log to show.

import { spawn } from "node:child_process";
import { openSync, closeSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const STARTS_WITHIN_MS = 120_000;
const STOPS_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 50;
// The end of a log says what went wrong; all of it may be much.
const SHOWN_LINES = 200;

export class Node {
  #make;
  #log;
  #process;
  #prefix;
  #port;

  /**
   * `make(port)` gives `{command, ready}`; the port is the same for each start. `prefix` is the path
   * of the URL.
   */
  constructor(make, log, prefix = "") {
    this.#make = make;
    this.#log = log;
    this.#prefix = prefix;
  }

  get url() {
    return `http://127.0.0.1:${this.#port}${this.#prefix}`;
  }

  async start() {
    this.#port ??= await freePort();
    const { command, ready } = this.#make(this.#port);
    const log = openSync(this.#log, "w");
    this.#process = spawn(command[0], command.slice(1), {
      stdio: ["ignore", log, log],
      cwd: dirname(this.#log),
      // Settings of the one who runs the tests are none of this server's.
      env: { PATH: process.env.PATH ?? "" },
    });
    closeSync(log);
    const failed = new Promise((_, reject) => this.#process.once("error", reject));
    await Promise.race([failed, this.#untilReady(ready)]);
  }

  /** As an operator stops it. */
  async stop() {
    if (!this.#process || this.hasEnded()) {
      return;
    }
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGTERM");
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOPS_WITHIN_MS);
    await ended;
    clearTimeout(timer);
  }

  /** As a power cut would. */
  async kill() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGKILL");
    await ended;
  }

  hasEnded() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  log() {
    return readFileSync(this.#log, "utf8").split("\n").slice(-SHOWN_LINES).join("\n");
  }

  async #untilReady(ready) {
    const deadline = Date.now() + STARTS_WITHIN_MS;
    while (!ready.test(readFileSync(this.#log, "utf8"))) {
      if (this.hasEnded()) {
        throw new Error(`the server ended at its start:\n${this.log()}`);
      }
      if (Date.now() > deadline) {
        throw new Error(`the server does not listen:\n${this.log()}`);
      }
      await sleep(LOOK_EVERY_MS);
    }
  }
}

/** Not 0 for the server itself: one that starts again must be where its clients know it. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
