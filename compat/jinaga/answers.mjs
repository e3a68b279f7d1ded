// Whether an answer is what was recorded. Each function gives a list of what is not.

import { isDeepStrictEqual } from "node:util";
import { OMITTED_HEADERS } from "./differences.mjs";

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const GRAPH = "application/x-jinaga-graph-v1";

/** `difference`, where there is one, is what is wanted instead: see differences.mjs. */
export function compare({ path, method, answer: recorded }, answer, difference = {}, request = {}) {
  const problems = [];
  const status = difference.status ?? recorded.status;
  if (answer.status !== status) {
    problems.push(`status ${answer.status} instead of ${status}: ${answer.body?.slice(0, 300)}`);
    return problems;
  }
  problems.push(...headers({ ...recorded.headers, ...difference.headers }, answer.headers));
  // A page of express, for people: it was not kept.
  const isPage = mediaType(recorded.headers["content-type"] ?? "") === "text/html";
  if (answer.body === undefined || method === "HEAD" || (isPage && !difference.body)) {
    return problems;
  }
  if (difference.body instanceof RegExp) {
    if (!difference.body.test(answer.body)) {
      problems.push(`the body does not match ${difference.body}: ${answer.body.slice(0, 500)}`);
    }
  } else if (!("body" in difference)) {
    problems.push(...bodies(path, recorded, answer, request));
  }
  return problems;
}

function headers(wanted, found) {
  const problems = [];
  for (const [name, value] of Object.entries(wanted)) {
    // Null where the difference is that it may be anything.
    if (value === null) {
      continue;
    }
    if (name in OMITTED_HEADERS && !(name in found)) {
      continue;
    }
    const [one, other] = [value, found[name] ?? ""].map((text) => (name === "content-type" ? mediaType(text) : list(text)));
    if (!isDeepStrictEqual(one, other)) {
      problems.push(`header ${name} is ${JSON.stringify(found[name])} instead of ${JSON.stringify(value)}`);
    }
  }
  return problems;
}

const mediaType = (text) => text.split(";")[0].trim().toLowerCase();
// The order within a list means nothing.
const list = (text) => text.toLowerCase().split(",").map((part) => part.trim()).filter(Boolean).sort();

function bodies(path, recorded, answer, request) {
  if (recorded.status !== 200) {
    return same(recorded.body, answer.body);
  }
  if (path === "/feeds") {
    return same(withoutReasons(recorded.body), withoutReasons(answer.body));
  }
  if (path.startsWith("/feeds/")) {
    return pages(recorded.body, answer.body, request);
  }
  if (path === "/load") {
    return mediaType(recorded.headers["content-type"]) === GRAPH
      ? same(blocks(recorded.body), blocks(answer.body))
      : loads(recorded.body, answer.body);
  }
  if (path === "/login") {
    return same(...[recorded, answer].map(({ body }) => JSON.parse(body)));
  }
  // Of reads, only the times at which facts were learned may differ.
  const isTimed = /@\w/.test(request.body ?? "");
  return same(...[recorded, answer].map(({ body }) => (isTimed ? body.replaceAll(TIME, "TIME") : body)));
}

function same(recorded, found) {
  return isDeepStrictEqual(recorded, found)
    ? []
    : [`the body is ${JSON.stringify(found)?.slice(0, 1500)} instead of ${JSON.stringify(recorded)?.slice(0, 1500)}`];
}

/** Reasons are for people; that there is one is enough. */
function withoutReasons(body) {
  const { feeds, decisions } = JSON.parse(body);
  return { feeds, decisions: decisions.map(({ reason, ...rest }) => ({ ...rest, hasReason: Boolean(reason) })) };
}

/** The order of rows within a page is the server's, as are its bookmarks. */
function pages(recorded, found, request) {
  const [wanted, page] = [recorded, found].map((body) => JSON.parse(body));
  const problems = same(keys(wanted.references), keys(page.references));
  const sent = decodeURIComponent(/[?&]b=([^&]*)/.exec(request.path ?? "")?.[1] ?? "");
  if (typeof page.bookmark !== "string" || (page.references.length === 0 && page.bookmark !== sent)) {
    problems.push(`the bookmark of the page is ${JSON.stringify(page.bookmark)} after ${JSON.stringify(sent)}`);
  }
  return problems;
}

const keys = (references) => references.map(({ type, hash }) => `${type} ${hash}`).sort();

/** Any order will do in which predecessors come first. */
function loads(recorded, found) {
  const [wanted, facts] = [recorded, found].map((body) => JSON.parse(body).facts);
  const seen = new Set();
  const problems = [];
  for (const { type, hash, predecessors, timestamp } of facts) {
    const missing = Object.values(predecessors).flat().filter((one) => !seen.has(`${one.type} ${one.hash}`));
    if (missing.length > 0) {
      problems.push(`${type} comes before its predecessor`);
    }
    if (timestamp?.match(TIME)?.[0] !== timestamp) {
      problems.push(`the timestamp of ${type} is ${timestamp}`);
    }
    seen.add(`${type} ${hash}`);
  }
  const comparable = (list) => list.map(({ timestamp, ...fact }) => fact).sort((one, other) => (one.hash < other.hash ? -1 : 1));
  return [...problems, ...same(comparable(wanted), comparable(facts))];
}

/** Of a graph, without the signatures themselves: they are as random as their keys. */
function blocks(text) {
  return text.split("\n\n").map((block) => block.split("\n")
    .map((line, place, lines) => (/^PK\d+$/.test(lines[place - 1]) && place > 3 ? "SIGNATURE" : line)).join("\n"))
    .filter(Boolean).sort();
}

/** Of a stream: the same facts, and SYNC after them. How often SYNC is said may differ. */
export function compareFrames({ answer }, stream, difference, translated) {
  const recorded = answer.frames.map(({ text }) => JSON.parse(translated(text)));
  const left = new Set(difference?.withoutTypes ?? []);
  const of = (frames) => [...new Set(frames.flatMap(({ references }) => keys(references)))]
    .filter((key) => !left.has(key.split(" ")[0])).sort();
  const problems = same(of(recorded), of(stream.frames));
  if (!stream.isInSync()) {
    problems.push("the last frame is no SYNC");
  }
  const [first] = stream.frames;
  if (recorded[0].references.length === 0 && first.references.length > 0) {
    problems.push("the first frame should have been a SYNC");
  }
  const syncs = stream.frames.filter(({ references }, place) => place > 0 && references.length === 0);
  for (const sync of syncs) {
    const before = stream.frames[stream.frames.indexOf(sync) - 1];
    // A SYNC may be ahead of the page before it, never behind: it repeats where the reader stands.
    if (before.references.length > 0 && sync.bookmark === "") {
      problems.push("a SYNC has lost the bookmark");
    }
  }
  return problems;
}
