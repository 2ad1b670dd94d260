"""`job plan`: a job's cost and chances in plain lines, with the chain where it can be asked and without it else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from node.poster.blobs import check_blobs
from node.poster.jobfile import JobPlan
from node.poster.post import ANY_GENESIS, GAS_TO_POST, choose_deposit
from node.poster.quote import OwnerFacts, Quote, apply_rules, find_obstacles, read_owners
from node.wallet import open_market
from protocol.chain.bindings import Deployment
from protocol.chain.errors import ChainError
from protocol.chain.fees import FeePolicy
from protocol.core.errors import GradmarketError
from protocol.core.presets import Preset, load_preset
from protocol.core.terms import check_terms, sampled_at_most
from protocol.core.units import format_tokens
from protocol.training.checkpoint import checkpoint_bytes
from protocol.training.compress import max_payload_bytes
from protocol.training.data import Manifest, shard_bytes
from protocol.training.layout import claim_flops, parameter_count
from protocol.training.spec import claim_tokens, step_tokens, steps_before
from verifier.station import HomeConfig

NAMED_OWNERS = 4


@dataclass(frozen=True)
class Surroundings:
    """What could be learned of the market; `unchecked` says what could not be, and why."""

    preset: Preset
    owners: Sequence[OwnerFacts] | None
    unchecked: tuple[str, ...]
    gas_price: int = 0  # wei, at most, for the next blocks


async def survey(config: HomeConfig | None, why_not: str = "") -> Surroundings:
    """Ask the chain who is there. Without a configuration or a chain: the dev preset, and nobody known."""
    if config is None:
        return Surroundings(load_preset("dev"), None, (f"the market ({why_not}); the preset dev is assumed",))
    try:
        preset = load_preset(Deployment.load(config.chain.deployment).preset)
    except ChainError as error:
        return Surroundings(load_preset("dev"), None, (f"the market ({error}); the preset dev is assumed",))
    try:
        async with open_market(config) as market:
            gas_price = (await market.connection.head()).base_fee * 2 + FeePolicy().min_tip
            return Surroundings(preset, await read_owners(market), (), gas_price)
    except ChainError as error:
        return Surroundings(preset, None, (f"who can work on it ({error})",))


async def plan_job(job: JobPlan, config: HomeConfig | None, why_not: str = "") -> list[str]:
    """Check the job and describe it. Raises what posting it would raise about its file, spec and terms."""
    around = await survey(config, why_not)
    terms = job.terms(around.preset, ANY_GENESIS)
    check_terms(terms, around.preset)
    quote = Quote(terms, around.preset, choose_deposit(job, Quote(terms, around.preset, 0).reservation))
    unchecked = list(around.unchecked)
    manifest: Manifest | None = None
    try:
        manifest = check_blobs(job.file.blobs, job.spec)
    except GradmarketError as error:
        unchecked.append(f"the data ({error})")
    lines = [*_work(job, quote, manifest), *_money(quote)]
    if around.owners is not None:
        lines.append(_line("gas to post", f"about {format_tokens(GAS_TO_POST * around.gas_price)} coins at most"))
        lines += _people(quote, around.owners)
    return [*lines, *(f"not checked: {line}" for line in unchecked)]


def _line(name: str, value: str) -> str:
    return f"{name:<24} {value}"


def _work(job: JobPlan, quote: Quote, manifest: Manifest | None) -> Iterator[str]:
    spec, terms = job.spec, quote.terms
    claims = terms.rounds * terms.shards_per_round
    payload = max_payload_bytes(spec)
    yield _line("job", f"{spec.name}  spec {job.spec_digest}")
    yield _line("parameters", f"{parameter_count(spec):,}")
    yield _line("claims", f"{terms.rounds} rounds of {terms.shards_per_round} shards, {terms.min_shards} seal a round")
    steps = terms.shards_per_round * steps_before(spec, terms.rounds)  # of all claims
    kind = "a claim of the last phase" if spec.inner.phases else "a claim"
    yield _line("tokens", f"{claim_tokens(spec):,} {kind}, {steps * step_tokens(spec):,} in all")
    yield _line("FLOP", f"{claim_flops(spec):,} {kind}, {steps * (claim_flops(spec) // spec.inner.steps):,} in all")
    yield _line("upload", f"{payload:,} bytes a claim, {terms.shards_per_round * payload:,} a round")
    yield _line("download", f"{checkpoint_bytes(spec):,} bytes a checkpoint" + _shards(manifest))
    if manifest is not None:
        yield _line("data", f"{len(manifest.shards)} shards" + _repetition(claims, len(manifest.shards)))


def _shards(manifest: Manifest | None) -> str:
    return f", {shard_bytes(manifest):,} a shard" if manifest else ""


def _repetition(claims: int, shards: int) -> str:
    return f", each trained {claims / shards:.1f} times on average" if claims > shards else f", {claims} of them used"


def _money(quote: Quote) -> Iterator[str]:
    terms = quote.terms
    yield _line("reward", f"{format_tokens(terms.reward_per_shard)} tokens a shard")
    yield _line("bond", f"{format_tokens(terms.bond_per_shard)} a claim, at least {format_tokens(quote.least_bond)}")
    fee = f"{format_tokens(terms.audit_fee)} a seat, up to {sampled_at_most(terms)} claims of a round are audited"
    yield _line("audit fee", fee)
    yield _line("reservation", f"{format_tokens(quote.reservation)} a round")
    yield _line("deposit", f"{format_tokens(quote.deposit)}, covers {quote.funded_rounds} of {terms.rounds} rounds")
    yield _line("maximum spend", f"{format_tokens(quote.maximum_spend)} (every audit with three paid seats)")
    yield _line("expected spend", f"{format_tokens(quote.honest_spend)} (every claim honest, one seat an audit)")
    yield _line("worst-case refund", format_tokens(quote.worst_refund))
    margin = f"a cheat expects to lose {float(quote.deterrence):.2f} times what it gains; above 1 is needed"
    yield _line("deterrence", margin)
    yield _line(
        "lock of a seat", f"{format_tokens(quote.seat_lock)} of a ticket's {format_tokens(quote.preset.ticket)}"
    )


def _people(quote: Quote, owners: Sequence[OwnerFacts]) -> Iterator[str]:
    yield _line("owners", f"{len(owners)} with an operator or a ticket")
    for rule in apply_rules(quote, owners):
        yield _line(
            f"  can {rule.name.split(':')[0]}", f"{rule.met} ({rule.name.split(': ')[1]} ≥ {format_tokens(rule.needs)})"
        )
        if rule.failed:
            some = ", ".join(f"{address} has {format_tokens(have)}" for address, have in rule.failed[:NAMED_OWNERS])
            more = f", and {len(rule.failed) - NAMED_OWNERS} more" if len(rule.failed) > NAMED_OWNERS else ""
            yield _line("  excluded", f"{len(rule.failed)}: {some}{more}")
    yield _line("  on probation", str(sum(owner.on_probation for owner in owners)))
    for obstacle in find_obstacles(quote, owners):
        yield _line("obstacle", obstacle)
