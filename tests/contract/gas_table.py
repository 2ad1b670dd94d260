"""Write docs/contracts/gas.md from the call-by-call round of hardhat/sol/Gas.t.sol.

python -m tests.contract.gas_table            write the table
python -m tests.contract.gas_table --check    exit 1 if the committed table is not what is measured now
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contracts" / "gas.md"
HEAD = """# Gas

Written by `python -m tests.contract.gas_table` from `hardhat/sol/Gas.t.sol`: one round of six shards, each call a
transaction of its own, as its receipt says (21,000 and the calldata included, refunds subtracted; solc 0.8.30, IR
pipeline, optimizer at 1 run). Two claims are sampled, one of them is convicted by a full panel of five, a third is
challenged in vain. Traces have 64 steps.

| call | in this round | gas |
|---|---|---:|
"""
SIZES = """
A shard that nobody doubts costs its operator one claim, one commit and a sixth of a settlement: about {shard:,} gas,
and about {attest:,} for each attestation.

## Code size

| contract | bytes | of 24,576 |
|---|---:|---:|
"""


def measure() -> str:
    """Run the gas test and return what it printed."""
    command = ["npx", "hardhat", "test", "solidity", "sol/Gas.t.sol", "-vv"]
    done = subprocess.run(command, cwd=ROOT / "hardhat", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the gas test failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def page(printed: str) -> str:
    """The page from lines `gas|call|when| number` and `size|contract| number`."""
    gas = [(call, when, int(n)) for call, when, n in re.findall(r"gas\|([^|]*)\|([^|]*)\| ?(\d+)", printed)]
    sizes = [(name, int(n)) for name, n in re.findall(r"size\|([^|]*)\| ?(\d+)", printed)]
    table = "".join(f"| `{call}` | {when} | {n:,} |\n" for call, when, n in gas)
    of = {(call, when): n for call, when, n in gas}
    settle = of["RoundBook.settle", "one shard"] + of["RoundBook.settle", "five shards and the round"]
    shard = of["RoundBook.claim", "one shard"] + of["RoundBook.commit", ""] + settle // 6
    text = SIZES.format(shard=shard // 1000 * 1000, attest=of["RoundBook.attest", ""] // 1000 * 1000)
    return HEAD + table + text + "".join(f"| {name} | {n:,} | {n / 24_576:.0%} |\n" for name, n in sizes)


def main() -> int:
    text = page(measure())
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == text else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
