"""What the Solidity tests reach, by contract: lines and statements by Hardhat, branches by forge.

`python tools/coverage.py` writes docs/security/coverage.md. Fails below 100 % of the lines and statements of the
contracts, and on a branch that no test takes and for which the page has no reason: write it there and run again. A
reason is kept by its contract and source line, so that moved lines change nothing. Hardhat counts in instrumented
source and knows no branches; forge counts in bytecode, and sees a contract once for each path that leads to its file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HARDHAT = ROOT / "hardhat"
PAGE = ROOT / "docs" / "security" / "coverage.md"
ROW = re.compile(r"║ contracts/(\S+\.sol)\s+│\s*([\d.]+)\s*│\s*([\d.]+)\s*│\s*(.+?)\s*║")
# Instrumented code is larger and dearer than what is deployed.
BOUND_TO_FAIL = {"test_every_contract_fits_the_code_size_limit", "test_the_longest_trace_fits_one_transaction"}

# What the page says of a branch until somebody says why.
NO_REASON = "?"
REASON = re.compile(r"^\| (\S+\.sol) \| `(.+?)` \| (.+?) \|$", re.MULTILINE)
HEAD = """# Coverage

Written by `make coverage` from the tests of `hardhat/sol`; only the reasons at the end are written by hand. Lines and
statements are counted by Hardhat, branches by forge.

"""

Branches = dict[str, dict[tuple[int, str], int]]
Place = tuple[str, str]


def lines(said: str) -> dict[str, tuple[float, float, str]]:
    """Hardhat's table: lines, statements, uncovered lines of each contract."""
    return {name: (float(line), float(statement), left) for name, line, statement, left in ROW.findall(said)}


def branches(report: str) -> Branches:
    """Forge's lcov: how often each branch of a contract was taken, over all paths to its file."""
    taken: Branches = defaultdict(lambda: defaultdict(int))
    name = ""
    for word in report.splitlines():
        if word.startswith("SF:"):
            name = word.rpartition("contracts/")[2] if "openzeppelin" not in word and "contracts/" in word else ""
        elif word.startswith("BRDA:") and name:
            line, block, branch, hits = word.removeprefix("BRDA:").split(",")
            taken[name][int(line), f"{block}.{branch}"] += 0 if hits == "-" else int(hits)
    return taken


def _run(script: str) -> str:
    done = subprocess.run(["npm", "run", "-s", script], cwd=HARDHAT, capture_output=True, text=True)
    said = done.stdout + done.stderr
    failed = {*re.findall(r"\d+\) \w+#(\w+)\(", said), *re.findall(r"^\[FAIL.*?\] (\w+)\(", said, re.MULTILINE)}
    if failed - BOUND_TO_FAIL or (done.returncode != 0 and not failed):
        raise SystemExit(f"{said[-8000:]}\n`npm run {script}` failed: {', '.join(sorted(failed)) or done.returncode}")
    return said


def table(have: dict[str, tuple[float, float, str]], taken: Branches) -> list[str]:
    """One row a contract."""
    rows = ["| contract | lines % | statements % | branches | lines left |", "|---|--:|--:|--:|---|"]
    for name, (line, statement, left) in sorted(have.items()):
        hits = taken.get(name, {})
        reached = sum(1 for count in hits.values() if count)
        rows.append(f"| {name} | {line:.2f} | {statement:.2f} | {reached}/{len(hits)} | {left} |")
    return rows


def untaken(taken: Branches) -> list[Place]:
    """The contract and source line of each branch that no test takes."""
    places = dict.fromkeys(
        (name, (ROOT / "contracts" / name).read_text().splitlines()[number - 1].strip().replace("|", "\\|"))
        for name, each in sorted(taken.items())
        for (number, _), count in sorted(each.items())
        if not count
    )
    return list(places)


def reasons(page: str) -> dict[Place, str]:
    """Why no test takes them, as the page says."""
    return {(name, line): why for name, line, why in REASON.findall(page) if why != NO_REASON}


def render(rows: list[str], places: list[Place], known: dict[Place, str]) -> str:
    """The page, with the reasons that it had."""
    words = HEAD + "\n".join(rows) + "\n\n## Branches that no test takes\n\n"
    if not places:
        return words + "None.\n"
    words += "| contract | source | why |\n|---|---|---|\n"
    return words + "".join(f"| {name} | `{line}` | {known.get((name, line), NO_REASON)} |\n" for name, line in places)


def main() -> int:
    try:
        have = lines(_run("coverage"))
    finally:  # what tests deploy is read from artifacts, and Hardhat leaves instrumented ones
        subprocess.run(["npx", "hardhat", "build"], cwd=HARDHAT, check=True, capture_output=True)
    _run("branches")
    taken = branches((HARDHAT / "coverage" / "branches.info").read_text())
    if not have or not any(taken.values()):
        raise SystemExit("a report is empty")
    known = {
        place: why for place, why in reasons(PAGE.read_text() if PAGE.exists() else "").items() if why != NO_REASON
    }
    places = untaken(taken)
    PAGE.write_text(render(table(have, taken), places, known))
    print(PAGE.read_text())
    whole = all(line == 100 == statement for line, statement, _ in have.values())
    return 0 if whole and set(places) <= set(known) else 1


if __name__ == "__main__":
    sys.exit(main())
