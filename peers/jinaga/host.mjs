// jinaga-server as the Jinaga replicator hosts it: express, its body parsers, the authentication of
// provider files, policy files, and the router at /jinaga. Facts and keys are in PostgreSQL.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { authenticate } from "./authentication.mjs";
import { ensure } from "./packages.mjs";
import { rules } from "./policies.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const HOME = join(HERE, "..", "..", "target", "compat", "jinaga-upstream");

const USAGE = `usage: start --port PORT --database URL [--policies DIRECTORY] [--auth DIRECTORY]

  --port      on 127.0.0.1; 0 for any free one
  --database  postgres://...; it must exist, and its tables are created
  --policies  *.policy files; without it everything is allowed
  --auth      *.provider files, and allow-anonymous; without it every user is anonymous`;

export async function main(given) {
  const { values } = parseArgs({
    args: given,
    options: {
      port: { type: "string" },
      database: { type: "string" },
      policies: { type: "string" },
      auth: { type: "string" },
      help: { type: "boolean" },
    },
  });
  // First of all: `--help` is used to install the packages ahead of time.
  const require = ensure(HERE, HOME);
  if (values.help || !values.port || !values.database) {
    console.log(USAGE);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  // The default tracer writes several lines for each frame.
  const { NoOpTracer, Trace } = require("jinaga");
  Trace.configure(Object.assign(new NoOpTracer(), { error: (error) => console.error(error) }));
  await makeTables(require, values.database);
  const server = createServer(application(require, values));
  server.listen(Number(values.port), "127.0.0.1", () => {
    // The parent process reads the address from this line, and that the host is ready.
    console.log(`running on http://127.0.0.1:${server.address().port}`);
    // jinaga-server also writes past its tracer.
    console.log = () => {};
  });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => process.exit(0));
  }
}

function application(require, { database, policies, auth }) {
  const express = require("express");
  const { JinagaServer } = require("jinaga-server");
  const { handler } = JinagaServer.create({
    pgStore: database,
    pgKeystore: database,
    ...(policies ? rules(require("jinaga").RuleSet, policies) : {}),
  });
  const app = express();
  app.use(express.json());
  app.use(express.text());
  // A route without the router, by which a load generator measures the machine.
  app.get("/livez", (_request, response) => response.send("ok"));
  if (auth) {
    app.use("/jinaga", authenticate(auth));
  }
  app.use("/jinaga", handler);
  return app;
}

async function makeTables(require, database) {
  const { Client } = require("pg");
  const client = new Client({ connectionString: database });
  await client.connect();
  try {
    await client.query(readFileSync(require.resolve("jinaga-server/setup.sql"), "utf8"));
  } finally {
    await client.end();
  }
}
