"""What people in the market may try next, given what they see: mostly moves that make sense, some that do not.

A move looks at the twins' world and yields calls, one at a time, each after the one before was made. All that is left
to chance comes out of one `Random`, so that a number names a move's every detail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from protocol.core.model import case_ids, chance, jobs, rounds, terms
from protocol.core.model.kinds import CaseKind, CasePhase, ClaimStatus, JobStatus, RoundStatus
from protocol.core.model.records import NOBODY, NOTHING, Operator, Terms
from protocol.core.operator import FOREVER as NEVER
from protocol.core.operator import Scope
from tests.helpers.cast import (
    OPERATORS,
    OWNERS,
    PAYOUTS,
    POSTER,
    TERMS,
    TOKEN,
    dice_of,
    opening_of,
    registration,
    step_from,
)
from tests.helpers.twins import STRANGER, Twins

Call = tuple[Any, ...]
Move = Callable[[Twins, Random], Iterator[Call]]
MOVES: dict[str, Move] = {}
_ANY_ROUND = 0.15
_NONSENSE = 0.06


def move(function: Move) -> Move:
    """A move that a machine may choose, by its name."""
    MOVES[function.__name__] = function
    return function


def someone(t: Twins, dice: Random) -> str:
    """Any account that plays."""
    return dice.choice((*OWNERS, *OPERATORS, POSTER, STRANGER))


def some_job(t: Twins, dice: Random) -> bytes:
    """Mostly the newest job."""
    known = list(t.world.jobs)
    if not known or dice.random() < _NONSENSE / 4:
        return b"\x07" * 32
    return known[-1] if dice.random() < 0.85 else dice.choice(known)


def some_round(t: Twins, dice: Random, job: bytes) -> int:
    """Mostly the newest round that opened."""
    opened = jobs.progress_of(t.world, job).opened
    return dice.randrange(opened + 1) if dice.random() < _ANY_ROUND else max(0, opened - 1)


def a_round_in(t: Twins, dice: Random, *statuses: RoundStatus) -> tuple[bytes, int]:
    """A round in one of these states, or any where there is none."""
    fitting = [key for key in t.world.rounds if rounds.status_of(t.world, *key) in statuses]
    if fitting and dice.random() >= _NONSENSE:
        return dice.choice(fitting)
    job = some_job(t, dice)
    return job, some_round(t, dice, job)


def shards_of(t: Twins, job: bytes) -> range:
    """The shards of a job's rounds."""
    return range(t.world.jobs[job].terms.shards if job in t.world.jobs else 1)


# -------------------------------------------------------------- posters


@move
def post(t: Twins, dice: Random) -> Iterator[Call]:
    chosen = dice.choice(TERMS) if dice.random() < 0.8 else spoilt(dice.choice(TERMS), dice)
    chosen = replace(chosen, spec_digest=dice.choice((chosen.spec_digest, dice.randbytes(32))))
    amount = terms.reservation(chosen) * dice.choice((1, 2, 3, 6)) - (dice.random() < 0.1)
    yield POSTER, "market", "post", chosen, bytes([dice.randrange(3)] * 32), amount, "s" * dice.choice((1, 256, 257))


def spoilt(t: Terms, dice: Random) -> Terms:
    """Terms with one number that may be out of range."""
    names = ["reward", "bond", "rounds", "inner_steps", "fee", "audit_rate_bps", "probation_slots", "shards"]
    names += ["min_shards", "tolerance_class", "loss_tolerance", "genesis_digest"]
    name = dice.choice((*names, "windows"))
    if name == "windows":
        window = dice.choice(("train", "round", "attest", "challenge", "audit_commit", "audit_reveal", "demand"))
        return replace(t, windows=replace(t.windows, **{window: dice.choice((0, 5, 41, 2_592_001))}))
    if name == "genesis_digest":
        return replace(t, genesis_digest=NOTHING)
    choices: dict[str, Any] = {"tolerance_class": (1, 2), "loss_tolerance": (0, 4_999, 60_000_000)}
    change: dict[str, Any] = {name: dice.choice(choices.get(name, (0, 1, 2, 3, 257, 10_001)))}
    return replace(t, **change)


