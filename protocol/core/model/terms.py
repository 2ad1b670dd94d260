"""Which terms a job may have: complete, bounded, and such that cheating does not pay."""

from __future__ import annotations

from protocol.core.model.chance import share_of
from protocol.core.model.records import NOTHING, Terms
from protocol.core.model.refusals import (
    AuditFeeTooLarge,
    AuditFeeTooSmall,
    AuditRateTooLarge,
    BondTooSmall,
    DemandTooShort,
    InnerStepsOutOfRange,
    MinShardsOutOfRange,
    ProbationSlotsOutOfRange,
    RewardTooLarge,
    ShardsOutOfRange,
    ToleranceOutOfRange,
    UnknownToleranceClass,
    WindowTooLong,
    WindowTooShort,
    ZeroDigest,
    ZeroReward,
    ZeroRounds,
    ZeroWindow,
)
from protocol.core.presets import Rules

BPS = 10_000
SEATS_RESERVED = 3  # fees held back for each claim that can be sampled
SEAT_LOCK_REWARDS = 40  # of a ticket's lock, in rewards, behind a seat
_MOST_WINDOW = 30 * 24 * 3600
_MOST_FEE_REWARDS = 10
_MOST_INNER_STEPS = 1024
_LEAST_TOLERANCE = {0: 5_000, 1: 2_000_000}
_WIDEST_TOLERANCE = 50_000_000


def sample_slots(t: Terms) -> int:
    """Claims of a round that can be sampled: the share of all, and every one on probation."""
    return min(t.shards, share_of(t.shards, t.audit_rate_bps) + t.probation_slots)


def reservation(t: Terms) -> int:
    """The most that a round can cost: every reward, and three fees for each claim that can be sampled."""
    return t.shards * t.reward + SEATS_RESERVED * t.fee * sample_slots(t)


def check(t: Terms, p: Rules) -> None:
    """Refuse terms with the first rule that they break."""
    if NOTHING in (t.spec_digest, t.genesis_digest):
        raise ZeroDigest
    if t.rounds == 0:
        raise ZeroRounds
    if t.reward == 0:
        raise ZeroReward
    most_reward = p.ticket // SEAT_LOCK_REWARDS  # every ticket fits a seat of every job
    if t.reward > most_reward:
        raise RewardTooLarge(t.reward, most_reward)
    if not 3 <= t.inner_steps <= _MOST_INNER_STEPS:
        raise InnerStepsOutOfRange(t.inner_steps, 3, _MOST_INNER_STEPS)
    if not 1 <= t.shards <= 256:
        raise ShardsOutOfRange(t.shards, 1, 256)
    most = max(1, t.shards // 2)
    if not 1 <= t.min_shards <= most:
        raise MinShardsOutOfRange(t.min_shards, 1, most)
    if not 1 <= t.probation_slots <= t.shards:
        raise ProbationSlotsOutOfRange(t.probation_slots, 1, t.shards)
    if t.audit_rate_bps > BPS:
        raise AuditRateTooLarge(t.audit_rate_bps, BPS)
    if t.fee < t.reward:
        raise AuditFeeTooSmall(t.fee, t.reward)
    if t.fee > _MOST_FEE_REWARDS * t.reward:
        raise AuditFeeTooLarge(t.fee, _MOST_FEE_REWARDS * t.reward)
    _check_tolerance(t)
    _check_windows(t, p)
    _check_deterrence(t, p)


def _check_tolerance(t: Terms) -> None:
    if t.tolerance_class not in _LEAST_TOLERANCE:
        raise UnknownToleranceClass(t.tolerance_class)
    least = _LEAST_TOLERANCE[t.tolerance_class]
    if not least <= t.loss_tolerance <= _WIDEST_TOLERANCE:
        raise ToleranceOutOfRange(t.loss_tolerance, least, _WIDEST_TOLERANCE)


def _check_windows(t: Terms, p: Rules) -> None:
    w = t.windows
    for window in (w.train, w.round, w.attest, w.challenge, w.audit_commit, w.audit_reveal, w.demand):
        if window == 0:
            raise ZeroWindow
        if window < p.min_window:
            raise WindowTooShort(window, p.min_window)
        if window > _MOST_WINDOW:
            raise WindowTooLong(window, _MOST_WINDOW)
    if w.audit_commit < w.train:  # an audit has at least the time of the work itself
        raise WindowTooShort(w.audit_commit, w.train)
    if w.challenge < p.min_demand:  # silence decides in it: about a doubt, a demand, an appeal
        raise WindowTooShort(w.challenge, p.min_demand)
    if w.audit_reveal < p.min_demand:
        raise WindowTooShort(w.audit_reveal, p.min_demand)
    if w.demand < p.min_demand:
        raise DemandTooShort(w.demand, p.min_demand)


def _check_deterrence(t: Terms, p: Rules) -> None:
    """audit rate x detection x (reward + bond) > reward: a cheat loses more than it gains."""
    rate = t.audit_rate_bps * p.detection_bps
    if rate * (t.reward + t.bond) > t.reward * BPS * BPS:
        return
    need = 2**256 - 1 if rate == 0 else t.reward * BPS * BPS // rate + 1 - t.reward
    raise BondTooSmall(t.bond, need)
