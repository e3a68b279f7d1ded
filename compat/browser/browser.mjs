// One Chromium for all cases. A case has a profile of its own.

import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";

// Every name of the reserved domain `example` is this machine, as an attacker's DNS server can say;
// `wakeline` is, as a local network can.
const NAMES = "MAP *.example 127.0.0.1, MAP wakeline 127.0.0.1";
// What Chromium asks of its maker would fail on a machine without a network, many times at once.
const QUIET = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export class Browser {
  #chromium;

  static async start({ chromium }, scratch) {
    // Its settings and caches are files of the run, and not of the user who runs it.
    const home = join(scratch, "home");
    mkdirSync(home);
    return new Browser(await chromium.launch({
      executablePath: program("chromium"),
      args: [...QUIET, `--host-resolver-rules=${NAMES}`],
      env: { ...process.env, HOME: home },
    }));
  }

  constructor(chromium) {
    this.#chromium = chromium;
  }

  async profile() {
    return this.#chromium.newContext();
  }

  async close() {
    await this.#chromium.close();
  }
}

function program(name) {
  const places = (process.env.PATH ?? "").split(delimiter).map((place) => join(place, name));
  const found = places.find(existsSync);
  if (!found) {
    throw new Error(`${name} is not installed; on Debian: apt-get install ${name}`);
  }
  return found;
}
