// Policy files, the provider file, and the tokens that it vouches for.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));

export function policies(name) {
  return join(HERE, "policies", name);
}

export function providers() {
  return join(HERE, "providers");
}

const provider = JSON.parse(readFileSync(join(providers(), "tests.provider"), "utf8"));

/** A token of this user, whose name is what his profile shows. */
export function token(name, changes = {}) {
  const header = { alg: "HS256", typ: "JWT", kid: provider.key_id };
  const payload = {
    sub: name,
    iss: provider.issuer,
    aud: provider.audience,
    display_name: name,
    exp: Math.floor(Date.now() / 1000) + 3600,
    ...changes,
  };
  const text = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${text}.${createHmac("sha256", provider.key).update(text).digest("base64url")}`;
}
