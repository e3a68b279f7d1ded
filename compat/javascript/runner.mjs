// Cases: registered by the files in cases/, run side by side.

// Most cases wait rather than work.
const AT_ONCE = 6;
const ENDS_WITHIN_MS = 120_000;

const registered = [];

/** A case, named as a statement. Marks are the suite's own. */
export function it(statement, ...rest) {
  const body = rest.pop();
  registered.push({ statement, marks: rest[0] ?? {}, body });
}

export function selected(isSelected) {
  return registered.filter(isSelected);
}

/** Says how each ended, a line for each; the report has what the failed ones said. */
export async function runAll(servers, name, cases) {
  const waiting = [...cases];
  const report = [];
  const counts = { passed: 0, failed: 0 };
  console.log(`${cases.length} cases`);
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      const started = Date.now();
      const failure = await attempt(servers, one);
      counts[failure ? "failed" : "passed"] += 1;
      const time = ((Date.now() - started) / 1000).toFixed(1);
      console.log(`${failure ? "FAILED" : "passed"} ${name}: ${one.statement} [${time} s]`);
      if (failure) {
        report.push(one.statement, indented(failure.stack ?? String(failure)));
      }
    }
  }));
  return { ...counts, report: report.join("\n") };
}

/** The error, if there is one. */
async function attempt(servers, { statement, body }) {
  const context = servers.context(statement);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`has not ended within ${ENDS_WITHIN_MS / 1000} s`)), ENDS_WITHIN_MS);
  });
  try {
    await Promise.race([body(context), late]);
    return null;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
    await context.leave();
  }
}

function indented(text) {
  return text.split("\n").map((line) => `      ${line}`).join("\n");
}
