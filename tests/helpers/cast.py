"""Who plays in a market of twins, what they know, and the terms they play under."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from eth_account import Account

from protocol.core.commitment import Opening
from protocol.core.delegation import Domain, registration_digest
from protocol.core.encoding import keccak
from protocol.core.model.records import NOTHING, Terms
from protocol.core.model.world import World
from protocol.core.operator import FOREVER as NEVER
from protocol.core.operator import Scope
from protocol.core.presets import Rules
from protocol.core.terms import Windows
from protocol.core.trace import TraceRow, trace_root
from tests.helpers.observed import ENDPOINT
from tests.helpers.twins import STRANGER, Twins

TOKEN = 10**18
POSTER = "0x" + "a1" * 20
OWNERS = tuple("0x" + f"{0x10 + i:02x}" * 20 for i in range(8))
KEYS = tuple(keccak(f"operator {i}".encode()) for i in range(9))
OPERATORS = tuple(str(Account.from_key(key).address).lower() for key in KEYS)
PAYOUTS = tuple("0x" + f"{0x90 + i:02x}" * 20 for i in range(9))
SALT = keccak(b"salt")
FOREVER = 2**256 - 1

SMALL = Rules(3, 2, 5, 3, 6_400, 1, 600, 60, 10, 1, 40 * TOKEN + 280, False)
TRUSTING = replace(SMALL, probation_audits=0, slash_panel=4, slash_needed=3, appeal_panel=6, appeal_needed=4)
CALIBRATED = replace(TRUSTING, calibrated=True, slash_panel=5, slash_needed=4, appeal_panel=7, appeal_needed=5)
PRESETS = (SMALL, TRUSTING, CALIBRATED)

# Odd amounts, so that every division leaves something over.
ALL_AUDITED = Terms(
    spec_digest=keccak(b"spec"),
    genesis_digest=keccak(b"genesis"),
    reward=TOKEN + 7,
    bond=25 * TOKEN + 3,
    rounds=3,
    inner_steps=4,
    fee=TOKEN * 11 // 10 + 1,
    audit_rate_bps=10_000,
    probation_slots=4,
    shards=4,
    min_shards=2,
    tolerance_class=0,
    loss_tolerance=5_000,
    windows=Windows(train=40, round=60, attest=20, challenge=30, audit_commit=40, audit_reveal=20, demand=10),
)
FEW_AUDITED = replace(ALL_AUDITED, audit_rate_bps=2_500, shards=5, probation_slots=2, inner_steps=3)
DEAR = replace(FEW_AUDITED, fee=10 * ALL_AUDITED.reward, min_shards=1, rounds=2)
TERMS = (FEW_AUDITED, ALL_AUDITED, DEAR)


def settle_in(t: Twins) -> None:
    """Owners with stake, operators and tickets; one of them has two operators. A poster with money."""
    t.accounts = [POSTER, STRANGER, *OWNERS, *PAYOUTS]
    t.names |= {POSTER: "poster", STRANGER: "stranger"}
    for kind, accounts in (("owner", OWNERS), ("operator", OPERATORS), ("payout", PAYOUTS)):
        t.names |= {account: f"{kind}{i}" for i, account in enumerate(accounts)}
    for account in (POSTER, *OWNERS):
        t.act((account, "token", "mint", account, 10_000 * TOKEN), compare=False)
        t.act((account, "token", "approve", t.world.site.vault, FOREVER), compare=False)
    t.act((POSTER, "token", "approve", t.world.site.ledger, FOREVER), compare=False)
    for i, owner in enumerate((*OWNERS, OWNERS[0])):
        t.act((owner, "vault", "deposit", owner, 300 * TOKEN), compare=False)
        t.act((owner, "registry", "register", *registration(i)), compare=False)
    for i, owner in enumerate(OWNERS):
        t.act((owner, "tickets", "enroll", OPERATORS[i], 2 + i % 2), compare=False)
    t.compare()


def registration(i: int, scopes: int = Scope.ALL, expiry: int = NEVER) -> tuple[Any, ...]:
    """What `register` is called with: the operator consents to whoever calls, under its next nonce."""
    operator, payout = OPERATORS[i], PAYOUTS[i]

    def consent(w: World, owner: str) -> bytes:
        domain, nonce = Domain(w.site.chain_id, w.site.registry), w.nonces.get(operator, 0)
        return _sign(i, registration_digest(domain, owner, operator, payout, nonce, FOREVER))

    return operator, payout, scopes, expiry, ENDPOINT, NOTHING, NOTHING, FOREVER, consent


@cache
def _sign(i: int, digest: bytes) -> bytes:
    return bytes(Account.unsafe_sign_hash(digest, KEYS[i]).signature)


def dice_of(*words: bytes | int | str) -> int:
    """A number that always belongs to these words: what somebody decided once."""
    return int.from_bytes(keccak("|".join(str(word) for word in words).encode()))


@cache
def trace(job: bytes, number: int, shard: int, steps: int, deviation: int = 0) -> tuple[TraceRow, ...]:
    """The trace of a claim, with every loss raised by `deviation` units of 1e-9."""
    rows = []
    for step in range(1, steps + 1):
        sketch = keccak(b"sketch" + dice_of(job, number, shard, step).to_bytes(32))
        rows.append(TraceRow(step, 2 * 10**9 + sketch[0] + deviation, sketch[1], sketch, bytes(32)))
    return tuple(rows)


def deviation_of(job: bytes, number: int, shard: int, operator: str) -> int:
    """What an operator committed to: one in five trained on something else."""
    return 10**7 if dice_of(job, number, shard, operator) % 5 == 0 else 0


@cache
def opening_of(job: bytes, number: int, shard: int, operator: str, steps: int) -> Opening:
    """What an operator's commitment hides."""
    rows = trace(job, number, shard, steps, deviation_of(job, number, shard, operator))
    word = keccak(f"{number} {shard} {operator}".encode())
    return Opening(keccak(b"payload" + word), trace_root(rows), keccak(b"state" + word))


def step_from(base: bytes, bitmap: int) -> bytes:
    """The checkpoint that really follows."""
    return keccak(base + bitmap.to_bytes(32))
