// A host of the real jinaga-server on a deployment: peers/jinaga.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { policies, providers } from "./rules.mjs";

const START = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "peers", "jinaga", "start");

export function process(deployment, _number, settings) {
  return (port) => {
    const command = [
      START,
      ["--port", String(port), "--database", deployment.database],
      settings.policies ? ["--policies", policies(settings.policies)] : [],
      settings.providers ? ["--auth", providers()] : [],
    ];
    return { command: command.flat(), ready: /running on http/ };
  };
}
