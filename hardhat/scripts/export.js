// Copies ABI, bytecode and the places of immutables (each 32 bytes) of our contracts into the Python package; --check
// fails when the committed files are stale.
import fs from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");
const target = path.resolve(root, "../protocol/chain/abi");
const check = process.argv.includes("--check");
const wanted = new Map();

function collect(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) collect(file);
    else if (entry.name.endsWith(".json")) {
      const { contractName, abi, bytecode, deployedBytecode, immutableReferences } = JSON.parse(
        fs.readFileSync(file, "utf8"),
      );
      if (bytecode === "0x") continue; // interfaces and internal libraries
      const immutables = Object.values(immutableReferences).map((places) => places.map(({ start }) => start));
      const kept = { contractName, abi, bytecode, deployedBytecode, immutables };
      wanted.set(entry.name, JSON.stringify(kept, null, 1) + "\n");
    }
  }
}

collect(path.join(root, "artifacts/contracts"));
fs.mkdirSync(target, { recursive: true });
const present = fs.readdirSync(target).filter((name) => name.endsWith(".json"));
const stale = [];
for (const name of new Set([...present, ...wanted.keys()])) {
  const file = path.join(target, name);
  const have = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
  if (have === wanted.get(name)) continue;
  stale.push(name);
  if (check) continue;
  if (wanted.has(name)) fs.writeFileSync(file, wanted.get(name));
  else fs.unlinkSync(file);
}
for (const name of stale) console.log(`${check ? "stale" : "wrote"}: protocol/chain/abi/${name}`);
process.exit(check && stale.length > 0 ? 1 : 0);