@move
def post_again(t: Twins, dice: Random) -> Iterator[Call]:
    over = {JobStatus.CLOSED, JobStatus.CLOSABLE, JobStatus.DRAINING}
    if all(jobs.status_of(t.world, job)[0] in over for job in t.world.jobs):
        chosen = replace(dice.choice(TERMS), spec_digest=dice.randbytes(32))
        yield POSTER, "market", "post", chosen, bytes(32), 4 * terms.reservation(chosen), "seed"


@move
def poster_orders(t: Twins, dice: Random) -> Iterator[Call]:
    caller = POSTER if dice.random() < 0.9 else someone(t, dice)
    job = some_job(t, dice)
    order = dice.choice(("pause", "resume", "resume", "resume", "calibrate", "calibrate", "refund", "fund", "cancel"))
    if order in ("refund", "fund"):
        yield caller, "market", order, job, dice.choice((0, 1, TOKEN, 60 * TOKEN))
    elif order == "calibrate":
        yield caller, "market", order, job, dice.choice((NOTHING, b"\x01" * 32, b"\x02" * 32))
    elif order != "cancel" or dice.random() < 0.3:
        yield caller, "market", order, job


@move
def fund(t: Twins, dice: Random) -> Iterator[Call]:
    job = some_job(t, dice)
    if job in t.world.jobs:
        yield POSTER, "market", "fund", job, terms.reservation(t.world.jobs[job].terms)
    yield POSTER, "market", "resume", job


@move
def close(t: Twins, dice: Random) -> Iterator[Call]:
    yield someone(t, dice), "market", "close", some_job(t, dice)


@move
def guardian(t: Twins, dice: Random) -> Iterator[Call]:
    caller = t.world.site.guardian if dice.random() < 0.7 else someone(t, dice)
    yield caller, "market", "allowPosting", dice.random() < 0.7


# -------------------------------------------------------------- owners


@move
def stake(t: Twins, dice: Random) -> Iterator[Call]:
    owner = dice.choice(OWNERS)
    amount = dice.choice((0, 1, 50 * TOKEN, 300 * TOKEN, 10**30))
    yield someone(t, dice) if dice.random() < 0.2 else owner, "vault", "deposit", owner, amount
    if dice.random() < 0.3:
        yield dice.choice(OWNERS), "vault", "withdraw", dice.choice((0, 1, 20 * TOKEN, 10**24))


@move
def withdraw_credit(t: Twins, dice: Random) -> Iterator[Call]:
    owed = [account for account, amount in t.world.credits.items() if amount]
    account = dice.choice(owed) if owed and dice.random() < 0.8 else someone(t, dice)
    yield someone(t, dice), "ledger", "withdraw", account, dice.choice((0, 0, 1, 10**24))


@move
def enroll(t: Twins, dice: Random) -> Iterator[Call]:
    i = dice.randrange(len(OPERATORS))
    owner = OWNERS[i % len(OWNERS)] if dice.random() < 0.9 else someone(t, dice)
    yield owner, "tickets", "enroll", OPERATORS[i], dice.choice((0, 1, 1, 1, 2, 65))


@move
def leave(t: Twins, dice: Random) -> Iterator[Call]:
    number = dice.randrange(len(t.world.tickets) + 1)
    owner = t.world.tickets[number].owner if number < len(t.world.tickets) else OWNERS[0]
    if dice.random() < 0.5:
        yield owner if dice.random() < 0.8 else someone(t, dice), "tickets", "exit", number
    gone = [i for i, ticket in enumerate(t.world.tickets) if ticket.exit_at and not ticket.released]
    yield someone(t, dice), "tickets", "release", dice.choice(gone) if gone and dice.random() < 0.9 else number


@move
def name_payout(t: Twins, dice: Random) -> Iterator[Call]:
    i = dice.randrange(len(OPERATORS))
    owner = OWNERS[i % len(OWNERS)] if dice.random() < 0.8 else someone(t, dice)
    yield owner, "registry", "setPayout", OPERATORS[i], dice.choice((*PAYOUTS, NOBODY))


