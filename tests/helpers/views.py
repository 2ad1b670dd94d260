"""Readings of a market, built from the few facts that a test is about. Everything else is ordinary and valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from node.operator.planner import OwnState
from protocol.core.audit import Case, CaseKind, CasePhase, Finding, Outcome, PanelSeat, SeatState
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.job import Job, JobStatus, PauseReason, Progress
from protocol.core.operator import FOREVER, Operator, Owner, Scope
from protocol.core.round import Draw, Round, RoundStatus
from protocol.core.terms import Terms, Windows
from protocol.core.units import TOKEN
from verifier.snapshot import JobSnapshot, Snapshot

JOB = bytes.fromhex("ab" * 32)
ME, OTHER, NOBODY = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "00" * 20
MY_OWNER, OTHER_OWNER = "0x" + "a1" * 20, "0x" + "b2" * 20
OPENED_AT, CLOSED_AT = 1_000, 2_000
BASE, NEXT = b"\1" * 32, b"\2" * 32
WINDOWS = Windows(train=120, round=120, attest=60, challenge=30, audit_commit=120, audit_reveal=60, demand=20)


def some_terms(**changes: Any) -> Terms:
    """Four shards a round; what a dev deployment accepts."""
    windows = replace(WINDOWS, **changes.pop("windows", {}))
    terms = Terms(
        spec_digest=b"\5" * 32,
        genesis_digest=b"\6" * 32,
        reward_per_shard=TOKEN,
        bond_per_shard=25 * TOKEN,
        rounds=3,
        inner_steps=8,
        audit_fee=TOKEN * 11 // 10,
        audit_rate_bps=1_000,
        probation_slots=4,
        shards_per_round=4,
        min_shards=2,
        tolerance_class=0,
        loss_tolerance=5_000,
        windows=windows,
    )
    return replace(terms, **changes)


def a_claim(shard: int, status: ClaimStatus = ClaimStatus.HELD, by: str = ME, **changes: Any) -> Claim:
    """`by` is an operator; its owner follows."""
    free = status == ClaimStatus.FREE
    committed = status not in (ClaimStatus.FREE, ClaimStatus.HELD, ClaimStatus.LAPSED)
    settled = status if status in (ClaimStatus.PAID, ClaimStatus.UNPAID) else ClaimStatus.FREE
    claim = Claim(
        shard=shard,
        status=status,
        operator=NOBODY if free else by,
        claimed_at=0 if free else OPENED_AT + 1,
        deadline=0 if free else OPENED_AT + 120,
        settled=settled,
        owner=NOBODY if free else (MY_OWNER if by == ME else OTHER_OWNER),
        commitment=bytes([shard + 1]) * 32 if committed else bytes(32),
    )
    return replace(claim, **changes)


def four(*claims: Claim) -> tuple[Claim, ...]:
    """These claims; the other shards of the round are free."""
    given = {claim.shard: claim for claim in claims}
    return tuple(given.get(shard, a_claim(shard, ClaimStatus.FREE)) for shard in range(4))


def a_round(status: RoundStatus = RoundStatus.OPEN, *claims: Claim, number: int = 0, **changes: Any) -> Round:
    """Four shards; those that are not given are free. A closed round's sample is drawn, and empty."""
    held = four(*claims)
    committed = sum(1 << claim.shard for claim in held if claim.is_committed)
    closed = status in (RoundStatus.CLOSED, RoundStatus.VOID, RoundStatus.ORPHANED, RoundStatus.SETTLED)
    round = Round(
        number=number,
        status=status,
        base=BASE,
        next=NEXT if closed else bytes(32),
        committed_map=committed,
        probation_map=0,
        accepted_map=committed if closed or status == RoundStatus.TALLIED else 0,
        opened_at=OPENED_AT,
        ends_at=OPENED_AT + 120,
        sealed_at=0 if status in (RoundStatus.OPEN, RoundStatus.DUE) else OPENED_AT + 100,
        tallied_at=OPENED_AT + 160 if status == RoundStatus.TALLIED else 0,
        closed_at=CLOSED_AT if closed else 0,
        committed=committed.bit_count(),
        resolved=sum(claim.is_resolved for claim in held),
        extended=False,
        voided=status == RoundStatus.VOID,
        checkpoint=number + 1 if closed and status != RoundStatus.VOID else 0,
        generation=0,
        claims=held,
        draw=a_draw() if closed else Draw(0, bytes(32), 0, 0, 0, False, 0),
        cases={},
    )
    return replace(round, **changes)


