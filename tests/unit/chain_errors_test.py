"""Refusals by name, in every shape that nodes and web3 give them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from eth_abi import encode
from eth_utils.crypto import keccak
from web3.exceptions import ContractCustomError, ContractLogicError, Web3RPCError
from web3.types import RPCResponse

from protocol.chain.bindings import load_artifact, shipped_contracts
from protocol.chain.broadcast import Answer, classify
from protocol.chain.errors import DeploymentError, FeeCapTooLow, Refused, Reverted
from protocol.chain.fees import GWEI, FeePolicy, Fees
from protocol.chain.revert import ErrorTable

ABI = [
    {
        "type": "error",
        "name": "BondTooSmall",
        "inputs": [{"name": "have", "type": "uint256"}, {"name": "need", "type": "uint256"}],
    }
]
TABLE = ErrorTable([ABI])
DATA = "0x" + (keccak(text="BondTooSmall(uint256,uint256)")[:4] + encode(["uint256", "uint256"], [5, 13])).hex()


def rpc(error: dict[str, Any]) -> Web3RPCError:
    return Web3RPCError("x", rpc_response=cast(RPCResponse, {"jsonrpc": "2.0", "id": 1, "error": error}))


@pytest.mark.parametrize(
    "error",
    [
        ContractCustomError(DATA, data=DATA),  # anvil and the embedded chain, through web3
        ContractLogicError("execution reverted", data=cast(Any, {"message": "Error: VM Exception", "data": DATA})),
        rpc({"code": -32603, "message": "reverted with custom error", "data": {"message": "no", "data": DATA}}),
        rpc({"code": 3, "message": "execution reverted", "data": DATA}),
        rpc({"code": -32015, "message": "VM execution error", "data": "Reverted " + DATA}),
    ],
)
def test_a_custom_error_is_named_in_every_shape(error: Any) -> None:
    found = TABLE.explain(error)
    assert isinstance(found, Reverted) and found.name == "BondTooSmall"
    assert str(found) == "the contract refused: BondTooSmall(have=5, need=13)"


def test_an_error_of_no_known_contract_keeps_its_bytes() -> None:
    assert str(TABLE.decode(bytes.fromhex("deadbeef"))) == "the contract refused: UnknownError(data=0xdeadbeef)"
    assert TABLE.decode(bytes.fromhex(DATA[2:])[:20]).name == "UnknownError"


def test_a_node_s_own_refusal_keeps_its_words() -> None:
    found = TABLE.explain(rpc({"code": -32000, "message": "header\nnot found"}))
    assert isinstance(found, Refused) and str(found).endswith("header not found")


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("already known", Answer.ACCEPTED),
        ("ALREADY_EXISTS: already known", Answer.ACCEPTED),
        ("nonce too low: next nonce 5, tx nonce 4", Answer.NONCE_USED),
        ("OldNonce, Current nonce: 5", Answer.NONCE_USED),
        ("replacement transaction underpriced", Answer.UNDERPRICED),
        ("insufficient funds for gas * price + value: address 0x0 have 1 want 2", Answer.NO_MONEY),
        ("Insufficient funds for gas * price + value", Answer.NO_MONEY),
        ("Sender doesn't have enough funds to send tx.", Answer.NO_MONEY),
        ("intrinsic gas too low", None),
    ],
)
def test_the_words_of_different_clients_mean_the_same(message: str, answer: Answer | None) -> None:
    assert classify(message) is answer


def test_a_replacement_raises_both_fees_by_an_eighth_or_stays_away() -> None:
    policy = FeePolicy(max_fee_cap=100 * GWEI)
    old = Fees(40 * GWEI, 3)
    new = policy.replacement(old, 1 * GWEI, 0)
    assert new is not None and new.max_fee * 8 >= old.max_fee * 9 and new.tip * 8 >= old.tip * 9
    assert policy.replacement(Fees(95 * GWEI, 1), 1 * GWEI, 0) is None
    capped = policy.replacement(Fees(80 * GWEI, GWEI), 90 * GWEI, 0)
    assert capped is not None and capped.max_fee == 100 * GWEI


def test_a_base_fee_above_the_cap_is_said_before_anything_is_signed() -> None:
    with pytest.raises(FeeCapTooLow, match="the chain asks 60000000000 wei per gas, the fee cap is 50000000000"):
        FeePolicy(max_fee_cap=50 * GWEI).initial(60 * GWEI, 0)


def test_a_tip_never_exceeds_the_whole_fee() -> None:
    fees = FeePolicy(max_fee_cap=10 * GWEI).initial(1 * GWEI, 50 * GWEI)
    assert fees.tip == fees.max_fee == 10 * GWEI


def test_an_unknown_contract_is_refused_by_name() -> None:
    with pytest.raises(DeploymentError, match="no ABI of contract 'Nonsense' is shipped"):
        load_artifact("Nonsense")
    assert all(load_artifact(name).contract_name == name for name in shipped_contracts())
