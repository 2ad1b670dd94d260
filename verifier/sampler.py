"""Which claims and steps an auditor re-executes of its own accord, beside those that the court gives it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from protocol.core.claim import Claim, ClaimStatus
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import CHALLENGE_FEES
from verifier.actions import ChallengeClaim, ChallengeStep, Recheck, RecheckStep
from verifier.records import step_check_key
from verifier.snapshot import JobSnapshot, Snapshot


def plan_sampling(
    snapshot: Snapshot,
    rate: float,
    secret: bytes,
    checked: Mapping[str, Mapping[str, Any]],
    stakes: Mapping[bytes, int],
) -> list[Recheck | ChallengeClaim]:
    """Accepted claims that the court did not sample, each with probability `rate`, drawn from `secret` so that nobody
    knows which. `checked`: earlier results by commitment in hex; `stakes`: free wei of our owner by job.
    """
    return [
        action
        for job in snapshot.jobs
        for round in job.job.rounds
        for claim in _open_claims(job, round, snapshot)
        for action in _plan_claim(job, round, claim, rate, secret, checked, stakes)
    ]


def plan_steps(
    snapshot: Snapshot, checked: Mapping[str, Mapping[str, Any]], stakes: Mapping[bytes, int]
) -> list[RecheckStep | ChallengeStep]:
    """Every checkpoint that can still be challenged: one step a round is little beside its claims, and all rest on it.

    `checked`: earlier results by `records.step_check_key`; `stakes`: free wei of our owner by job.
    """
    return [
        action
        for job in snapshot.jobs
        for round in job.job.rounds
        if round.status == RoundStatus.CLOSED and round.doubt is None
        if snapshot.now <= round.closed_at + job.terms.windows.challenge
        for action in _plan_step(job, round, checked, stakes)
    ]


def _plan_step(
    job: JobSnapshot, round: Round, checked: Mapping[str, Mapping[str, Any]], stakes: Mapping[bytes, int]
) -> Iterator[RecheckStep | ChallengeStep]:
    result = checked.get(step_check_key(job.job_id, round))
    if result is None:
        yield RecheckStep(job.job_id, round.number)
    elif result["finding"] == "false" and stakes.get(job.job_id, 0) >= CHALLENGE_FEES * job.terms.audit_fee:
        yield ChallengeStep(job.job_id, round.number)


def _open_claims(job: JobSnapshot, round: Round, snapshot: Snapshot) -> Iterator[Claim]:
    """What can still be challenged by us."""
    ours = {operator.owner for operator in snapshot.operators if operator.address == snapshot.me}
    if not round.draw.drawn or snapshot.now > round.closed_at + job.terms.windows.challenge:
        return
    for claim in round.claims:
        is_open = claim.status == ClaimStatus.ACCEPTED and claim.shard not in round.cases
        if is_open and not round.is_sampled(claim.shard) and claim.owner not in ours:
            yield claim


def _plan_claim(
    job: JobSnapshot,
    round: Round,
    claim: Claim,
    rate: float,
    secret: bytes,
    checked: Mapping[str, Mapping[str, Any]],
    stakes: Mapping[bytes, int],
) -> Iterator[Recheck | ChallengeClaim]:
    result = checked.get(claim.commitment.hex())
    if result is None:
        if _is_drawn(secret, claim, rate):
            yield Recheck(job.job_id, round.number, claim.shard, claim.commitment)
    elif result["finding"] == "fraud" and stakes.get(job.job_id, 0) >= CHALLENGE_FEES * job.terms.audit_fee:
        yield ChallengeClaim(job.job_id, round.number, claim.shard, claim.commitment)


def _is_drawn(secret: bytes, claim: Claim, rate: float) -> bool:
    drawn = int.from_bytes(hashlib.sha256(secret + claim.commitment).digest()[:8])
    return drawn < rate * 2**64
