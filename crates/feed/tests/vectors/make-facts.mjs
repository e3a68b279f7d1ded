// Asks the npm package jinaga (6.11.3) for canonical texts, hashes, graphs and signatures.
// In a directory with the package installed: node make-facts.mjs > facts.json
// The keys are new each time; all else is the same.

import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const {
  canonicalizeFact, computeHash, generateKeyPair, serializeGraph, signFacts, verifyEnvelopes,
} = require("jinaga");

let seed = 20240607;
function random(below) {
  // Mulberry32.
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return (((t ^ (t >>> 14)) >>> 0) % below);
}

const pieces = [
  "a", "b", "Z", "_", "0", "9", " ", "\"", "\\", "/", "\n", "\r", "\t", "\b", "\f", "\0", "\x1f", "\x7f",
  "\u0080", "é", "漢", "\u2028", "\u2029", "\ue000", "\uffff", "\ufeff", "😀", "\u{10ffff}", "\ud800", "\udfff", "\udc00\ud800",
];
const text = () => Array.from({ length: random(6) }, () => pieces[random(pieces.length)]).join("");

const doubles = new DataView(new ArrayBuffer(8));
function number() {
  switch (random(5)) {
    case 0: return random(1000);
    case 1: return -random(1e9) / 100;
    case 2: return random(2 ** 31) * 10 ** (random(60) - 30);
    case 3: return random(2) ? 0 : -0;
    default: {
      doubles.setUint32(0, random(2 ** 32));
      doubles.setUint32(4, random(2 ** 32));
      const value = doubles.getFloat64(0);
      return Number.isFinite(value) ? value : 1;
    }
  }
}

function value(depth) {
  switch (random(depth > 0 ? 7 : 5)) {
    case 0: return null;
    case 1: return random(2) === 0;
    case 2: return number();
    case 3: case 4: return text();
    case 5: return Array.from({ length: random(4) }, () => value(depth - 1));
    default: return object(depth - 1);
  }
}

function object(depth) {
  const result = {};
  for (let i = random(6); i > 0; i--) {
    result[text()] = value(depth);
  }
  return result;
}

const known = [];
const types = ["Blog.Site", "Blog.Post", "B", "b", "é", "\uffff", "😀"];
function predecessors() {
  const result = {};
  for (let i = known.length > 0 ? random(4) : 0; i > 0; i--) {
    const one = () => known[random(known.length)];
    const role = ["site", "author", "\uffff", "😀", "a b", "Z", "10", "9"][random(8)];
    result[role] = random(2) ? one() : Array.from({ length: random(6) }, one);
  }
  return result;
}

const facts = [];
const records = [];
for (let i = 0; i < 90; i++) {
  const fields = i === 0 ? {} : object(3);
  const of = predecessors();
  const hash = computeHash(fields, of);
  const type = types[random(types.length)];
  known.push({ type, hash });
  records.push({ type, hash, predecessors: of, fields });
  facts.push({
    type, hash,
    // As text: a reader of this file must not sort them by parsing.
    fields: JSON.stringify(fields), predecessors: JSON.stringify(of),
    canonical: canonicalizeFact(fields, of),
  });
}
// One hash, two types: these sort by type.
const twins = ["😀", "\uffff", "b", "B"].map(type => ({ type, hash: facts[0].hash }));
facts.push({
  type: "Twins", hash: computeHash({}, { twins }), fields: "{}",
  predecessors: JSON.stringify({ twins }), canonical: canonicalizeFact({}, { twins }),
});

const numbers = [
  "0", "-0", "1", "-1", "1.0", "100", "1e2", "1E+2", "0.1", "1e-6", "1e-7", "123456789012345680000", "1e20", "1e21",
  "9007199254740993", "5e-324", "2e-324", "1e-400", "1.7976931348623157e308", "0.000001", "4.35", "2.2250738585072011e-308",
  "0.30000000000000004", "1.7976931348623158e308", "333333333333333333333", "1e23", "8.41e21", "-1e-7", "1e+00021",
].concat(Array.from({ length: 100 }, () => JSON.stringify(number())))
  .map(text => [text, JSON.stringify(JSON.parse(text))]);

const order = Array.from(new Set(Array.from({ length: 300 }, text))).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

const keys = [generateKeyPair(), generateKeyPair()];
const [one, other] = keys.map(key => signFacts(key, records));
const envelopes = records.map((fact, i) => ({
  fact,
  signatures: i % 3 === 0 ? [] : i % 3 === 1 ? one[i].signatures : [...other[i].signatures, ...one[i].signatures],
}));
if (!verifyEnvelopes(envelopes)) {
  throw new Error("jinaga does not hold its own signatures valid");
}
const graph = serializeGraph(envelopes);

process.stdout.write(JSON.stringify({
  numbers, order, facts, keys, graph,
}, null, 1) + "\n");
