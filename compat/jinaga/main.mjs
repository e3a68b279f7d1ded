// The real Jinaga client from npm against servers on each store.
//
// From the environment: WAKELINE_BIN, the server; WAKELINE_TEST_POSTGRES, the URL of a PostgreSQL
// whose user may make databases; WAKELINE_TEST_REDIS, the URL of a Redis. `cargo xtask test` gives
// all three. `--upstream` runs against the real jinaga-server instead, without WAKELINE_BIN and on
// PostgreSQL only, and with `--all` also the cases that it is known to fail; `--store sqlite` takes one
// store; `--install` only installs the client; other arguments are parts of the names of cases.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { ensure } from "../../peers/jinaga/packages.mjs";
import { runAll, selected } from "../javascript/runner.mjs";
import { Servers } from "./servers.mjs";
import { loadClient } from "./client.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
// The client is the one of which the real server is made.
const PACKAGES = join(HERE, "..", "..", "peers", "jinaga");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    upstream: { type: "boolean" },
    store: { type: "string" },
    all: { type: "boolean" },
    install: { type: "boolean" },
    // Every case is on every store anyway.
    full: { type: "boolean" },
  },
});
const host = values.upstream ? "upstream" : "wakeline";
let target = join(HERE, "..", "..", "target");
if (host === "wakeline") {
  // Absolute, because the servers run in other directories.
  process.env.WAKELINE_BIN = resolve(process.env.WAKELINE_BIN ?? "target/debug/wakeline");
  target = dirname(dirname(process.env.WAKELINE_BIN));
}
const client = ensure(PACKAGES, join(target, "compat", "jinaga"));
if (values.install) {
  process.exit(0);
}
loadClient(client);

for (const file of readdirSync(join(HERE, "cases")).sort()) {
  await import(join(HERE, "cases", file));
}

const scratch = mkdtempSync(join(tmpdir(), "jinaga-"));
const stores = values.store ? [values.store] : host === "upstream" ? ["postgres"] : ["sqlite", "postgres"];
const counts = { passed: 0, failed: 0 };
try {
  await Promise.all(stores.map(async (store) => {
    const found = await runOn(store);
    counts.passed += found.passed;
    counts.failed += found.failed;
  }));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
// What a client left open must not keep the process alive.
process.exit(counts.failed > 0 ? 1 : 0);

/**
 * Marks: `wakelineOnly`, what jinaga-server 3.7.5 itself does otherwise; `nodes`, it needs several
 * servers on one database, so PostgreSQL.
 */
function isOf(store, { statement, marks }) {
  // Not skipped: a case that is not for this host or store is no case of it.
  const isForThis = !(marks.wakelineOnly && host !== "wakeline" && !values.all) && !(marks.nodes && store !== "postgres");
  return isForThis && (positionals.length === 0 || positionals.some((part) => statement.includes(part)));
}

async function runOn(store) {
  const name = `jinaga against ${host} on ${store}`;
  const servers = new Servers(host, store, join(scratch, store));
  try {
    await servers.open();
    const result = await runAll(servers, name, selected((one) => isOf(store, one)));
    if (result.failed > 0) {
      console.log(`${name}\n${result.report}`);
    }
    const ended = servers.unexpectedlyEnded();
    if (ended) {
      console.log(`${name}: a server has ended by itself`);
    }
    if (ended || result.failed > 0) {
      console.log(servers.logs());
    }
    return { passed: result.passed, failed: result.failed + (ended ? 1 : 0) };
  } catch (error) {
    // One store that cannot run must not hide the other.
    console.log(`${name}\n${error.stack}`);
    return { passed: 0, failed: 1 };
  } finally {
    await servers.close();
  }
}
