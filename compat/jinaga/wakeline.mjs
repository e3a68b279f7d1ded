// A Wakeline on a deployment.

import { join } from "node:path";

import { policies, providers } from "./rules.mjs";

/** `policies` names a directory below policies/; `providers` lets users in by tokens;
 * `syncDelay` is how long after the last live page SYNC comes. */
export function process(deployment, number, settings) {
  return (port) => {
    const command = [
      globalThis.process.env.WAKELINE_BIN,
      "serve",
      ["--listen", `127.0.0.1:${port}`],
      ["--data", join(deployment.place, `data-${number}`)],
      deployment.database ? ["--store", deployment.database, "--bus-channel", deployment.channel] : [],
      // Of the record: the real server lets every page in.
      ["--http-allowed-origins", "*"],
      settings.policies ? ["--feeds-policies", policies(settings.policies)] : [],
      settings.syncDelay ? ["--feeds-sync-delay", settings.syncDelay] : [],
      settings.providers ? ["--feeds-authentication", providers()] : [],
    ];
    return { command: command.flat(), ready: /listening on +http/ };
  };
}
