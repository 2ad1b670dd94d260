"""Re-executing one past claim from what everybody can have: no key, no stake, no transaction.

An offline check has less than a panel: the operator's end state is never public, and its trace only where it was
opened on chain. What that leaves open is said, not guessed.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from protocol.core.claim import Claim
from protocol.core.commitment import Opening, case_id
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import TOLERANCE_CLASSES
from protocol.core.trace import TraceRow, encode_trace, trace_root
from protocol.training.data import shard_digest
from protocol.transport.errors import BlobTooLarge, Unavailable
from verifier.errors import InputsUnavailable, VerifierError
from verifier.jobs import JobReader
from verifier.judge import Verdict, conclude
from verifier.replay import committed_digests, compare_run, run_claim


@dataclass(frozen=True)
class Check:
    """`tests`: name, value, accept line, fraud line and zone of each that could be run; `notes`: what it rests on."""

    job: str
    round: int
    shard: int
    operator: str
    verdict: Verdict
    step: int = 0
    is_trace_open: bool = False
    tests: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """JSON; tests beyond every line have the value null, as JSON knows no infinity."""
        return msgspec.json.encode({**asdict(self), "verdict": self.verdict.name.lower()})


class NoSuchClaim(VerifierError):
    """A round or shard that the job does not have."""


async def check_claim(reader: JobReader, number: int, shard: int, keep: Path | None = None) -> Check:
    """Fetch, re-execute, compare. `keep`: a folder for the evidence. Raises NoSuchClaim, JobRefused, chain errors."""
    round, claim = await _find(reader, number, shard)
    check = Check(reader.job_id.hex(), number, shard, claim.operator, Verdict.UNDECIDED)
    if not claim.is_committed:
        return _ended(check, Verdict.UNDECIDED, "nothing was committed for this shard: there is nothing to compare")
    opening = (await reader.inputs.openings_of(round)).get(shard)
    if opening is None:
        return _ended(check, Verdict.UNDECIDED, "the RPC node does not show what was committed; ask another one")
    folder = reader.station.home / "runs" / secrets.token_hex(8)
    try:
        payload = await reader.inputs.payload(opening, await _endpoint(reader, claim))
        own = await run_claim(reader.inputs, reader.station.compute, round, shard, folder)
        check = await _compare(reader, check, round, opening, payload, folder, own)
        if keep is not None:
            await asyncio.to_thread(_keep, reader, check, folder, keep)
    except (Unavailable, BlobTooLarge) as error:
        return _ended(check, Verdict.UNAVAILABLE, f"the payload cannot be had: {error}")
    except InputsUnavailable as error:
        return _ended(check, Verdict.UNAVAILABLE, f"the inputs cannot be had: {error}")
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return check


def render(check: Check) -> list[str]:
    """The check as lines for a person."""
    lines = [f"job {check.job[:10]}…  round {check.round}  shard {check.shard}  operator {check.operator}"]
    if check.tests:
        lines.append(f"  {'test':<24} {'value':>12} {'accept ≤':>12} {'fraud >':>12}  zone")
    for test in check.tests:
        numbers = " ".join(f"{test[name]:>12.4g}" for name in ("value", "accept", "fraud"))
        lines.append(f"  {test['name']:<24} {numbers}  {test['zone']}")
    step = f" at step {check.step}" if check.step else ""
    return [*lines, *(f"  {note}" for note in check.notes), f"verdict: {check.verdict.name.lower()}{step}"]


async def _find(reader: JobReader, number: int, shard: int) -> tuple[Round, Claim]:
    round = await reader.market.round(reader.job_id, number)
    where = f"job {reader.job_id.hex()[:10]}…"
    if round.status == RoundStatus.NONE:
        opened = (await reader.refresh()).progress.opened
        raise NoSuchClaim(f"{where}: it has no round {number}; {opened} were opened, counted from 0")
    if not 0 <= shard < len(round.claims):
        raise NoSuchClaim(f"{where}: round {number} has no shard {shard}; expected 0 to {len(round.claims) - 1}")
    return round, round.claims[shard]


async def _endpoint(reader: JobReader, claim: Claim) -> str | None:
    """Where the claim's operator was last reached, though it may be revoked by now."""
    return (await reader.market.operator(claim.operator)).endpoint or None


async def _compare(
    reader: JobReader, check: Check, round: Round, opening: Opening, payload: Path, folder: Path, own: Mapping[str, Any]
) -> Check:
    case = round.cases.get(check.shard)
    rows = await _public_rows(reader, round, check.shard, opening)
    trace = folder / "opened.json"
    if rows is not None:
        await asyncio.to_thread(trace.write_bytes, encode_trace(rows))
    judgement = await compare_run(
        reader.inputs, reader.station.compute, round, folder, opening, payload, trace if rows is not None else None
    )
    committed = committed_digests(opening)
    verdict, notes = conclude(
        judgement["finding"],
        judgement["tests"],
        is_open=rows is not None,
        is_withheld=case is not None and case.withheld,
        is_equal=all(own[name] == digest for name, digest in committed.items()),
        is_bf16=TOLERANCE_CLASSES[reader.inputs.terms.tolerance_class] == "bf16",
    )
    return replace(
        check,
        verdict=verdict,
        step=judgement["step"] if verdict == Verdict.FRAUD else 0,
        is_trace_open=rows is not None,
        tests=judgement["tests"],
        notes=notes,
        digests={**await _digests(reader, round, check.shard), **committed},
        own=dict(own),
    )


async def _digests(reader: JobReader, round: Round, shard: int) -> dict[str, str]:
    """The names of the public inputs."""
    manifest, terms = await reader.inputs.manifest(), reader.inputs.terms
    return {
        "spec": terms.spec_digest.hex(),
        "manifest": (await reader.inputs.spec()).data.manifest,
        "base": round.base.hex(),
        "shard": shard_digest(manifest, round.number, shard, terms.shards_per_round),
    }


async def _public_rows(reader: JobReader, round: Round, shard: int, opening: Opening) -> list[TraceRow] | None:
    """The operator's rows if they were opened on chain; the commitment decides whether they are its rows."""
    case = round.cases.get(shard)
    if case is None or not case.opened:
        return None
    rows = await reader.market.opened_trace(case_id(reader.job_id, round.number, shard))
    return rows if rows and trace_root(rows) == opening.trace_root else None


def _keep(reader: JobReader, check: Check, folder: Path, out: Path) -> None:
    """The evidence: every public input under its sha256 (`job seed` serves such a folder), the own run, the verdict."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("spec", "manifest", "base", "shard", "payload"):
        digest = check.digests[name]
        shutil.copyfile(reader.station.blobs.path(digest), out / digest)
    shutil.copytree(folder, out / "own", dirs_exist_ok=True)
    (out / "verdict.json").write_bytes(msgspec.json.format(check.encode(), indent=2) + b"\n")


def _ended(check: Check, verdict: Verdict, why: str) -> Check:
    return replace(check, verdict=verdict, notes=[why])
