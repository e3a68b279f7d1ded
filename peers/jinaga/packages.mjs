// Packages from npm, installed below target/ and kept until the lock or Node itself changes.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const FILES = ["package.json", "package-lock.json"];

/** The `require` of `home`, where the packages that `manifest` (a directory) locks are. */
export function ensure(manifest, home) {
  const wanted = process.version + FILES.map((file) => read(join(manifest, file))).join("");
  if (read(join(home, "installed")) !== wanted) {
    install(manifest, home, wanted);
  }
  return createRequire(join(home, "package.json"));
}

function install(manifest, home, wanted) {
  console.error(`installing packages in ${home}`);
  mkdirSync(dirname(home), { recursive: true });
  // In a directory beside, which is then renamed: another process may install at the same time.
  const aside = mkdtempSync(`${home}-`);
  for (const file of FILES) {
    cpSync(join(manifest, file), join(aside, file));
  }
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const ended = spawnSync("npm", ["ci", ...flags], { cwd: aside, stdio: ["ignore", 2, 2] });
  if (ended.error || ended.status !== 0) {
    rmSync(aside, { recursive: true, force: true });
    throw new Error(`npm ci failed: ${ended.error?.message ?? `status ${ended.status}`}`);
  }
  writeFileSync(join(aside, "installed"), wanted);
  try {
    rmSync(home, { recursive: true, force: true });
    renameSync(aside, home);
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    if (read(join(home, "installed")) !== wanted) {
      throw error;
    }
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
