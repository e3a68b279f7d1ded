// What cases have in common.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

const WITHIN_MS = 45_000;
const LOOK_EVERY_MS = 20;

/** A name that nobody else has. */
export function unique(what) {
  return `${what}-${randomUUID()}`;
}

/** Returns when `seen()` is what is wanted; fails with what it is instead. */
export async function eventually(seen, wanted) {
  const deadline = Date.now() + WITHIN_MS;
  for (;;) {
    const found = await seen();
    if (isDeepStrictEqual(found, wanted)) {
      return;
    }
    if (Date.now() > deadline) {
      throw new Error(`never became ${JSON.stringify(wanted)}: ${JSON.stringify(found)}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}

export function sorted(texts) {
  return [...texts].sort();
}
