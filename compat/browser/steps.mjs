// What cases have in common.

import { setTimeout as sleep } from "node:timers/promises";

const WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 10;

/**
 * What `attack` returns. One request of it has reached the server and was refused: a browser that
 * itself keeps the request back would prove nothing.
 */
export async function refused(server, what, attack) {
  const before = await server.answered(403);
  const outcome = await attack();
  const deadline = Date.now() + WITHIN_MS;
  while (await server.answered(403) === before) {
    if (Date.now() > deadline) {
      throw new Error(`${what} was not refused (${JSON.stringify(outcome)})`);
    }
    await sleep(LOOK_EVERY_MS);
  }
  return outcome;
}
