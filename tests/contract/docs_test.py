"""The security pages name tests that exist, and every invariant that the contracts cite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "security").glob("*.md"))


def _tests() -> set[str]:
    solidity = [path.read_text() for path in (ROOT / "hardhat").glob("s??/*.t.sol")]
    python = [path.read_text() for path in (ROOT / "tests").rglob("*_test.py")]
    found = re.findall(r"function ((?:test|testFuzz|invariant)_\w+)", "\n".join(solidity))
    return {*found, *re.findall(r"def (test_\w+)", "\n".join(python))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).stem)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`((?:test|testFuzz|invariant)_\w+)`", page.read_text()))
    assert named - _tests() == set()


def test_every_invariant_of_the_contracts_is_on_the_page() -> None:
    cited = {
        match
        for path in (ROOT / "contracts").rglob("*.sol")
        for match in re.findall(r"INV-[A-Z]+-\d+", path.read_text())
    }
    page = (ROOT / "docs" / "security" / "invariants.md").read_text()
    assert cited == set(re.findall(r"\| (INV-[A-Z]+-\d+) \|", page))
