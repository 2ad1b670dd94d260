"""Re-executing one claim from public artefacts, and comparing the own run with what its operator committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protocol.core.commitment import Opening
from protocol.core.round import Round
from protocol.runtime.errors import ChildFailed
from protocol.runtime.process import ComputeProcess
from protocol.training.errors import TrainingError
from protocol.transport.errors import BlobTooLarge, Unavailable
from verifier.errors import BaseUnavailable, InputsUnavailable, JobRefused
from verifier.inputs import JobInputs

BAD_INPUTS = frozenset({"SpecError", "DataError", "CheckpointError"})  # what the compute process says of a job's files


async def run_claim(
    inputs: JobInputs,
    compute: ComputeProcess,
    round: Round,
    shard: int,
    folder: Path,
    method: str = "replay",
    timeout: float | None = None,
) -> dict[str, Any]:
    """Run a claim into `folder`; the digests of its result.

    Raises InputsUnavailable when spec, data or genesis are not had or are none: the poster's fault, nobody else's;
    BaseUnavailable for a later base: its attesters' fault. ChildFailed, ChildDied: a fault of the run.
    """
    try:
        data = await inputs.shard(round.number, shard)
    except (Unavailable, BlobTooLarge, TrainingError) as error:
        raise InputsUnavailable(str(error)) from None
    try:
        base = await inputs.base(round)
    except (Unavailable, BlobTooLarge, TrainingError, JobRefused, InputsUnavailable) as error:
        is_genesis = round.base == inputs.terms.genesis_digest
        raise (InputsUnavailable if is_genesis else BaseUnavailable)(str(error)) from None
    try:
        result: dict[str, Any] = await compute.call(
            method,
            timeout=timeout,
            spec=await inputs.spec_path(),
            base=str(base),
            manifest=await inputs.manifest_path(),
            data=str(data),
            job=inputs.job_id.hex(),
            round=round.number,
            shard=shard,
            out=str(folder),
        )
    except ChildFailed as error:
        if error.kind in BAD_INPUTS:
            raise InputsUnavailable(error.message) from None
        raise
    return result


async def compare_run(
    inputs: JobInputs,
    compute: ComputeProcess,
    round: Round,
    own: Path,
    opening: Opening,
    payload: Path,
    trace: Path | None = None,
    end_state: Path | None = None,
) -> dict[str, Any]:
    """The judgement (`verifier.compute.judge`) over the run in `own`. `trace`, `end_state`: None where not opened."""
    judgement: dict[str, Any] = await compute.call(
        "judge",
        spec=await inputs.spec_path(),
        base=str(await inputs.base(round)),
        own=str(own),
        committed=committed_digests(opening),
        payload=str(payload),
        trace=str(trace) if trace else None,
        end_state=str(end_state) if end_state else None,
    )
    return judgement


def committed_digests(opening: Opening) -> dict[str, str]:
    """What a commitment binds, by the names that a result has (`verifier.compute.save_result`)."""
    return {
        "payload": opening.payload_digest.hex(),
        "trace": opening.trace_root.hex(),
        "state": opening.state_digest.hex(),
    }