def a_draw(sampled: int = 0, *, drawn: bool = True) -> Draw:
    return Draw(
        beacon_ticket=7,
        seed=b"\3" * 32 if drawn else bytes(32),
        sampled_map=sampled,
        tickets=6,
        closed_at=CLOSED_AT,
        drawn=drawn,
        taken=0,
    )


def a_seat(operator: str = ME, state: SeatState = SeatState.SEATED, finding: Finding = Finding.NONE) -> PanelSeat:
    owner = MY_OWNER if operator == ME else OTHER_OWNER
    return PanelSeat(owner, 0, 1, state, finding, 0, operator, 40 * TOKEN, bytes(32))


def a_case(shard: int, phase: CasePhase, *seats: PanelSeat, **changes: Any) -> Case:
    """The phase ends a minute after the round's close."""
    case = Case(
        job_id=JOB,
        round=0,
        shard=shard,
        level=1,
        phase=phase,
        outcome=Outcome.NONE,
        kind=CaseKind.SAMPLED,
        withheld=False,
        met_busy=False,
        accused=OTHER_OWNER,
        phase_ends=CLOSED_AT + 60,
        demanded_at=0,
        opened=False,
        tries=0,
        tickets=6,
        closed_at=CLOSED_AT,
        beacon_ticket=9,
        seed=b"\4" * 32,
        seats=tuple(seats),
    )
    return replace(case, **changes)


def a_job(*rounds: Round, status: JobStatus = JobStatus.RUNNING, job_id: bytes = JOB, **terms: Any) -> JobSnapshot:
    """`terms` change some_terms()."""
    opened = max((round.number + 1 for round in rounds), default=0)
    progress = Progress(
        opened=opened,
        closed=0,
        unsettled=len(rounds),
        void_streak=0,
        moved_at=0,
        final_rounds=0,
        generation=0,
        active=True,
    )
    reason = PauseReason.ESCROW if status == JobStatus.PAUSED else PauseReason.NONE
    return JobSnapshot(Job(job_id, status, reason, 0, 0, 0, progress, tuple(rounds)), some_terms(**terms))


def an_operator(address: str, endpoint: str = "http://127.0.0.1:1") -> Operator:
    owner = MY_OWNER if address == ME else OTHER_OWNER
    return Operator(address, owner, Scope.ALL, FOREVER, False, address, bytes(32), bytes(32), endpoint)


def seen(*jobs: JobSnapshot, now: int = OPENED_AT + 10, me: str = ME, **changes: Any) -> Snapshot:
    """One reading, with two operators."""
    operators: Sequence[Operator] = [an_operator(ME), an_operator(OTHER)]
    return replace(Snapshot(now=now, block=now, me=me, operators=operators, jobs=jobs, audits={}), **changes)


def own_state(**changes: Any) -> OwnState:
    """An operator that may claim: stake, base at hand, nothing held."""
    owner = Owner(MY_OWNER, 1_000 * TOKEN, 0, 1, False, False)
    state = OwnState(
        owner=replace(owner, **changes.pop("owner", {})),
        held=0,
        attested=False,
        bases=frozenset({0}),
        results=frozenset(),
        nexts={},
        claims_at_once=1,
        train_seconds=10.0,
        stop_claiming="",
    )
    return replace(state, **changes)
