"""An auditor's judgement: its own run against what the operator committed, by three tests with an accept, a reject
and a fraud zone. The worst zone wins.

Missing bytes are never fraud by themselves, and never better than reject; wrong ones under a committed digest are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from protocol.core.trace import TraceRow, trace_root
from protocol.training.checkpoint import Checkpoint, Tensors, decode_end_state
from protocol.training.compress import Update, compressor, compute_update, decode_payload, encode_payload, encodings
from protocol.training.errors import CheckpointError, CompareError, PayloadError, TrainingFailed
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec, Tolerances, tolerances, trace_rows

Zone = Literal["accept", "reject", "fraud"]
Finding = Literal["match", "reject", "fraud"]

T1, T1_CELL, T2, T3 = "pseudo-gradient", "pseudo-gradient (cell)", "loss trace", "structure"


@dataclass(frozen=True)
class Committed:
    """What the operator's commitment binds. Digests are sha256, hex."""

    payload_digest: str
    trace_root: bytes
    state_digest: str


@dataclass(frozen=True)
class TestResult:
    """One test: its value (0 is equal), the ends of its accept and reject zones, and the zone the value lies in."""

    name: str
    value: float
    accept_line: float
    fraud_line: float
    zone: Zone


@dataclass(frozen=True)
class Judgement:
    """`fraud_step`: for a fraud finding the first row whose loss is in the fraud zone, or else the last one."""

    finding: Finding
    tests: list[TestResult]
    fraud_step: int | None


def judge_claim(
    spec: Spec,
    base: Checkpoint,
    own: ClaimResult,
    committed: Committed,
    payload: bytes,
    rows: Sequence[TraceRow] | None,
    end_state: bytes | None,
) -> Judgement:
    """`own`: the auditor's run from `base`. `rows`, `end_state`: what the operator opened; None, or bytes that are not
    the committed ones, count as not opened. Raises CompareError if `payload` is not the committed one.
    """
    if hashlib.sha256(payload).hexdigest() != committed.payload_digest:
        raise CompareError(f"audit: the payload is not the committed one ({committed.payload_digest}); fetch it again")
    opened = list(rows) if rows is not None and _is_committed(rows, committed) else None
    if _is_equal(own, committed):
        return Judgement("match", _equal_tests(tolerances(spec)), None)
    state = end_state if end_state and hashlib.sha256(end_state).hexdigest() == committed.state_digest else None
    tests = [_structure(spec, base, payload, opened, state), _distance(spec, base, own, payload, state)]
    if opened is not None:
        tests.append(_losses(spec, own.rows, opened))
    finding = _conclude(spec, tests, opened is not None)
    return Judgement(finding, tests, _fraud_step(spec, own.rows, opened) if finding == "fraud" else None)


def relative_distance(spec: Spec, own: Update, theirs: Update) -> float:
    """T1, dense: ‖own − theirs‖ / ‖own‖ over all parameters that the spec does not mask: of the pseudo-gradient as a
    whole, of shared moments tensor by tensor, and the worst of these.

    The sizes of moments differ by orders of magnitude: in one norm of all, those of small tensors could be anything.
    """
    update = _relative(own.pseudo_gradient, theirs.pseudo_gradient, _compared(spec, own.pseudo_gradient))
    moments = [*_each_relative(spec, own.first, theirs.first), *_each_relative(spec, own.second, theirs.second)]
    return max([update, *moments])


def cell_distance(spec: Spec, own: Update, payload: bytes) -> float:
    """T1 without an end state: from `own` to the nearest vector that encodes to this payload, relative to ‖own‖; the
    worst of the pseudo-gradient and each tensor of shared moments.

    About 0 for an honest payload however coarse; a lower bound of the dense distance. inf where nothing encodes to it.
    """
    decoded = decode_payload(spec, payload)
    distances = _each_relative(spec, own.second, decoded.second)
    for part, encoding in encodings(spec).items():
        values, method = (own.pseudo_gradient if part == "update" else own.first), compressor(encoding)
        names = _compared(spec, values)
        away = [method.squared_distance(values[n].reshape(-1), decoded.parts[part][n]) for n in names]
        sizes = [_square(values[n]) for n in names]
        if part == "update":
            distances.append(_ratio(sum(away), sum(sizes)))
        else:
            distances += map(_ratio, away, sizes)
    return max(distances)


def loss_differences(own: Sequence[TraceRow], theirs: Sequence[TraceRow]) -> list[float]:
    """T2 per step: |own − theirs| / the larger one, as the court checks it."""
    pairs = [(a.loss, b.loss) for a, b in zip(own, theirs, strict=False)]
    return [abs(a - b) / max(a, b, 1) for a, b in pairs]


