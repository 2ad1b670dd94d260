"""Tickets, and what a drand relay answers: the points of published rounds, and everything that is not one."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from protocol.core.beacon import (
    DRAND,
    PREVRANDAO,
    PRIME,
    BadSignature,
    has_happened,
    moment_of,
    needs_proof,
    proof_of_round,
    round_time,
    uncompressed,
)

# Published rounds of quicknet with their sources, and the points that the contract takes: hardhat/sol/Drand.t.sol
POINTS = {
    42: "15a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a"
    "05b5c086615e8435b242b95593c258658b5f7b0e0181870d13f88a1d06275046e42db0886eb64885e980c926403ced18",
    1000: "144679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
    "11f92e4521ef54f047b64b85fa98db2d46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2",
    20_905_307: "0a60486975062d9f06633c284cf1a7b46fb343f56f329f180530ca40a9e86320244f4fbfc37ae866cf25ef499665a31f"
    "08c61b5471ed86344d6b347d1b0e1a4146877a57c28507448678d8249521d91be74cd5a44fb6fce5f869b235e085ebe6",
}
SIGNATURES = {
    42: "95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a",
    1000: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
    20_905_307: "8a60486975062d9f06633c284cf1a7b46fb343f56f329f180530ca40a9e86320244f4fbfc37ae866cf25ef499665a31f",
}
RANDOMNESS_1000 = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"


def answer(**changes: Any) -> bytes:
    fields = {"round": 1000, "randomness": RANDOMNESS_1000, "signature": SIGNATURES[1000]} | changes
    return json.dumps(fields).encode()


def claimed(signature: bytes) -> bytes:
    """An answer whose randomness fits its signature."""
    return answer(signature=signature.hex(), randomness=hashlib.sha256(signature).hexdigest())


@pytest.mark.parametrize("round", SIGNATURES)
def test_the_signatures_of_published_rounds_become_the_points_that_the_contract_takes(round: int) -> None:
    assert uncompressed(bytes.fromhex(SIGNATURES[round])).hex() == POINTS[round]


def test_the_flag_of_the_larger_y_chooses_between_the_two_roots() -> None:
    point = bytes.fromhex(SIGNATURES[1000])
    one, other = uncompressed(point), uncompressed(bytes([point[0] ^ 0x20]) + point[1:])
    assert one[:48] == other[:48] and int.from_bytes(one[48:]) + int.from_bytes(other[48:]) == PRIME


def test_an_answer_of_a_relay_becomes_a_proof_and_may_say_more_than_is_needed() -> None:
    assert proof_of_round(1000, answer()).hex() == POINTS[1000]
    assert proof_of_round(1000, answer(previous_signature="", served_by="x")).hex() == POINTS[1000]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a round"),
        (b"\xff{}", "not a round"),
        (b"[" * 4000, "not a round"),
        (b'{"round": 1000}', "not a round"),
        (answer(round="1000"), "not a round"),
        (answer(round=10**40), "not a round"),
        (answer(signature=None), "not a round"),
        (answer(signature="zz"), "hex digits"),
        (answer(signature=" " + SIGNATURES[1000]), "hex digits"),
        (answer(signature="b"), "not a round"),
        (answer(round=999), "is round 999, expected 1000"),
        (answer(randomness="00" * 32), "not the sha256"),
        (answer(signature=SIGNATURES[42]), "not the sha256"),
        (claimed(b""), "0 bytes, expected 48"),
        (claimed(bytes.fromhex(POINTS[1000])), "96 bytes, expected 48"),
        (claimed(bytes(48)), "no compressed point"),
        (claimed(b"\xc0" + bytes(47)), "point at infinity"),
        (claimed(bytes([PRIME >> 376 | 0x80]) + (PRIME & ((1 << 376) - 1)).to_bytes(47)), "below the prime"),
        (claimed(b"\x80" + bytes(46) + b"\x01"), "not on the curve"),
    ],
)
def test_what_is_no_signature_of_the_round_is_told_apart(data: bytes, why: str) -> None:
    with pytest.raises(BadSignature, match=re.escape(why)):
        proof_of_round(1000, data)


def test_a_ticket_holds_its_moment_and_how_often_it_was_replaced() -> None:
    assert [moment_of(count << 64 | 1000) for count in range(4)] == [1000] * 4
    assert [needs_proof(count << 64 | 1000) for count in range(4)] == [True, True, True, False]


def test_a_block_is_proved_from_the_one_after_it_and_a_round_from_its_second() -> None:
    assert [has_happened(PREVRANDAO, 100, block, 0) for block in (99, 100, 101)] == [False, False, True]
    second = round_time(1000)
    assert second == 1_692_803_367 + 2_997
    assert [has_happened(DRAND, 1000, 0, now) for now in (second - 1, second)] == [False, True]
