"""Handing a signed transaction to a node, and what its answer means. Clients word their answers differently."""

from __future__ import annotations

from enum import Enum
from typing import Any

from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.exceptions import Web3Exception

from protocol.chain.errors import Refused
from protocol.chain.revert import rpc_message


class Answer(Enum):
    """What a node made of a transaction."""

    ACCEPTED = "accepted"  # or known already: the same thing
    NONCE_USED = "nonce used"  # by this transaction or by another: to be looked up
    UNDERPRICED = "underpriced"  # another transaction of this nonce pays more
    NO_MONEY = "no money"


# Parts of the messages of geth, Erigon, Nethermind, Besu, reth, anvil and Hardhat, in lower case.
_MEANINGS = (
    (Answer.ACCEPTED, ("already known", "known transaction", "already imported", "alreadyknown", "already exists")),
    (Answer.NONCE_USED, ("nonce too low", "nonce is too low", "nonce has already been used", "oldnonce")),
    (Answer.UNDERPRICED, ("underpriced", "replacement transaction", "feetoolowtocompete")),
    (Answer.NO_MONEY, ("insufficient funds", "insufficientfunds", "enough funds", "upfront cost")),
)


def classify(message: str) -> Answer | None:
    """The meaning of a node's message; None for a refusal of another kind."""
    text = message.lower()
    return next((answer for answer, parts in _MEANINGS if any(part in text for part in parts)), None)


async def broadcast(w3: AsyncWeb3[Any], raw: bytes) -> Answer:
    """Send raw bytes. Raises Refused for a lasting refusal, ChainUnavailable when nobody knows whether it arrived."""
    try:
        await w3.eth.send_raw_transaction(HexBytes(raw))
    except Web3Exception as error:
        message = rpc_message(error)
        answer = classify(message)
        if answer is None:
            raise Refused(f"the RPC node refused the transaction: {message}") from error
        return answer
    return Answer.ACCEPTED
