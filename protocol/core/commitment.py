"""What an operator commits to, and the ids that both languages derive (twin of TraceLib.sol, RoundBook.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.core.encoding import abi_encode, keccak, typehash

COMMITMENT_TYPEHASH = typehash(
    "Commitment(uint256 chainId,address roundBook,bytes32 jobId,uint32 round,uint16 shard,address operator,"
    "bytes32 baseDigest,bytes32 payloadDigest,bytes32 traceRoot,bytes32 stateDigest)"
)
_COMMITMENT_TYPES = ("bytes32", "uint256", "address", "bytes32", "uint32", "uint16", "address") + ("bytes32",) * 4


@dataclass(frozen=True)
class Opening:
    """The three values under a commitment, 32 bytes each."""

    payload_digest: bytes
    trace_root: bytes
    state_digest: bytes


def commitment(
    chain_id: int,
    round_book: str,
    job_id: bytes,
    round: int,
    shard: int,
    operator: str,
    base: bytes,
    payload_digest: bytes,
    trace_root: bytes,
    state_digest: bytes,
) -> bytes:
    """The commitment over these values: bound to chain, contract, job, round, shard, operator and base."""
    values = (
        COMMITMENT_TYPEHASH, chain_id, round_book, job_id, round, shard, operator,
        base, payload_digest, trace_root, state_digest,
    )  # fmt: skip
    return keccak(abi_encode(_COMMITMENT_TYPES, values))


def round_pot(job_id: bytes, round: int) -> bytes:
    """The ledger's pot of a round's reservation (RoundBook.potOf)."""
    return keccak(abi_encode(("bytes32", "uint32"), (job_id, round)))


def case_id(job_id: bytes, round: int, shard: int) -> bytes:
    """The id of the case about a claim, and of its pot (AuditCourt.caseIdOf)."""
    return keccak(abi_encode(("string", "bytes32", "uint32", "uint16"), ("case", job_id, round, shard)))


def checkpoint_case_id(job_id: bytes, round: int) -> bytes:
    """The id of the case about a round's checkpoint, and of its pot (CheckpointCourt.caseIdOf)."""
    return keccak(abi_encode(("string", "bytes32", "uint32"), ("checkpoint", job_id, round)))


COURT_FUND = keccak(b"court fund")
