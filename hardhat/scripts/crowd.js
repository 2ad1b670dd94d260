// The long run of sol/Invariants.t.sol: `npm run crowd -- [calls] [seed]`. One process a core, each with a seed of its
// own, under forge, whose invariant runner is several times as fast as EDR's (docs/security/analysis.md).
import { execFileSync, spawn } from "node:child_process";
import os from "node:os";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");
const suite = "sol/Invariants.t.sol";
const wanted = Number(process.argv[2] ?? 1_000_000);
const seed = Number(process.argv[3] ?? 1);
const processes = Math.max(1, os.availableParallelism());
if (!Number.isSafeInteger(wanted) || wanted < 1 || !Number.isSafeInteger(seed) || seed < 0) {
  console.error("usage: npm run crowd -- [calls] [seed]");
  process.exit(2);
}

const env = { ...process.env, FOUNDRY_PROFILE: "full" };
const { depth } = JSON.parse(execFileSync("forge", ["config", "--json"], { cwd: root, env })).invariant;
const runs = Math.ceil(wanted / processes / depth);

/// What one process said, and the calls that it says it made.
function run(number) {
  const words = ["test", "--match-path", suite, "--match-test", "^(invariant|testFuzz)_", "--fuzz-seed", `${number}`];
  const own = {
    ...env,
    FOUNDRY_INVARIANT_RUNS: `${runs}`,
    FOUNDRY_INVARIANT_FAILURE_PERSIST_DIR: `cache/invariant/${number}`,
    FOUNDRY_FUZZ_FAILURE_PERSIST_DIR: `cache/fuzz/${number}`,
    RAYON_NUM_THREADS: "1",
  };
  return new Promise((resolve) => {
    const child = spawn("forge", words, { cwd: root, env: own, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (said += bytes));
    child.on("close", (code) => resolve({ code, said, calls: Number(/calls: (\d+), reverts: 0\)/.exec(said)?.[1] ?? 0) }));
  });
}

// what the crowd plays with, and nothing else: everything takes the IR seven minutes
execFileSync("forge", ["build", "--quiet", "contracts", suite], { cwd: root, env, stdio: "inherit" });
const seeds = Array.from({ length: processes }, (_, i) => seed + i);
console.log(`crowd: ${processes} processes of ${runs} runs of ${depth} calls, seeds ${seeds.join(", ")}`);
const start = performance.now();
const answers = await Promise.all(seeds.map(run));
const seconds = (performance.now() - start) / 1000;
for (const { code, said } of answers) if (code !== 0) console.log(said);
const calls = answers.reduce((sum, answer) => sum + answer.calls, 0);
console.log(`crowd: ${calls} calls in ${seconds.toFixed(0)} s, ${(calls / seconds).toFixed(0)} a second`);
process.exit(answers.every((answer) => answer.code === 0) && calls >= wanted ? 0 : 1);
