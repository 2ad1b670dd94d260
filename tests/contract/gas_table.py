"""Write docs/contracts/gas.md: what a round costs call by call (hardhat/sol/Gas.t.sol), and by its number of shards
(hardhat/sol/Scale.t.sol).

python -m tests.contract.gas_table            write the tables
python -m tests.contract.gas_table --check    exit 1 if the committed tables are not what is measured now
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contracts" / "gas.md"
SHARDS = (1, 32, 256)
HEAD = """# Gas

Written by `python -m tests.contract.gas_table`. Each call is a transaction of its own, as its receipt says (21,000 and
the calldata included, refunds subtracted; solc 0.8.30, IR pipeline, optimizer at 1 run).

## A round of six shards

`hardhat/sol/Gas.t.sol`. Two claims are sampled, one of them is convicted by a full panel of five, a third is challenged
in vain, and so is the checkpoint. Traces have 64 steps. Below it, of another job: a demand, an appeal, a false
checkpoint.

| call | in this round | gas |
|---|---|---:|
"""
SCALE = """
## By the number of shards

`hardhat/sol/Scale.t.sol`. Six known owners train, a tenth of the claims is sampled. Of many calls of a kind,
the mean is shown.

| call | 1 shard | 32 shards | 256 shards |
|---|---:|---:|---:|
"""
SHARE = """
From claim to settlement, a shard that nobody doubts costs {alone}.
Claimed with a quarter of the round in one call: {batched}. To that comes one attestation an owner.
"""
SIZES = """
## Code size

| contract | bytes | of 24,576 |
|---|---:|---:|
"""
ONE, QUARTER, SETTLED = "claim, one shard a call", "claim, a quarter in one call, a shard", "settle, a shard of it"


def measure() -> str:
    """Run both gas tests and return what they printed."""
    command = ["npx", "hardhat", "test", "solidity", "sol/Gas.t.sol", "sol/Scale.t.sol", "-vv"]
    done = subprocess.run(command, cwd=ROOT / "hardhat", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the gas tests failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def page(printed: str) -> str:
    """The page from lines `gas|call|when| number`, `scale|call|shards| number` and `size|contract| number`."""
    gas = re.findall(r"gas\|([^|]*)\|([^|]*)\| ?(\d+)", printed)
    sizes = re.findall(r"size\|([^|]*)\| ?(\d+)", printed)
    calls = "".join(f"| `{call}` | {when} | {int(n):,} |\n" for call, when, n in gas)
    code = "".join(f"| {name} | {int(n):,} | {int(n) / 24_576:.0%} |\n" for name, n in sizes)
    scale = {(call, int(n)): int(cost) for call, n, cost in re.findall(r"scale\|([^|]*)\|(\d+)\| ?(\d+)", printed)}
    return HEAD + calls + SCALE + _by_shards(scale) + _share(scale) + SIZES + code


def _by_shards(scale: dict[tuple[str, int], int]) -> str:
    """A row a call, in the order of the round; a dash where a round of that size has no such call."""
    names = dict.fromkeys(call for call, n in sorted(scale, key=lambda key: key[1] != SHARDS[-1]))
    cells = {name: [f"{scale[name, n]:,}" if (name, n) in scale else "–" for n in SHARDS] for name in names}
    return "".join(f"| {name} | {' | '.join(row)} |\n" for name, row in cells.items())


def _share(scale: dict[tuple[str, int], int]) -> str:
    """What one shard costs: claimed by itself, and as a part of a quarter."""

    def cost(claim: str, n: int) -> str:
        return f"{(scale[claim, n] + scale['commit', n] + scale[SETTLED, n]) // 1000 * 1000:,}"

    alone = ", ".join(f"{cost(ONE, n)} gas in a round of {n}" for n in SHARDS)
    batched = ", ".join(f"{cost(QUARTER, n)} in a round of {n}" for n in SHARDS[1:])
    return SHARE.format(alone=alone, batched=batched)


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
