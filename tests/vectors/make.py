"""Write the vectors that bind protocol.core to the contracts: JSON for people and Python, a library for Solidity.

python -m tests.vectors.make            write tests/vectors/*.json and hardhat/sol/Vectors.sol
python -m tests.vectors.make --check    exit 1 if a file is not what this program would write
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.core.audit import steps_to_open
from protocol.core.commitment import case_id, commitment, round_pot
from protocol.core.delegation import Delegation, Domain, delegation_digest, registration_digest, revocation_digest
from protocol.core.encoding import abi_encode, keccak
from protocol.core.operator import FOREVER, Scope
from protocol.core.presets import load_preset
from protocol.core.terms import Terms, Windows, compute_reservation, least_bond
from protocol.core.trace import (
    NO_STATE,
    Seat,
    TraceRow,
    audit_proof,
    audit_root,
    audit_row_hash,
    row_hash,
    trace_proof,
    trace_root,
)

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LIBRARY = ROOT / "hardhat" / "sol" / "Vectors.sol"
ROW = "(uint32,uint64,uint64,bytes32,bytes32)"


def word(name: str) -> bytes:
    """32 bytes that nobody chose."""
    return keccak(name.encode())


def address(name: str) -> str:
    return "0x" + word(name)[12:].hex()


def row(step: int, loss: int, grad_norm: int, state: bytes = NO_STATE) -> TraceRow:
    return TraceRow(step, loss, grad_norm, word(f"sketch {step}"), state)


def rows(count: int) -> list[TraceRow]:
    """A trace with a state hash every third step."""
    return [
        row(t, 10**9 + 7 * t, 5 * 10**8 - t, word(f"state {t}") if t % 3 == 0 else NO_STATE)
        for t in range(1, count + 1)
    ]


EDGES = [row(1, 0, 0), row(2**32 - 1, 2**64 - 1, 2**64 - 1, b"\xff" * 32), row(3, 1, 2**63, word("state"))]
SEATS = [
    Seat(word("case"), 0, address("auditor"), word("salt")),
    Seat(word("another case"), 65_535, "0x" + "ff" * 20, bytes(32)),
]


@dataclass(frozen=True)
class Table:
    """Vectors of one kind: each case is an input and what both languages must make of it."""

    name: str
    about: str
    types: str  # the ABI tuple of one case
    cases: list[tuple[Any, ...]]
    fields: tuple[str, ...]


def _row(r: TraceRow) -> tuple[Any, ...]:
    return (r.step, r.loss, r.grad_norm, r.sketch, r.state)


def commitments() -> Table:
    cases: list[tuple[Any, ...]] = []
    for i, (chain, round, shard) in enumerate([(1, 0, 0), (31337, 1, 255), (2**63, 2**32 - 1, 2**16 - 1)]):
        values = (
            chain, address(f"book {i}"), word(f"job {i}"), round, shard, address(f"operator {i}"),
            word(f"base {i}"), word(f"payload {i}"), word(f"root {i}"), word(f"state {i}"),
        )  # fmt: skip
        cases.append((*values, commitment(*values)))
    fields = ("chainId", "roundBook", "jobId", "round", "shard", "operator", "base", "payloadDigest", "traceRoot")
    return Table(
        "commitments",
        "What an operator commits to, and its hash.",
        "(uint256,address,bytes32,uint32,uint16,address,bytes32,bytes32,bytes32,bytes32,bytes32)",
        cases,
        (*fields, "stateDigest", "commitment"),
    )


def leaves() -> Table:
    cases = [
        (_row(r), s.case_id, s.seat, s.auditor, s.salt, row_hash(r), audit_row_hash(r, s))
        for r in [*EDGES, *rows(3)]
        for s in SEATS
    ]
    fields = ("row", "caseId", "seat", "auditor", "salt", "rowHash", "auditRowHash")
    types = f"({ROW},bytes32,uint16,address,bytes32,bytes32,bytes32)"
    return Table(
        "leaves", "A row of a trace as a leaf of the operator's tree and of an auditor's.", types, cases, fields
    )


def paths() -> Table:
    cases: list[tuple[Any, ...]] = []
    for count in (1, 2, 3, 5, 8, 13):
        trace = rows(count)
        for step in sorted({1, (count + 1) // 2, count}):
            seat = SEATS[count % 2]
            own = (audit_root(trace, seat), audit_proof(trace, seat, step))
            roots = (trace_root(trace), trace_proof(trace, step))
            cases.append((count, _row(trace[step - 1]), *roots, seat.case_id, seat.seat, seat.auditor, seat.salt, *own))
    fields = ("rows", "row", "traceRoot", "traceProof", "caseId", "seat", "auditor", "salt", "auditRoot", "auditProof")
    types = f"(uint256,{ROW},bytes32,bytes32[],bytes32,uint16,address,bytes32,bytes32,bytes32[])"
    return Table(
        "paths", "Roots of traces of several lengths, and the path of one of their rows.", types, cases, fields
    )


def ids() -> Table:
    cases = [
        (word(f"job {i}"), round, shard, round_pot(word(f"job {i}"), round), case_id(word(f"job {i}"), round, shard))
        for i, (round, shard) in enumerate([(0, 0), (1, 255), (2**32 - 1, 65_535)])
    ]
    fields = ("jobId", "round", "shard", "roundPot", "caseId")
    return Table("ids", "Names of pots and cases.", "(bytes32,uint32,uint16,bytes32,bytes32)", cases, fields)


def steps() -> Table:
    cases = [
        (word(f"seed {i}"), word(f"case {i}"), h, list(steps_to_open(word(f"seed {i}"), word(f"case {i}"), h)))
        for i, h in enumerate([3, 4, 10, 100, 500, 1024])
    ]
    types = "(bytes32,bytes32,uint256,uint32[])"
    return Table("steps", "The steps that a seat opens.", types, cases, ("seed", "caseId", "innerSteps", "steps"))


def amounts() -> Table:
    windows = Windows(120, 120, 60, 30, 120, 60, 20)
    detection = load_preset("dev").detection_bps
    cases = []
    for reward, fee, rate, slots, n in [(10**18, 11 * 10**17, 10_000, 6, 6), (7, 9, 1_234, 3, 16), (3, 3, 1, 256, 256)]:
        bond = least_bond(reward, rate, detection)
        terms = Terms(word("spec"), word("genesis"), reward, bond, 1, 3, fee, rate, slots, n, 1, 0, 5_000, windows)
        cases.append((reward, fee, rate, slots, n, detection, bond, compute_reservation(terms)))
    fields = ("reward", "fee", "auditRateBps", "probationSlots", "shards", "detectionBps", "leastBond", "reservation")
    types = "(uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256)"
    return Table(
        "amounts", "Least bonds under which cheating does not pay, and reservations, in wei.", types, cases, fields
    )


def delegations() -> Table:
    cases: list[tuple[Any, ...]] = []
    rows = [
        (1, Scope.TRAIN, 1, 0, 1),
        (31337, Scope.ALL, FOREVER, 7, 2**256 - 1),
        (2**63, Scope.AUDIT, 2**40, 2**255, 0),
    ]
    for i, (chain, scopes, expiry, nonce, deadline) in enumerate(rows):
        domain = Domain(chain, address(f"registry {i}"))
        d = Delegation(address(f"owner {i}"), address(f"operator {i}"), address(f"payout {i}"), scopes, expiry)
        values = (domain.chain_id, domain.registry, d.owner, d.operator, d.payout, int(scopes), expiry, nonce, deadline)
        digests = (
            registration_digest(domain, d.owner, d.operator, d.payout, nonce, deadline),
            delegation_digest(domain, d, nonce, deadline),
            revocation_digest(domain, d.owner, d.operator, nonce, deadline),
        )
        cases.append((*values, *digests))
    fields = ("chainId", "registry", "owner", "operator", "payout", "scopes", "expiry", "nonce", "deadline")
    return Table(
        "delegations",
        "What operators and owners sign for the registry (EIP-712), and the digests.",
        "(uint256,address,address,address,address,uint8,uint64,uint256,uint256,bytes32,bytes32,bytes32)",
        cases,
        (*fields, "registration", "delegation", "revocation"),
    )


def tables() -> list[Table]:
    return [commitments(), leaves(), paths(), ids(), steps(), amounts(), delegations()]


def _plain(value: Any) -> Any:
    """JSON that loses nothing: bytes as hex, and numbers above 2^53 as text."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, int) and value >= 2**53 else value


def _json(table: Table) -> str:
    cases = [dict(zip(table.fields, map(_plain, case), strict=True)) for case in table.cases]
    return json.dumps({"about": table.about, "cases": cases}, indent=1) + "\n"


def _library(all: list[Table]) -> str:
    head = (
        "// SPDX-License-Identifier: MIT\npragma solidity 0.8.30;\n\n"
        "/// tests/vectors/*.json as ABI bytes: written by tests/vectors/make.py, read by Vectors.t.sol.\n"
        "library Vectors {\n"
    )
    lines = []
    for table in all:
        data = abi_encode((table.types + "[]",), (table.cases,)).hex()
        lines.append(f'    bytes internal constant {table.name.upper()} =\n        hex"{data}";\n')
    return head + "".join(lines) + "}\n"


def files() -> dict[Path, str]:
    """Every file with the text that it must have."""
    all = tables()
    return {HERE / f"{t.name}.json": _json(t) for t in all} | {LIBRARY: _library(all)}


def main() -> int:
    stale = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if "--check" not in sys.argv:
            path.write_text(files()[path])
        print(f"{'stale' if '--check' in sys.argv else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
