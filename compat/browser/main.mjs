// A real Chromium with pages of other sites, and of the server itself, against servers.
//
// From the environment: WAKELINE_BIN, the server; `cargo xtask test` gives it. `--install` only
// installs the package that drives Chromium; other arguments are parts of the names of cases.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { ensure } from "../../peers/jinaga/packages.mjs";
import { runAll, selected } from "../javascript/runner.mjs";
import { Browser } from "./browser.mjs";
import { Context } from "./context.mjs";
import { Site } from "./site.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    install: { type: "boolean" },
    // All cases run anyway.
    full: { type: "boolean" },
  },
});
// Absolute, because the servers run in other directories.
process.env.WAKELINE_BIN = resolve(process.env.WAKELINE_BIN ?? "target/debug/wakeline");
const target = dirname(dirname(process.env.WAKELINE_BIN));
const require = ensure(HERE, join(target, "compat", "browser"));
if (values.install) {
  process.exit(0);
}

for (const file of readdirSync(join(HERE, "cases")).sort()) {
  await import(join(HERE, "cases", file));
}

const scratch = mkdtempSync(join(tmpdir(), "browser-"));
const [browser, site] = await Promise.all([Browser.start(require("playwright-core"), scratch), Site.open()]);
let counts = { passed: 0, failed: 1 };
try {
  const context = () => new Context({ browser, site, scratch });
  counts = await runAll({ context }, "pages in Chromium", selected(({ statement }) => {
    return positionals.length === 0 || positionals.some((part) => statement.includes(part));
  }));
  if (counts.failed > 0) {
    console.log(counts.report);
  }
} finally {
  await Promise.all([browser.close(), site.close()]);
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 ? 1 : 0);
