"""What the tools of `make analyse` and `make coverage` take for proved, explained and reached."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_explains_each_function_that_it_names() -> None:
    table = "| detector | where | why |\n|---|---|---|\n| timestamp | `A.f`, `B.g` | so |\n"
    page = f"\n## Slither\n\n{table}\n## Proofs\n\n| x | `C.h` | y |\n"
    assert _tool("findings").explained(page) == {("timestamp", "A.f"), ("timestamp", "B.g")}


def test_a_finding_in_a_statement_is_named_by_its_function() -> None:
    contract = {"type": "contract", "name": "A"}
    function = {"type": "function", "name": "f", "type_specific_fields": {"parent": contract}}
    node = {"type": "node", "name": "x = 1", "type_specific_fields": {"parent": function}}
    answer = {"results": {"detectors": [{"check": "timestamp", "elements": [node]}]}}
    assert _tool("findings").found(answer) == {("timestamp", "A.f")}


@pytest.mark.parametrize(
    ("said", "proved"),
    [
        ("[PASS] check_a(uint8) (paths: 4, time: 0.07s, bounds: [])", {"check_a"}),
        ("[PASS] check_a(uint8) (paths: 4, time: 0.07s (paths: 0.01s, models: 0.06s), bounds: [])", {"check_a"}),
        ("[PASS] test_b() (gas: 151000000)", {"test_b"}),
        ("[TIMEOUT] check_a(uint8) (paths: 4, time: 60.0s, bounds: [])", set()),
        ("[PASS] check_a(uint8) (paths: 4, time: 0.07s, bounds: [])\nWARNING  check_a(uint8): paths have not", set()),
    ],
)
def test_only_a_whole_proof_counts(said: str, proved: set[str]) -> None:
    assert set(_tool("proofs").outcome(said)) == proved


def test_a_branch_is_taken_when_any_path_to_its_file_takes_it() -> None:
    through_a_link = "SF:/x/contracts/A.sol\nBRDA:7,0,0,0\nBRDA:8,0,0,-\n"
    report = f"{through_a_link}SF:contracts/A.sol\nBRDA:7,0,0,3\nSF:sol/B.sol\nBRDA:1,0,0,0\n"
    assert _tool("coverage").branches(report) == {"A.sol": {(7, "0.0"): 3, (8, "0.0"): 0}}


def test_the_page_of_the_coverage_keeps_its_reasons_and_asks_for_new_ones() -> None:
    tool = _tool("coverage")
    old, new = ("A.sol", "if (a \\|\\| b) revert();"), ("B.sol", "else x();")
    page = tool.render(["| contract |"], [old, new], {old: "a | b is never false"})
    assert tool.reasons(page) == {old: "a | b is never false"}
    assert f"| {new[0]} | `{new[1]}` | {tool.NO_REASON} |" in page
    assert "None." in tool.render([], [], {})
