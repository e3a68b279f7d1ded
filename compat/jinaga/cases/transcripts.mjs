import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { unknown } from "../differences.mjs";
import { Replay } from "../replay.mjs";
import { it } from "../../javascript/runner.mjs";

const PLACE = join(dirname(fileURLToPath(import.meta.url)), "..", "transcripts");

for (const file of readdirSync(PLACE).filter((name) => name.endsWith(".json")).sort()) {
  const name = file.replace(".json", "");
  it(`the transcript ${name} is answered as it was recorded`, async (context) => {
    const { exchanges, rules, users } = JSON.parse(readFileSync(join(PLACE, file), "utf8"));
    assert.deepEqual(unknown(name, exchanges.map((exchange) => exchange.name)), []);
    // A store of its own: the transcripts save the same facts.
    const deployment = await context.deployment();
    const node = await deployment.node({ policies: rules && name.slice(0, 2), providers: users });
    const replay = new Replay({ name, host: context.host, url: node.url, streams: context.streams(node.url) });
    await replay.run(exchanges);
    assert.deepEqual(replay.mismatches, []);
  });
}
