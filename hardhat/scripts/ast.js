// Prints the syntax trees of our own contracts as JSON, by path: no code is generated, so it takes a second.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const solc = require("solc");
const root = path.resolve(import.meta.dirname, "..");
const read = (name) => fs.readFileSync(name.startsWith("@") ? require.resolve(name) : path.join(root, name), "utf8");
const sources = {};
for (const name of fs.readdirSync(path.join(root, "../contracts"), { recursive: true })) {
  if (name.endsWith(".sol")) sources[`contracts/${name}`] = { content: read(`contracts/${name}`) };
}
const input = { language: "Solidity", sources, settings: { outputSelection: { "*": { "": ["ast"] } } } };
const find = (name) => ({ contents: read(name) });
const output = JSON.parse(solc.compile(JSON.stringify(input), { import: find }));
const errors = (output.errors ?? []).filter((e) => e.severity === "error");
if (errors.length > 0) {
  console.error(errors.map((e) => e.formattedMessage).join("\n"));
  process.exit(1);
}
console.log(JSON.stringify(Object.fromEntries(Object.entries(output.sources).map(([k, v]) => [k, v.ast]))));