@move
def name_operator(t: Twins, dice: Random) -> Iterator[Call]:
    """An owner names a key anew, mostly one that can do less than all."""
    now = t.block.time
    weak = [i for i, key in enumerate(OPERATORS) if _is_weak(t.world.operators[key], now)]
    i = dice.choice(weak) if weak and dice.random() < 0.9 else dice.randrange(len(OPERATORS))
    owner = OWNERS[i % len(OWNERS)] if dice.random() < 0.95 else dice.choice(OWNERS)
    scopes, expiry = int(Scope.ALL), NEVER
    if dice.random() < 0.3:
        scopes = dice.choice((0, 1, 2, 3, 4, 5, 6, 8))
    if dice.random() < 0.3:
        expiry = now + dice.choice((-1, 0, 30, 100))
    yield owner, "registry", "register", *registration(i, scopes, expiry)


def _is_weak(key: Operator, now: int) -> bool:
    return key.revoked or key.scopes != Scope.ALL or now > key.expiry


@move
def revoke(t: Twins, dice: Random) -> Iterator[Call]:
    i = dice.randrange(len(OPERATORS))
    caller = dice.choice((OPERATORS[i], OWNERS[i % len(OWNERS)], someone(t, dice)))
    if dice.random() < 0.3:
        yield caller, "registry", "revoke", OPERATORS[i] if dice.random() < 0.9 else STRANGER
    else:
        yield caller, "registry", "cancelSignatures"


# -------------------------------------------------------------- operators


@move
def open_round(t: Twins, dice: Random) -> Iterator[Call]:
    yield someone(t, dice), "rounds", "open", some_job(t, dice)


@move
def claim(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.OPEN)
    free = [s for s in shards_of(t, job) if _claimable(t, job, number, s)]
    count = dice.choice((0, 1, 1, 1, 1, 2, 3))
    pool = free if free and dice.random() < 0.8 else [*shards_of(t, job), 200]
    shards = [dice.choice(pool) for _ in range(count)]
    yield dice.choice(OPERATORS) if dice.random() < 0.95 else STRANGER, "rounds", "claim", job, number, shards


def _claimable(t: Twins, job: bytes, number: int, shard: int) -> bool:
    return rounds.claim_status(t.world, job, number, shard) in (ClaimStatus.FREE, ClaimStatus.LAPSED)


@move
def claim_all(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.OPEN)
    for shard in shards_of(t, job):
        if _claimable(t, job, number, shard):
            yield dice.choice(OPERATORS), "rounds", "claim", job, number, [shard]


@move
def commit(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.OPEN)
    shard = dice.choice(shards_of(t, job))
    yield _commit(t, dice, job, number, shard)


@move
def commit_all(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.OPEN)
    for shard in shards_of(t, job):
        if rounds.claim_status(t.world, job, number, shard) == ClaimStatus.HELD:
            yield _commit(t, dice, job, number, shard)


def _commit(t: Twins, dice: Random, job: bytes, number: int, shard: int) -> Call:
    operator = rounds.claim_of(t.world, job, number, shard).operator
    steps = t.world.jobs[job].terms.inner_steps if job in t.world.jobs else 3
    opening = opening_of(job, number, shard, operator, steps)
    base = rounds.round_of(t.world, job, number).base
    if dice.random() < _NONSENSE:
        opening = replace(opening, state_digest=NOTHING)
    if dice.random() < _NONSENSE:
        operator = someone(t, dice)
    if dice.random() < _NONSENSE:
        base = b"\x09" * 32
    return operator, "rounds", "commit", job, number, shard, base, opening


@move
def attest(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.SEALED, RoundStatus.TALLIED)
    yield _attest(t, dice, job, number, dice.choice(OPERATORS) if dice.random() < 0.9 else someone(t, dice))


