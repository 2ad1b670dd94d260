"""What an offline check concludes from a judgement when private artefacts are missing."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from verifier.check import Check, render
from verifier.judge import Verdict, conclude


def a_test(name: str = "pseudo-gradient (cell)", zone: str = "accept", value: float = 1e-5) -> dict[str, Any]:
    return {"name": name, "value": value, "accept": 5e-4, "fraud": 5e-3, "zone": zone}


def judged(finding: str, *zones: str, **facts: bool) -> Verdict:
    given = {"is_open": False, "is_withheld": False, "is_equal": False, "is_bf16": False} | facts
    verdict, notes = conclude(finding, [a_test(zone=zone) for zone in zones], **given)
    assert notes and all("\n" not in note for note in notes)
    return verdict


@pytest.mark.parametrize("finding", ["match", "reject", "fraud"])
def test_with_the_trace_the_judgement_stands(finding: str) -> None:
    assert judged(finding, "accept", is_open=True).name == finding.upper()


def test_equal_digests_match_without_anything_opened() -> None:
    assert judged("match", "accept", is_equal=True) == Verdict.MATCH


def test_a_closed_trace_and_an_accepted_payload_match_as_far_as_public_artefacts_go() -> None:
    assert judged("reject", "accept", "accept") == Verdict.MATCH


def test_a_payload_in_the_reject_zone_is_rejected_though_the_trace_is_closed() -> None:
    assert judged("reject", "accept", "reject") == Verdict.REJECT


def test_a_forged_payload_is_fraud_in_fp32() -> None:
    assert judged("fraud", "accept", "fraud") == Verdict.FRAUD


def test_one_bf16_test_is_not_fraud_while_nobody_demanded_the_trace() -> None:
    assert judged("fraud", "accept", "fraud", is_bf16=True) == Verdict.REJECT
    assert judged("fraud", "fraud", "fraud", is_bf16=True) == Verdict.FRAUD


def test_a_trace_that_was_demanded_and_withheld_counts_against_the_operator() -> None:
    assert judged("fraud", "accept", "fraud", is_bf16=True, is_withheld=True) == Verdict.FRAUD
    assert judged("reject", "accept", "accept", is_withheld=True) == Verdict.REJECT


def test_exit_codes_are_the_documented_ones() -> None:
    assert [int(verdict) for verdict in Verdict] == [0, 10, 11, 12, 13]


def test_a_check_is_a_table_and_an_object() -> None:
    tests = [a_test(zone="fraud", value=math.inf), a_test("structure", value=0.0)]
    check = Check("ab" * 32, 3, 1, "0xoperator", Verdict.FRAUD, step=16, tests=tests, notes=["why"])
    lines = render(check)
    assert lines[0] == "job ababababab…  round 3  shard 1  operator 0xoperator"
    assert lines[1].split() == ["test", "value", "accept", "≤", "fraud", ">", "zone"]
    assert lines[2].split() == ["pseudo-gradient", "(cell)", "inf", "0.0005", "0.005", "fraud"]
    assert lines[-1] == "verdict: fraud at step 16"
    decoded = json.loads(check.encode())
    assert decoded["verdict"] == "fraud" and decoded["tests"][0]["value"] is None
