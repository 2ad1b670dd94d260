"""The names of cases, of their pots and of their bonds."""

from __future__ import annotations

from protocol.core.commitment import case_id as of_claim
from protocol.core.encoding import abi_encode, keccak

__all__ = ["of_bond", "of_checkpoint", "of_claim"]


def of_checkpoint(job: bytes, number: int) -> bytes:
    """The case about the checkpoint that a round ended in."""
    return keccak(abi_encode(("string", "bytes32", "uint32"), ("checkpoint", job, number)))


def of_bond(case: bytes, index: int) -> bytes:
    """The lock of a case's bond with that number."""
    return keccak(abi_encode(("string", "bytes32", "uint256"), ("bond", case, index)))
