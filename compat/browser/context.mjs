// What a case is given: pages of the browser, and a server of its own.

import { mkdtempSync } from "node:fs";
import { join } from "node:path";

import { Node } from "../javascript/node.mjs";
import { Wakeline } from "./wakeline.mjs";

export class Context {
  #shared;
  #leaving = [];
  #profile;

  constructor(shared) {
    this.#shared = shared;
  }

  /** The origin of a page that is not the server's. */
  origin(name) {
    return this.#shared.site.origin(name);
  }

  /** A default server on a loopback address, with these flags added. */
  async server(...flags) {
    const place = mkdtempSync(join(this.#shared.scratch, "server-"));
    const command = (port) => [
      process.env.WAKELINE_BIN, "serve", "--listen", `127.0.0.1:${port}`, "--data", join(place, "data"), ...flags,
    ];
    const node = new Node((port) => ({ command: command(port), ready: /listening on +http/ }), join(place, "log"));
    await node.start();
    this.#leaving.push(() => node.stop());
    return new Wakeline(node);
  }

  /** A page that its visitor has opened. */
  async visit(url) {
    this.#profile ??= await this.#shared.browser.profile();
    const page = await this.#profile.newPage();
    page.answer = await page.goto(url);
    return page;
  }

  /** A page of another site by this name. */
  async pageOf(name) {
    return this.visit(`${this.origin(name)}/`);
  }

  async leave() {
    await this.#profile?.close();
    await Promise.all(this.#leaving.map((leave) => leave()));
  }
}
