"""The keys of what a service remembers. Each is bound to the facts it rests on: a fork that changes the base of a round
or a commitment makes another key, so that nothing of the old fork is ever sent on the new one. Pure.
"""

from __future__ import annotations

import hashlib

from protocol.core.round import Round

SHORT = 16  # hex digits of a digest in a key


def result_key(job_id: bytes, round: Round, shard: int) -> str:
    """A claim's trained result: of this base."""
    return f"result/{job_id.hex()}/{round.number}/{shard}/{round.base.hex()[:SHORT]}"


def next_key(job_id: bytes, round: Round) -> str:
    """The outer step taken from a round's base and commitments."""
    bound = hashlib.sha256(round.base + b"".join(claim.commitment for claim in round.claims)).hexdigest()
    return f"next/{job_id.hex()}/{round.number}/{bound[:SHORT]}"


def audit_key(case_id: bytes, seat: int, commitment: bytes) -> str:
    """What a seat has run and committed to. An owner may sit in a case twice, on another seat; the salt and the root
    are of one seat alone."""
    return f"audit/{case_id.hex()}/{seat}/{commitment.hex()[:SHORT]}"


def base_key(job_id: bytes, round: Round) -> str:
    """That this operator may build on a round's base: it took the step itself, or nobody can challenge it any more."""
    return f"base/{job_id.hex()}/{round.number}/{round.base.hex()[:SHORT]}"


def step_key(case_id: bytes, seat: int, round: Round) -> str:
    """What a seat about a checkpoint found and committed to."""
    return f"step/{case_id.hex()}/{seat}/{_bound_to_checkpoint(round)}"


def step_check_key(job_id: bytes, round: Round) -> str:
    """The result of a check of a checkpoint of one's own accord."""
    return f"recheck-step/{job_id.hex()}/{round.number}/{_bound_to_checkpoint(round)}"


def _bound_to_checkpoint(round: Round) -> str:
    commitments = b"".join(claim.commitment for claim in round.claims)
    agreed = round.accepted_map.to_bytes(32) + round.next
    return hashlib.sha256(round.base + commitments + agreed).hexdigest()[:SHORT]


def recheck_key(commitment: bytes) -> str:
    """The result of a check of one's own accord; a commitment binds its base."""
    return f"recheck/{commitment.hex()}"
