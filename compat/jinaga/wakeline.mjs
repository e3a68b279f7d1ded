// A Wakeline on a ground.

import { join } from "node:path";

import { policies, providers } from "./rules.mjs";

/** `policies` names a directory below policies/; `providers` lets users in by tokens. */
export function process(ground, number, settings) {
  return (port) => {
    const command = [
      globalThis.process.env.WAKELINE_BIN,
      "serve",
      ["--listen", `127.0.0.1:${port}`],
      ["--data", join(ground.place, `data-${number}`)],
      ground.database ? ["--store", ground.database, "--bus-channel", ground.channel] : [],
      settings.policies ? ["--feeds-policies", policies(settings.policies)] : [],
      settings.providers ? ["--feeds-authentication", providers()] : [],
    ];
    return { command: command.flat(), ready: /listening on +http/ };
  };
}
