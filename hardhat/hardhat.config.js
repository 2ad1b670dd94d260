import { fileURLToPath } from "node:url";
import { defineConfig } from "hardhat/config";

// The compiler comes from npm: `path` makes Hardhat use it and download nothing.
const soljson = fileURLToPath(import.meta.resolve("solc/soljson.js"));

export default defineConfig({
  solidity: {
    profiles: {
      default: {
        compilers: [
          {
            version: "0.8.30", // the version of the npm package `solc`
            path: soljson,
            settings: { optimizer: { enabled: true, runs: 1 }, viaIR: true, evmVersion: "cancun" },
          },
        ],
      },
    },
  },
  // hardhat/contracts is a relative link to ../contracts: sources outside the project root are refused
  paths: { sources: "./contracts", tests: { solidity: "./sol" } },
  test: { solidity: { fuzz: { runs: 256, seed: "0x1" }, invariant: { runs: 64, depth: 64 } } },
});
