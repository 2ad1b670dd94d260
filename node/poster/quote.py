"""What a job costs, and who can work on it: exact amounts in wei, before anything is signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from protocol.chain.market import Market
from protocol.core.presets import Preset
from protocol.core.terms import SEAT_LOCK_REWARDS, Terms, compute_reservation, least_bond, sampled_at_most
from protocol.core.units import BPS, format_tokens

ANY_JOB = bytes(32)  # probation is of an owner, whatever the job


@dataclass(frozen=True)
class Quote:
    """Amounts in wei."""

    terms: Terms
    preset: Preset
    deposit: int

    @property
    def reservation(self) -> int:
        """What one round holds back, and the most that it can cost."""
        return compute_reservation(self.terms)

    @property
    def maximum_spend(self) -> int:
        """The contracts never spend more: all rounds at their reservations, and never more than was deposited."""
        return min(self.deposit, self.terms.rounds * self.reservation)

    @property
    def honest_spend(self) -> int:
        """Every claim paid, one seat for each claim that can be sampled."""
        terms = self.terms
        a_round = terms.shards_per_round * terms.reward_per_shard + terms.audit_fee * sampled_at_most(terms)
        return min(self.deposit, terms.rounds * a_round)

    @property
    def worst_refund(self) -> int:
        return self.deposit - self.maximum_spend

    @property
    def funded_rounds(self) -> int:
        """Rounds that the deposit certainly covers; what is not spent in them covers more."""
        return min(self.terms.rounds, self.deposit // self.reservation)

    @property
    def seat_lock(self) -> int:
        """What a seat of this job locks of a ticket."""
        return SEAT_LOCK_REWARDS * self.terms.reward_per_shard

    @property
    def least_bond(self) -> int:
        return least_bond(self.terms.reward_per_shard, self.terms.audit_rate_bps, self.preset.detection_bps)

    @property
    def deterrence(self) -> Fraction:
        """A cheat's expected loss in units of its gain; the contract wants more than 1."""
        caught = Fraction(self.terms.audit_rate_bps * self.preset.detection_bps, BPS * BPS)
        return caught * Fraction(self.terms.reward_per_shard + self.terms.bond_per_shard, self.terms.reward_per_shard)


@dataclass(frozen=True)
class OwnerFacts:
    """An owner with an active operator or a ticket. `ticket`: wei of its largest enrolled one."""

    address: str
    operators: int
    free_stake: int
    ticket: int
    on_probation: bool


@dataclass(frozen=True)
class Rule:
    """What a job asks of owners: how many meet it, who does not and what each of those has, in wei."""

    name: str
    needs: int
    met: int
    failed: tuple[tuple[str, int], ...]


def apply_rules(quote: Quote, owners: Sequence[OwnerFacts]) -> list[Rule]:
    """Each rule over all owners that it concerns."""
    workers = [(owner.address, owner.free_stake) for owner in owners if owner.operators]
    auditors = [(owner.address, owner.ticket) for owner in owners]
    return [
        _rule("claim: free stake", quote.terms.bond_per_shard, workers),
        _rule("sit on panels: ticket", quote.seat_lock, auditors),
    ]


def _rule(name: str, needs: int, have: Sequence[tuple[str, int]]) -> Rule:
    failed = tuple((address, amount) for address, amount in have if amount < needs)
    return Rule(name, needs, len(have) - len(failed), failed)


def find_obstacles(quote: Quote, owners: Sequence[OwnerFacts]) -> Iterator[str]:
    """Why the job would not start, or not go on, on the market as it is."""
    working, sitting = apply_rules(quote, owners)
    if not working.met:
        yield "nobody can claim: no owner of an active operator has the bond as free stake"
    live = sum(owner.ticket > 0 for owner in owners)
    need = quote.preset.slash_panel + 1
    if live < need:
        yield f"no round opens: {live} owners have an enrolled ticket, need {need}"
    elif sitting.met < need:
        yield f"panels may stay empty: {sitting.met} owners have a large enough ticket, a full case needs {need}"
    seasoned = any(not owner.on_probation and owner.free_stake >= quote.terms.bond_per_shard for owner in owners)
    if working.met and not seasoned and quote.terms.probation_slots < quote.terms.min_shards:
        yield (
            f"rounds would be void: every owner is on probation, and {quote.terms.probation_slots} probation slots are "
            f"fewer than min_shards {quote.terms.min_shards}; raise probation_slots"
        )
    if quote.deposit < quote.reservation:
        have, needs = format_tokens(quote.deposit), format_tokens(quote.reservation)
        yield f"no round opens: {have} tokens are there, a round reserves {needs}"


async def read_owners(market: Market) -> list[OwnerFacts]:
    """All owners who could work or judge, from the chain."""
    now = await market.connection.now()
    operators = [operator for operator in await market.operators() if operator.is_active(now)]
    tickets = [t for t in await market.tickets() if t.exit_at == 0 and not t.released]
    found = []
    for address in dict.fromkeys([*(o.owner for o in operators), *(t.owner for t in tickets)]):
        own = [operator.address for operator in operators if operator.owner == address]
        found.append(
            OwnerFacts(
                address=address,
                operators=len(own),
                free_stake=int(await market.call(market.stake_vault.functions.freeOf(address))),
                ticket=max((ticket.amount for ticket in tickets if ticket.owner == address), default=0),
                on_probation=bool((await market.call(market.audit_court.functions.standingOf(ANY_JOB, address)))[0]),
            )
        )
    return found
