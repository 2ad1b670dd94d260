"""The model that was paid for: the newest checkpoint agreed on chain, verified, measured, as a Hugging Face folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from node.poster.errors import NoCheckpoint
from node.poster.losses import Losses
from protocol.core.audit import Case, CasePhase, Finding, Outcome, SeatState
from protocol.core.claim import ClaimStatus
from protocol.core.job import Job
from protocol.core.round import Round, bits, lineage
from protocol.training.checkpoint import checkpoint_bytes
from protocol.training.layout import parameter_count
from protocol.training.spec import inner_steps, step_tokens
from protocol.transport.errors import WrongDigest
from verifier.jobs import JobReader

CONVICTED = (Outcome.REJECT, Outcome.FRAUD)


@dataclass(frozen=True)
class Fetched:
    """What lies in the folder. `loss`: nats a token on the validation split; `card`: the facts of the model card."""

    digest: str
    number: int
    loss: float
    card: dict[str, Any]


async def fetch_model(reader: JobReader, out: Path) -> Fetched:
    """Fetch, verify, measure and export. A broken download is resumed; bytes with another digest are refused."""
    job, inputs, losses = await reader.refresh(), reader.inputs, Losses(reader)
    number = job.progress.closed
    if number == 0:
        raise NoCheckpoint(
            f"job {job.job_id.hex()[:10]}…: no round has closed yet; follow it with `gradmarket job watch`"
        )
    digest = bytes.fromhex(await reader.market.checkpoint(job.job_id, number))
    path = await _verified(reader, losses, digest, number)
    loss = await losses.measure(digest, number)
    card = await _card(reader, job, digest.hex(), loss)
    tokenizer = await inputs.tokenizer()
    await reader.station.compute.call(
        "export",
        spec=await inputs.spec_path(),
        checkpoint=str(path),
        tokenizer=str(tokenizer) if tokenizer else None,
        out=str(out.absolute()),
        card=card,
    )
    return Fetched(digest.hex(), number, loss, card)


async def _verified(reader: JobReader, losses: Losses, digest: bytes, number: int) -> Path:
    """The checkpoint's path, its bytes hashed again: a copy that rotted on this disk is fetched anew, once."""
    limit = checkpoint_bytes(await reader.inputs.spec())
    await losses.checkpoint(digest, number)
    try:
        reader.station.blobs.read(digest.hex(), limit)
    except WrongDigest:
        await losses.checkpoint(digest, number)
        reader.station.blobs.read(digest.hex(), limit)
    return reader.station.blobs.path(digest.hex())


async def _card(reader: JobReader, job: Job, digest: str, loss: float) -> dict[str, Any]:
    inputs, market = reader.inputs, reader.market
    spec, terms = await inputs.spec(), inputs.terms
    rounds = [await market.round(job.job_id, number) for number in range(job.progress.opened)]
    trained = lineage(rounds, job.progress.closed)
    accepted = [len(bits(round.accepted_map)) for round in trained]
    paid = [sum(claim.status == ClaimStatus.PAID for claim in round.claims) for round in trained]
    tokens = [inner_steps(spec, round.checkpoint - 1) * step_tokens(spec) for round in trained]  # of a claim
    return {
        "job": job.job_id.hex(),
        "chain id": market.connection.chain_id,
        "market contract": market.deployment.address("JobMarket"),
        "job status when fetched": job.status.name.lower(),
        "parameters": parameter_count(spec),
        "rounds": f"{job.progress.closed} of {terms.rounds}",
        "claims in the model": sum(accepted),
        "tokens trained": sum(n * t for n, t in zip(accepted, tokens, strict=True)),
        "verified tokens": sum(n * t for n, t in zip(paid, tokens, strict=True)),
        "claims not settled yet": sum(_undecided(round) for round in trained),
        "convicted shards": [entry for round in trained for entry in _convictions(round)] or "none",
        "validation loss": f"{loss:.6f}",
        "checkpoint sha256": digest,
        "spec sha256": terms.spec_digest.hex(),
        "genesis sha256": terms.genesis_digest.hex(),
        "manifest sha256": spec.data.manifest,
        "validation sha256": (await inputs.manifest()).validation,
    }


def _undecided(round: Round) -> int:
    return sum(claim.is_committed and not claim.is_resolved for claim in round.claims)


def _convictions(round: Round) -> list[dict[str, Any]]:
    """Shards that the court judged against. Their payloads stay in the model; the clip bounds their harm."""
    return [
        {
            "round": round.number,
            "shard": shard,
            "operator": round.claims[shard].operator,
            "verdict": case.outcome.name.lower(),
            "reason": _reason(case),
        }
        for shard, case in sorted(round.cases.items())
        if case.phase == CasePhase.DONE and case.outcome in CONVICTED
    ]


def _reason(case: Case) -> str:
    """The panel's findings in words, with the steps that it named."""
    counts: dict[str, int] = {}
    for seat in case.seats:
        if seat.state == SeatState.REVEALED:
            step = f" at step {seat.step}" if seat.finding == Finding.FRAUD else ""
            told = seat.finding.name.lower().replace("_", " ") + step
            counts[told] = counts.get(told, 0) + 1
    withheld = "; the trace was withheld" if case.withheld else ""
    return ", ".join(f"{count} found {finding}" for finding, count in counts.items()) + withheld