def _structure(
    spec: Spec, base: Checkpoint, payload: bytes, rows: Sequence[TraceRow] | None, end_state: bytes | None
) -> TestResult:
    """T3: all rows in order, a payload that decodes and is exactly the encoding of θ₀ − θ_H. Counts what is wrong."""
    wrong = 0
    if rows is not None:
        wrong += [row.step for row in rows] != list(range(1, trace_rows(spec) + 1))
    try:
        decode_payload(spec, payload)
        if end_state is not None:
            end = decode_end_state(spec, end_state)
            wrong += encode_payload(spec, compute_update(base.weights, end)) != payload
    except (PayloadError, CheckpointError, TrainingFailed):  # the last: an end that no honest claim commits to
        wrong += 1
    return TestResult(T3, float(wrong), 0.0, 0.0, "fraud" if wrong else "accept")


def _distance(spec: Spec, base: Checkpoint, own: ClaimResult, payload: bytes, end_state: bytes | None) -> TestResult:
    """T1 from the end state if it is open, else from the payload alone. Undecodable bytes are infinitely far away."""
    try:
        if end_state is not None:
            end = decode_end_state(spec, end_state)
            name, value = T1, relative_distance(spec, own.update, compute_update(base.weights, end))
        else:
            name, value = T1_CELL, cell_distance(spec, own.update, payload)
    except (PayloadError, CheckpointError):
        name, value = T1, math.inf
    lines = tolerances(spec)
    return TestResult(name, value, lines.t1_accept, lines.t1_reject, _zone(value, lines.t1_accept, lines.t1_reject))


def _losses(spec: Spec, own: Sequence[TraceRow], theirs: Sequence[TraceRow]) -> TestResult:
    lines = tolerances(spec)
    value = max(loss_differences(own, theirs), default=0.0)
    return TestResult(T2, value, lines.t2_accept, lines.t2_reject, _zone(value, lines.t2_accept, lines.t2_reject))


def _conclude(spec: Spec, tests: Sequence[TestResult], is_open: bool) -> Finding:
    """fp32: one test in the fraud zone is fraud. bf16: two are, because one may be an honest outlier.

    A trace that stayed closed counts as a test in the fraud zone beside a T1 there; alone it is a reject.
    """
    frauds = sum(test.zone == "fraud" for test in tests)
    if not is_open and any(test.zone == "fraud" for test in tests if test.name in (T1, T1_CELL)):
        frauds += 1
    needed = 2 if spec.verify.tolerance_class == "bf16" else 1
    if frauds >= needed:
        return "fraud"
    return "match" if is_open and all(test.zone == "accept" for test in tests) else "reject"


def _fraud_step(spec: Spec, own: Sequence[TraceRow], theirs: Sequence[TraceRow] | None) -> int:
    line = tolerances(spec).t2_reject
    differences = loss_differences(own, theirs or [])
    return next((step for step, value in enumerate(differences, start=1) if value > line), trace_rows(spec))


def _is_committed(rows: Sequence[TraceRow], committed: Committed) -> bool:
    return bool(rows) and trace_root(rows) == committed.trace_root


def _is_equal(own: ClaimResult, committed: Committed) -> bool:
    """Equal digests, as within one determinism class: nothing is left to compare."""
    mine = Committed(own.payload_digest, trace_root(own.rows), own.state_digest)
    return mine == committed


def _equal_tests(lines: Tolerances) -> list[TestResult]:
    return [
        TestResult(T3, 0.0, 0.0, 0.0, "accept"),
        TestResult(T1, 0.0, lines.t1_accept, lines.t1_reject, "accept"),
        TestResult(T2, 0.0, lines.t2_accept, lines.t2_reject, "accept"),
    ]


def _compared(spec: Spec, values: Tensors) -> list[str]:
    """Names of tensors, or of their factors, whose parameter the spec does not mask."""
    masked = set(spec.verify.masked)
    return [n for n in values if n not in masked and n.rpartition("/")[0] not in masked]


def _relative(own: Tensors, theirs: Tensors, names: Sequence[str]) -> float:
    away = sum(_square(own[n].astype(np.float64) - theirs[n]) for n in names)
    return _ratio(away, sum(_square(own[n]) for n in names))


def _each_relative(spec: Spec, own: Tensors, theirs: Tensors) -> list[float]:
    return [_relative(own, theirs, [name]) for name in _compared(spec, own)]


def _zone(value: float, accept_line: float, fraud_line: float) -> Zone:
    if value <= accept_line:
        return "accept"
    return "reject" if value <= fraud_line else "fraud"


def _square(tensor: object) -> float:
    return float((np.asarray(tensor, np.float64) ** 2).sum())


def _ratio(away: float, size: float) -> float:
    """sqrt(away / size); equal nothings are equal."""
    if away == 0:
        return 0.0
    return math.sqrt(away / size) if size > 0 else math.inf
