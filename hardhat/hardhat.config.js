import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "hardhat/config";

// The compiler comes from npm: `path` makes Hardhat use it and download nothing.
const soljson = fileURLToPath(import.meta.resolve("solc/soljson.js"));

// Deployment.sol reads the numbers that the Python programs read.
const preset = { fsPermissions: { readFile: ["../protocol/core/presets/dev.json"] } };

const compiler = (settings) => ({ version: "0.8.30", path: soljson, settings: { ...settings, evmVersion: "cancun" } });
// What is deployed. Through the IR, for size: docs/adr/0006.
const contracts = compiler({ optimizer: { enabled: true, runs: 1 }, viaIR: true });
// Tests deploy contracts from their artifacts. Compiled plainly, tests take seconds instead of minutes; one of them has
// more variables than the plain compiler can hold.
const tests = fs.readdirSync(new URL("./sol", import.meta.url)).filter((name) => name !== "Ladder.t.sol");
const overrides = Object.fromEntries(
  tests.map((name) => [`sol/${name}`, compiler({ optimizer: { enabled: false }, viaIR: false })]),
);

export default defineConfig({
  solidity: { profiles: { default: { compilers: [contracts], overrides } } },
  // hardhat/contracts is a relative link to ../contracts: sources outside the project root are refused
  paths: { sources: "./contracts", tests: { solidity: "./sol" } },
  test: {
    solidity: {
      profiles: {
        default: { ...preset, fuzz: { runs: 256, seed: "0x1" }, invariant: { runs: 12, depth: 100, failOnRevert: true } },
        // --test-profile full; the million calls of `npm run crowd` are made by forge, several times as fast
        full: { ...preset, fuzz: { runs: 1024, seed: "0x1" }, invariant: { runs: 48, depth: 250, failOnRevert: true } },
      },
    },
  },
});
