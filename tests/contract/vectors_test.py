"""The vectors are what protocol.core makes of them today; hardhat/sol/Vectors.t.sol holds the contracts to the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eth_account.messages import encode_typed_data

from protocol.core import merkle
from protocol.core.audit import steps_to_open
from protocol.core.commitment import case_id, commitment, round_pot
from protocol.core.delegation import Delegation, Domain, delegation_digest, registration_digest, revocation_digest
from protocol.core.encoding import keccak
from protocol.core.operator import Scope
from protocol.core.trace import Seat, TraceRow, audit_row_hash, row_hash
from tests.vectors import make


def load(name: str) -> list[dict[str, Any]]:
    """The cases of a committed file, with bytes and large numbers read back."""
    return [
        {k: _read(v) for k, v in case.items()} for case in json.loads((make.HERE / f"{name}.json").read_text())["cases"]
    ]


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(v) for v in value]
    if isinstance(value, str):
        if len(value) == 42:
            return value
        return bytes.fromhex(value[2:]) if value.startswith("0x") else int(value)
    return value


def _other(value: Any) -> Any:
    """Another value of the same type: the last bit is flipped."""
    if isinstance(value, int):
        return value ^ 1
    return value[:-1] + (bytes([value[-1] ^ 1]) if isinstance(value, bytes) else "01"[value[-1] == "0"])


@pytest.mark.parametrize("path", sorted(make.files()), ids=lambda path: Path(path).name)
def test_a_committed_file_is_what_the_program_writes(path: Path) -> None:
    assert path.read_text() == make.files()[path]


def test_a_commitment_hashes_all_of_its_values() -> None:
    cases = load("commitments")
    for case in cases:
        expected = case.pop("commitment")
        assert commitment(*case.values()) == expected
        for name, value in case.items():
            changed = case | {name: _other(value)}
            assert commitment(*changed.values()) != expected, name


def test_a_row_is_a_leaf_of_two_trees() -> None:
    for case in load("leaves"):
        row = TraceRow(*case["row"])
        seat = Seat(case["caseId"], case["seat"], case["auditor"], case["salt"])
        assert row_hash(row) == case["rowHash"]
        assert audit_row_hash(row, seat) == case["auditRowHash"]


def test_a_path_leads_to_its_root_from_its_own_place_only() -> None:
    for case in load("paths"):
        row, count = TraceRow(*case["row"]), case["rows"]
        for index in range(count):
            is_here = index == row.step - 1
            assert merkle.is_proof(case["traceRoot"], row_hash(row), index, count, case["traceProof"]) == is_here
        seat = Seat(case["caseId"], case["seat"], case["auditor"], case["salt"])
        leaf = audit_row_hash(row, seat)
        assert merkle.is_proof(case["auditRoot"], leaf, row.step - 1, count, case["auditProof"])


def test_pots_and_cases_have_the_names_of_the_contracts() -> None:
    for case in load("ids"):
        assert round_pot(case["jobId"], case["round"]) == case["roundPot"]
        assert case_id(case["jobId"], case["round"], case["shard"]) == case["caseId"]


def test_the_steps_to_open_lie_one_in_each_third() -> None:
    for case in load("steps"):
        h, steps = case["innerSteps"], steps_to_open(case["seed"], case["caseId"], case["innerSteps"])
        assert list(steps) == case["steps"]
        assert all(i * h // 3 < step <= (i + 1) * h // 3 for i, step in enumerate(steps))


DOMAIN = {"name": "gradmarket", "version": "1"}
NONCED = [("nonce", "uint256"), ("deadline", "uint256")]
PARTIES = [("owner", "address"), ("operator", "address")]
SIGNED = {
    "Registration": [*PARTIES, ("payout", "address"), *NONCED],
    "Delegation": [*PARTIES, ("payout", "address"), ("scopes", "uint8"), ("expiry", "uint64"), *NONCED],
    "Revocation": [*PARTIES, *NONCED],
}


@pytest.mark.parametrize("kind", SIGNED)
def test_a_wallet_that_is_shown_the_message_signs_the_same_digest(kind: str) -> None:
    for case in load("delegations"):
        domain = {**DOMAIN, "chainId": case["chainId"], "verifyingContract": case["registry"]}
        message = {name: case[name] for name, _ in SIGNED[kind]}
        types = {kind: [{"name": name, "type": of} for name, of in SIGNED[kind]]}
        signable = encode_typed_data(domain, types, message)
        digest = keccak(b"\x19" + signable.version + signable.header + signable.body)
        assert digest == case[kind.lower()]


def test_what_is_signed_for_the_registry_is_bound_to_all_of_its_values() -> None:
    for case in load("delegations"):
        digests = {kind.lower(): case.pop(kind.lower()) for kind in SIGNED}
        for name, value in case.items():
            changed = case | {name: _other(value)}
            domain = Domain(changed["chainId"], changed["registry"])
            nonce, deadline = changed["nonce"], changed["deadline"]
            owner, operator, payout = changed["owner"], changed["operator"], changed["payout"]
            d = Delegation(owner, operator, payout, Scope(changed["scopes"]), changed["expiry"])
            assert delegation_digest(domain, d, nonce, deadline) != digests["delegation"], name
            registration = registration_digest(domain, owner, operator, payout, nonce, deadline)
            assert (registration == digests["registration"]) == (name in ("scopes", "expiry")), name
            revocation = revocation_digest(domain, owner, operator, nonce, deadline)
            assert (revocation == digests["revocation"]) == (name in ("payout", "scopes", "expiry")), name
