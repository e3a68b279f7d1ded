// Feed streams as they are on the wire, without the client.

import { open, post } from "./http.mjs";
import { eventually } from "./steps.mjs";

const STREAM = "application/x-jinaga-feed-stream";

export class Streams {
  #url;
  #open = [];

  constructor(url) {
    this.#url = url;
  }

  /** The hashes of a specification's feeds. */
  async feeds(text, headers = {}) {
    const answer = await post(this.#url, "/feeds", "text/plain", text, headers);
    if (answer.status !== 200) {
      throw new Error(`POST /feeds: ${answer.status} ${answer.body}`);
    }
    return JSON.parse(answer.body).feeds;
  }

  /** Returns when the head of the answer is there. */
  async open(feed, { bookmark = "", headers = {} } = {}) {
    const stream = new Stream(this.#url, `/feeds/${feed}?b=${encodeURIComponent(bookmark)}`, headers);
    this.#open.push(stream);
    await stream.head;
    return stream;
  }

  close() {
    for (const stream of this.#open) {
      stream.close();
    }
  }
}

class Stream {
  #request;
  #rest = "";
  frames = [];
  hasEnded = false;

  constructor(url, path, headers) {
    this.head = new Promise((resolve, reject) => {
      this.#request = open(url, { path, headers: { accept: STREAM, ...headers } }, (response) => {
        this.status = response.statusCode;
        this.headers = response.headers;
        response.setEncoding("utf8");
        response.on("data", (text) => this.#take(text));
        response.on("close", () => {
          this.hasEnded = true;
        });
        // The end of a stream is no error of its case.
        response.on("error", () => {});
        resolve();
      });
      this.#request.on("error", reject);
    });
  }

  #take(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop();
    // Blank lines end frames, and are heartbeats.
    this.frames.push(...lines.filter((line) => line.trim()).map((line) => JSON.parse(line)));
  }

  /** Each once, in the order of their first arrival. */
  hashes() {
    return [...new Set(this.frames.flatMap((frame) => frame.references.map((reference) => reference.hash)))];
  }

  isInSync() {
    return this.frames.at(-1)?.references.length === 0;
  }

  get bookmark() {
    return this.frames.at(-1)?.bookmark ?? "";
  }

  /** Returns when so many different facts have come, and a SYNC after them. */
  async untilSync(count) {
    await eventually(() => [this.hashes().length >= count, this.isInSync()], [true, true]);
  }

  close() {
    this.#request.destroy();
  }
}
