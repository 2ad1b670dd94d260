"""What a judgement is worth without the operator's private artefacts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any


class Verdict(IntEnum):
    """The value is the exit code of `verifier check`."""

    MATCH = 0
    REJECT = 10
    FRAUD = 11
    UNAVAILABLE = 12
    UNDECIDED = 13


def conclude(
    finding: str, tests: Sequence[Mapping[str, Any]], *, is_open: bool, is_withheld: bool, is_equal: bool, is_bf16: bool
) -> tuple[Verdict, list[str]]:
    """What a judgement is worth without the operator's private artefacts.

    A trace that nobody demanded is not a silent operator: then bf16 needs its second test, and a payload in the accept
    zone is as much as can be asked for.
    """
    if is_equal:
        return Verdict.MATCH, ["payload, trace and end state are the committed ones, bit for bit"]
    verdict = {"match": Verdict.MATCH, "reject": Verdict.REJECT, "fraud": Verdict.FRAUD}[finding]
    if is_open:
        return verdict, ["the trace is the one opened on chain; the end state is not public"]
    notes = ["the trace is not public: the loss test was not run; the end state is not public"]
    if is_withheld:
        return verdict, [*notes, "the operator did not open its trace when it was demanded on chain"]
    zones = [test["zone"] for test in tests]
    if all(zone == "accept" for zone in zones):
        return Verdict.MATCH, [*notes, "match as far as public artefacts go"]
    if verdict == Verdict.FRAUD and is_bf16 and zones.count("fraud") < 2:
        return Verdict.REJECT, [*notes, "one bf16 test in the fraud zone may be an honest outlier: no more than reject"]
    return verdict, notes
