// A transcript of the real client against the real server, asked again of another server.
//
// What that server makes itself stands in for what was recorded: keys, the hashes of facts that have
// them, feed hashes that follow from those, bookmarks.

import { library } from "./client.mjs";
import { compare, compareFrames } from "./answers.mjs";
import { difference } from "./differences.mjs";
import { send } from "./http.mjs";
import { token } from "./rules.mjs";
import { eventually } from "./steps.mjs";

const STREAM = "application/x-jinaga-feed-stream";

export class Replay {
  #name;
  #host;
  #url;
  #streams;
  #open = [];
  /** What was recorded, and what this server has instead. */
  #instead = new Map();
  #bookmarks = new Map();
  mismatches = [];

  constructor({ name, host, url, streams }) {
    this.#name = name;
    this.#host = host;
    this.#url = url;
    this.#streams = streams;
  }

  async run(exchanges) {
    for (const exchange of exchanges) {
      // In the order of the record: what a stream had brought by then is there.
      await this.#untilStreamed(exchange.at);
      await this.#replay(exchange);
    }
    await this.#untilStreamed(Infinity);
    for (const { exchange, stream } of this.#open) {
      this.#note(exchange, compareFrames(exchange, stream, this.#difference(exchange), (text) => this.#translated(text)));
    }
  }

  async #replay(exchange) {
    const request = this.#request(exchange);
    if (exchange.headers.accept === STREAM && exchange.answer.frames) {
      const feed = /\/feeds\/([^?]*)/.exec(request.path)[1];
      const stream = await this.#streams.open(feed, { headers: request.headers });
      this.#open.push({ exchange, stream });
      this.#note(exchange, compare(exchange, { status: stream.status, headers: stream.headers }, this.#difference(exchange)));
      return;
    }
    const answer = await send(this.#url, request);
    await this.#learn(exchange, request, answer);
    const wanted = { ...exchange, answer: { ...exchange.answer, body: this.#translated(exchange.answer.body) } };
    this.#note(exchange, compare(wanted, answer, this.#difference(exchange), request));
  }

  #request({ method, path, headers, body, user }) {
    // A long one is kept short.
    const text = body?.repeated ? body.before + body.repeated.repeat(body.count) + body.after : body;
    const authorization = user ? { authorization: `Bearer ${token(user)}` } : {};
    return {
      method,
      path: this.#bookmarked(this.#translated(path)),
      headers: { ...headers, ...authorization },
      body: text === undefined ? undefined : this.#translated(text),
    };
  }

  /** The bookmark that this server gave where the recorded one was given. */
  #bookmarked(path) {
    const [feed, bookmark] = path.split("?b=");
    const instead = this.#bookmarks.get(`${feed} ${bookmark}`);
    return instead === undefined ? path : `${feed}?b=${encodeURIComponent(instead)}`;
  }

  async #learn(exchange, request, answer) {
    if (answer.status !== exchange.answer.status) {
      return;
    }
    const { path, body } = exchange;
    if (path === "/login" && answer.status === 200) {
      const [recorded, now] = [exchange.answer.body, answer.body].map((text) => JSON.parse(text).userFact);
      this.#swap(recorded.hash, now.hash);
      this.#swap(escaped(recorded.fields.publicKey), escaped(now.fields.publicKey));
    } else if (path === "/save" && exchange.headers["content-type"] === "application/x-jinaga-graph-v1" && exchange.user) {
      const [recorded, now] = await Promise.all([body, request.body].map(graph));
      recorded.forEach(({ fact }, place) => this.#swap(fact.hash, now[place].fact.hash));
    } else if (path === "/feeds" && answer.status === 200 && this.#instead.size > 0) {
      const [recorded, now] = [exchange.answer.body, answer.body].map((text) => JSON.parse(text).feeds);
      recorded.forEach((hash, place) => this.#swap(hash, now[place]));
    } else if (path.startsWith("/feeds/") && answer.status === 200 && exchange.method === "GET") {
      const [recorded, now] = [exchange.answer.body, answer.body].map((text) => JSON.parse(text).bookmark);
      this.#bookmarks.set(`${this.#translated(path.split("?")[0])} ${recorded}`, now);
    }
  }

  #swap(recorded, now) {
    if (recorded !== now && now !== undefined) {
      this.#instead.set(recorded, now);
    }
  }

  #translated(text) {
    let translated = text;
    for (const [recorded, now] of this.#instead) {
      translated = translated?.replaceAll(recorded, now);
    }
    return translated;
  }

  async #untilStreamed(at) {
    for (const { exchange, stream } of this.#open) {
      const difference = this.#difference(exchange);
      const recorded = exchange.answer.frames.filter((frame) => frame.at < at).map(({ text }) => JSON.parse(this.#translated(text)));
      const wanted = new Set(recorded.flatMap(({ references }) => references)
        .filter(({ type }) => !difference?.withoutTypes?.includes(type)).map(({ hash }) => hash));
      await eventually(() => {
        const seen = new Set(stream.hashes());
        return { missing: [...wanted].filter((hash) => !seen.has(hash)), synced: recorded.length === 0 || stream.isInSync() };
      }, { missing: [], synced: true });
    }
  }

  #difference(exchange) {
    // The real server has none: it is the one that was recorded.
    return this.#host === "upstream" ? undefined : difference(this.#name, exchange.name);
  }

  #note({ name }, problems) {
    this.mismatches.push(...problems.map((problem) => `${name}: ${problem}`));
  }
}

function escaped(text) {
  return JSON.stringify(text).slice(1, -1);
}

/** The facts of a graph, in its order. */
export async function graph(text) {
  const lines = text.split("\n");
  const envelopes = [];
  const reader = new (library().GraphDeserializer)(async () => (lines.length > 0 ? lines.shift() : null));
  await reader.read(async (found) => {
    envelopes.push(...found);
  });
  return envelopes;
}
