"""A job's terms, what they cost and which are refused (twin of Types.sol and TermsLib.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from protocol.core.errors import GradmarketError
from protocol.core.presets import Preset
from protocol.core.units import BPS, format_tokens

SEATS_RESERVED = 3  # audit fees held for each sampled claim
SEAT_LOCK_REWARDS = 40  # rewards of a ticket's lock that a seat occupies
CHALLENGE_FEES = 7
PANEL_APPEAL_FEES = 14  # of an appeal from the slash panel; from three seats it is CHALLENGE_FEES
DEMAND_FEES = 3
MOST_FEE_REWARDS = 10
MOST_INNER_STEPS = 1024  # a demanded trace is opened in one transaction
MOST_WINDOW = 30 * 24 * 3600  # seconds
LOSS_TOLERANCE = {"fp32": 5_000, "bf16": 2_000_000}  # units of 1e-9
TOLERANCE_CLASSES = ("fp32", "bf16")


class TermsError(GradmarketError):
    """Terms that the contracts would refuse."""


@dataclass(frozen=True)
class Windows:
    """Upper bounds in seconds of block time."""

    train: int
    round: int
    attest: int
    challenge: int
    audit_commit: int
    audit_reveal: int
    demand: int


@dataclass(frozen=True)
class Terms:
    """In the order of Types.sol; amounts in wei."""

    spec_digest: bytes
    genesis_digest: bytes
    reward_per_shard: int
    bond_per_shard: int
    rounds: int
    inner_steps: int
    audit_fee: int
    audit_rate_bps: int
    probation_slots: int
    shards_per_round: int
    min_shards: int
    tolerance_class: int
    loss_tolerance: int
    windows: Windows

    def as_tuple(self) -> tuple[Any, ...]:
        """The argument of JobMarket.post."""
        return astuple(self)

    @classmethod
    def from_tuple(cls, values: Any) -> Terms:
        """Read the value of JobMarket.termsOf."""
        fields: list[Any] = [*values]
        fields[-1] = Windows(*fields[-1])
        return cls(*fields)


def sampled_at_most(terms: Terms) -> int:
    """How many claims of a round can be drawn."""
    share = -(-terms.shards_per_round * terms.audit_rate_bps // BPS)
    return min(terms.shards_per_round, share + terms.probation_slots)


def compute_reservation(terms: Terms) -> int:
    """Wei that one round holds back: every reward, and three fees for each claim that can be sampled."""
    rewards = terms.shards_per_round * terms.reward_per_shard
    return rewards + SEATS_RESERVED * terms.audit_fee * sampled_at_most(terms)


def least_bond(reward: int, audit_rate_bps: int, detection_bps: int) -> int:
    """The smallest bond in wei under which cheating does not pay. Raises TermsError at an audit rate of zero."""
    rate = audit_rate_bps * detection_bps
    if rate == 0:
        raise TermsError("audit rate 0: no bond deters when nothing is audited; expected at least 1 bps")
    return max(0, reward * BPS * BPS // rate + 1 - reward)


def check_terms(terms: Terms, preset: Preset) -> None:
    """Refuse what the contracts would refuse, before anything is signed."""
    n = terms.shards_per_round
    for name in ("spec_digest", "genesis_digest"):
        if not any(getattr(terms, name)):
            raise TermsError(f"{name}: have 32 zero bytes, expected a sha256")
    _check_range("rounds", terms.rounds, 1, 2**32 - 1)
    _check_range("reward_per_shard", terms.reward_per_shard, 1, 2**96 - 1)
    most = preset.ticket // SEAT_LOCK_REWARDS
    if terms.reward_per_shard > most:
        raise TermsError(
            f"reward_per_shard: have {format_tokens(terms.reward_per_shard)}, expected at most {format_tokens(most)}: "
            f"a seat locks {SEAT_LOCK_REWARDS} rewards and every ticket must fit; post smaller shards or a lower price"
        )
    _check_range("bond_per_shard", terms.bond_per_shard, 0, 2**96 - 1)
    _check_range("inner_steps", terms.inner_steps, 3, MOST_INNER_STEPS)
    _check_range("shards_per_round", n, 1, 256)
    _check_range("min_shards", terms.min_shards, 1, max(1, n // 2))
    _check_range("probation_slots", terms.probation_slots, 1, n)
    _check_range("audit_rate_bps", terms.audit_rate_bps, 0, BPS)
    _check_range("audit_fee", terms.audit_fee, terms.reward_per_shard, MOST_FEE_REWARDS * terms.reward_per_shard)
    _check_range("tolerance_class", terms.tolerance_class, 0, 1)
    least = LOSS_TOLERANCE[TOLERANCE_CLASSES[terms.tolerance_class]]
    _check_range("loss_tolerance", terms.loss_tolerance, least, 50_000_000)
    windows = terms.windows
    least_of = dict.fromkeys(("challenge", "audit_reveal", "demand"), preset.min_demand)
    least_of["audit_commit"] = windows.train
    for name, value in vars(windows).items():
        _check_range(f"windows.{name}", value, max(preset.min_window, least_of.get(name, 1)), MOST_WINDOW)
    need = least_bond(terms.reward_per_shard, terms.audit_rate_bps, preset.detection_bps)
    if terms.bond_per_shard < need:
        raise TermsError(
            f"bond_per_shard: have {format_tokens(terms.bond_per_shard)}, need {format_tokens(need)}: "
            "a smaller bond makes cheating pay; raise the bond or the audit rate"
        )


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise TermsError(f"{name}: have {value}, expected {least} to {most}")
