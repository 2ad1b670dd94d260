"""Re-executing one claim from public artefacts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protocol.core.round import Round
from protocol.runtime.process import ComputeProcess
from protocol.transport.errors import Unavailable
from verifier.errors import InputsUnavailable
from verifier.inputs import JobInputs


async def run_claim(
    inputs: JobInputs, compute: ComputeProcess, round: Round, shard: int, folder: Path, method: str = "replay"
) -> dict[str, Any]:
    """Run a claim into `folder`; the digests of its result. Raises InputsUnavailable when base or data are not had."""
    try:
        base, data = await inputs.base(round), await inputs.shard(round.number, shard)
    except Unavailable as error:
        raise InputsUnavailable(str(error)) from None
    result: dict[str, Any] = await compute.call(
        method,
        spec=await inputs.spec_path(),
        base=str(base),
        manifest=await inputs.manifest_path(),
        data=str(data),
        job=inputs.job_id.hex(),
        round=round.number,
        shard=shard,
        out=str(folder),
    )
    return result
