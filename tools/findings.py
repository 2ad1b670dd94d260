"""Slither over contracts/, against the explanations on docs/security/analysis.md.

`python tools/findings.py`. Fails on a finding without an explanation, on an explanation without a finding, and when
nothing was looked at. A finding is named by its detector and `Contract.function`, so that moved lines change nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "security" / "analysis.md"
SLITHER = ROOT / ".venv-analysis" / "bin" / "slither"
ROW = re.compile(r"^\| ([a-z0-9-]+) \| (.+?) \| (.+?) \|$", re.MULTILINE)

Finding = tuple[str, str]


def explained(page: str) -> set[Finding]:
    """What the table below `## Slither` explains, as (detector, Contract.function)."""
    table = page.split("\n## Slither\n", 1)[1].split("\n## ", 1)[0]
    return {(row[0], place) for row in ROW.findall(table) for place in re.findall(r"`([^`]+)`", row[1])}


def found(answer: dict[str, Any]) -> set[Finding]:
    """Slither's JSON, as (detector, Contract.function)."""
    return {(each["check"], _place(each["elements"][0])) for each in answer["results"].get("detectors", [])}


def _place(element: dict[str, Any]) -> str:
    """The function that an element is or lies in; variables of a contract stand for themselves."""
    names: list[str] = []
    at: dict[str, Any] | None = element
    while at is not None:
        if at["type"] in ("function", "contract"):
            names.insert(0, at["name"])
        at = at.get("type_specific_fields", {}).get("parent")
    return ".".join(names if len(names) > 1 else [*names, element["name"]])


def look() -> dict[str, Any]:
    """Run slither; its exit code only says that there are findings."""
    words = [str(SLITHER), "contracts", "--solc", str(ROOT / "tools" / "solc"), "--solc-standard-json"]
    words += ["--solc-remaps", "@openzeppelin/=hardhat/node_modules/@openzeppelin/"]
    # a filter that is part of our own path would hide everything: no finding at all is a failure below
    words += ["--filter-paths", "hardhat/node_modules", "--exclude-informational", "--exclude-optimization"]
    with TemporaryDirectory() as folder:  # on a file, because slither says nothing else when it prints JSON
        report = Path(folder) / "findings.json"
        done = subprocess.run([*words, "--json", str(report)], cwd=ROOT, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"slither failed:\n{done.stderr[-4000:]}")
        answer: dict[str, Any] = json.loads(report.read_text())
    if not answer["success"]:
        raise SystemExit(f"slither failed: {answer['error']}")
    looked = re.search(r"analyzed \((\d+) contracts", done.stderr)
    sources = len(list((ROOT / "contracts").rglob("*.sol")))
    if looked is None or int(looked[1]) < sources or not answer["results"].get("detectors"):
        seen = looked[1] if looked else 0
        raise SystemExit(f"slither saw {seen} contracts in {sources} files, or found nothing: a filter hides them")
    return answer


def main() -> int:
    have, known = found(look()), explained(PAGE.read_text())
    for detector, place in sorted(have - known):
        print(f"not explained: {detector} in {place}")
    for detector, place in sorted(known - have):
        print(f"explained and no longer found: {detector} in {place}")
    print(f"slither: {len(have)} findings, {len(have & known)} explained")
    return 0 if have == known else 1


if __name__ == "__main__":
    sys.exit(main())