@move
def attest_all(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.SEALED, RoundStatus.TALLIED)
    split = dice.random() < 0.4
    operators = list(OPERATORS)
    dice.shuffle(operators)
    for operator in operators:
        owner = t.world.operators[operator].owner
        window = 2 if rounds.round_of(t.world, job, number).tallied_at else 1
        spoke = any((v.owner, v.window) == (owner, window) for v in t.world.votes.get((job, number), ()))
        if rounds.share_of(t.world, job, number, owner).commits and not spoke:
            yield _attest(t, dice, job, number, operator, split)


def _attest(t: Twins, dice: Random, job: bytes, number: int, operator: str, split: bool = True) -> Call:
    r = rounds.round_of(t.world, job, number)
    bitmap = r.accepted_map if r.tallied_at else r.committed_map
    if dice.random() < _NONSENSE or (not r.tallied_at and dice.random() < 0.6 * split):
        bitmap = dice.randrange(2 ** len(shards_of(t, job)))
    digest = step_from(r.base, bitmap)
    if dice_of(t.setting, job, number, "the operators lie") % 3 == 0:
        digest = step_from(digest, 1)
    if dice.random() < 0.3 * split:
        digest = dice.choice((NOTHING, step_from(digest, 2)))
    base = r.base if dice.random() >= _NONSENSE else NOTHING
    return operator, "rounds", "attest", job, number, base, bitmap, digest


@move
def a_whole_round(t: Twins, dice: Random) -> Iterator[Call]:
    """Open, claim, commit and attest, as far as it goes."""
    job = some_job(t, dice)
    yield STRANGER, "rounds", "open", job
    number = max(0, jobs.progress_of(t.world, job).opened - 1)
    skipped = dice.random() < 0.2
    for i, shard in enumerate(shards_of(t, job)):
        if not (skipped and i == 0):
            yield OPERATORS[(i + number) % len(OWNERS)], "rounds", "claim", job, number, [shard]
    for shard in shards_of(t, job):
        if rounds.claim_status(t.world, job, number, shard) == ClaimStatus.HELD:
            yield _commit(t, dice, job, number, shard)
    if rounds.status_of(t.world, job, number) == RoundStatus.SEALED:
        yield from attest_all(t, dice)


# -------------------------------------------------------------- anybody


@move
def advance_round(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.DUE)
    yield someone(t, dice), "rounds", "advance", job, number


@move
def draw(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.CLOSED)
    yield someone(t, dice), "rounds", "draw", job, number


@move
def settle(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.CLOSED, RoundStatus.VOID, RoundStatus.ORPHANED)
    shards = list(shards_of(t, job))
    if dice.random() < 0.3:
        shards = [dice.choice((*shards, 99)) for _ in range(dice.randrange(4))]
    yield someone(t, dice), "rounds", "settle", job, number, shards


@move
def upkeep(t: Twins, dice: Random) -> Iterator[Call]:
    """Everything that is due now."""
    for job, number in list(t.world.rounds):
        status = rounds.status_of(t.world, job, number)
        if status == RoundStatus.DUE:
            yield STRANGER, "rounds", "advance", job, number
        if status == RoundStatus.CLOSED:
            if not rounds.draw_of(t.world, job, number).drawn:
                yield STRANGER, "rounds", "draw", job, number
            for shard in chance.bits(rounds.draw_of(t.world, job, number).sampled_map):
                if case_ids.of_claim(job, number, shard) not in t.world.cases:
                    yield STRANGER, "court", "convene", job, number, [shard]
        if status in (RoundStatus.CLOSED, RoundStatus.VOID, RoundStatus.ORPHANED):
            yield STRANGER, "rounds", "settle", job, number, list(shards_of(t, job))
    for case, c in list(t.world.cases.items()):
        if c.phase not in (CasePhase.DONE, CasePhase.NONE):
            court = "checkpoints" if c.kind == CaseKind.CHECKPOINT else "court"
            yield STRANGER, court, "advance", case


@move
def anything(t: Twins, dice: Random) -> Iterator[Call]:
    """Somebody else's next call, made by the wrong one."""
    other = MOVES[dice.choice([name for name in MOVES if name not in ("anything", "upkeep")])]
    for call in other(t, dice):
        yield (someone(t, dice), *call[1:])
        return
