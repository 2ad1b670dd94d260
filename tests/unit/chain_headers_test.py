"""The header of a block from the fields that JSON-RPC gives: exactly what the hash covers, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rlp
from eth_utils.crypto import keccak

from protocol.chain.headers import BYTES, FIELDS, HeaderUnknown, encode_header

# Ethereum's block 25930330, of Osaka; hardhat/sol/Prevrandao.t.sol shows the same header to the contract
VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "header.json").read_bytes())
BLOCK, RLP = VECTOR["block"], bytes.fromhex(VECTOR["rlp"][2:])


def block_of(count: int, **changes: Any) -> dict[str, Any]:
    """A block with the first fields only, and the hash that these have."""
    names = [name for name, _ in FIELDS[:count]]
    items = [(BLOCK[name], kind) for name, kind in FIELDS[:count]]
    raw = [bytes.fromhex(v[2:]) if k == BYTES else int(v, 16) for v, k in items]
    return {name: BLOCK[name] for name in names} | {"hash": "0x" + keccak(rlp.encode(raw)).hex()} | changes


def test_a_published_header_of_ethereum_is_encoded_to_the_last_byte() -> None:
    assert keccak(RLP).hex() == BLOCK["hash"][2:] == "d0821d79e728073edcb128821c5c532decb6eb860796a88266fd379f4ef3f12a"
    assert encode_header(BLOCK) == RLP
    beside = {"size": "0x1", "transactions": [], "uncles": [], "withdrawals": [], "totalDifficulty": "0x0"}
    assert encode_header(BLOCK | beside | {"l1BlockNumber": "0x5"}) == RLP


@pytest.mark.parametrize("count", [15, 16, 17, 20, 21])
def test_headers_of_older_upgrades_end_where_their_fields_end(count: int) -> None:
    encoded = encode_header(block_of(count))
    assert len(rlp.decode(encoded)) == count
    assert encode_header(block_of(count, requestsHash=None) if count < 21 else block_of(count)) == encoded


def test_a_zero_is_the_empty_string() -> None:
    zero = encode_header(BLOCK)
    assert rlp.decode(zero)[7] == b"" and BLOCK["difficulty"] == "0x0"


def test_a_header_with_a_field_of_an_unknown_upgrade_is_refused_and_the_field_is_named() -> None:
    with pytest.raises(HeaderUnknown, match=r"25930330 does not give its hash.*unknown in the answer: blockAccessList"):
        encode_header(BLOCK | {"hash": "0x" + "11" * 32, "blockAccessListHash": "0x" + "22" * 32})


@pytest.mark.parametrize("name", [name for name, _ in FIELDS])
def test_no_field_can_be_changed_or_left_out(name: str) -> None:
    value = BLOCK[name]
    with pytest.raises(HeaderUnknown):
        encode_header(BLOCK | {name: value[:-1] + ("1" if value[-1] != "1" else "2")})
    with pytest.raises(HeaderUnknown):
        encode_header({key: value for key, value in BLOCK.items() if key != name})


@pytest.mark.parametrize("value", [5, "5", "0xzz", "0x", [], "0x123", "-0x5", "0x-5", "0x1_0"])
def test_values_of_another_form_are_one_line(value: Any) -> None:
    for name in ("parentHash", "number", "hash"):
        with pytest.raises(HeaderUnknown) as refused:
            encode_header(BLOCK | {name: value})
        assert "\n" not in str(refused.value)
