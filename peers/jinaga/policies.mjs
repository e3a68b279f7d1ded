// Policy files, as the replicator reads them: every *.policy below a directory, merged.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The rules for jinaga-server; none if the marker file switches security off. */
export function rules(RuleSet, directory) {
  const policies = files(directory, ".policy");
  const isOpen = files(directory, "no-security-policies").length > 0;
  if (isOpen === policies.length > 0) {
    throw new Error(`${directory} must have either *.policy files or no-security-policies`);
  }
  if (isOpen) {
    return {};
  }
  const merged = policies
    .map((file) => RuleSet.loadFromDescription(readFileSync(file, "utf8")))
    .reduce((one, other) => one.merge(other));
  return {
    authorization: () => merged.authorizationRules,
    distribution: () => merged.distributionRules,
    purgeConditions: () => merged.purgeConditions,
  };
}

export function files(directory, ending) {
  return readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? files(path, ending) : path.endsWith(ending) ? [path] : [];
    })
    .sort();
}
