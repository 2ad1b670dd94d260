"""The outer step of a closed or sealed round: the same for who attests to it, judges it on a panel, or doubts it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from protocol.core.operator import Operator
from protocol.core.round import Round
from protocol.runtime.process import ComputeProcess
from protocol.transport.errors import BlobTooLarge, Unavailable
from verifier.inputs import JobInputs

PATIENCE = 3  # a payload that cannot be fetched in this part of the time is done without


@dataclass(frozen=True)
class Payloads:
    """What was found of some shards' payloads: those that count, and those that were had and do not decode."""

    usable: dict[int, Path]
    bad: dict[int, str]

    @property
    def bitmap(self) -> int:
        return sum(1 << shard for shard in self.usable)


class PayloadReader:
    """`operator`: an entry of the registry by its key, to ask a payload's own operator first."""

    def __init__(self, compute: ComputeProcess, operator: Callable[[str], Operator | None]) -> None:
        self._compute, self._operator = compute, operator
        self._log = structlog.get_logger("payloads")

    async def read(self, inputs: JobInputs, round: Round, shards: list[int], seconds: float) -> Payloads:
        """The payloads of `shards` that can be had in a third of `seconds` and decode to finite tensors of this job."""
        openings = await inputs.openings_of(round)
        found: dict[int, Path] = {}

        async def fetch(shard: int) -> None:
            entry = self._operator(round.claims[shard].operator)
            first = entry.endpoint if entry else None
            try:
                found[shard] = await inputs.payload(openings[shard], first, seconds / PATIENCE)
            except (Unavailable, BlobTooLarge, KeyError) as error:
                self._log.warning("payload_unavailable", round=round.number, shard=shard, reason=str(error))

        await asyncio.gather(*(fetch(shard) for shard in shards))
        paths = {str(shard): str(path) for shard, path in found.items()}
        refused = await self._compute.call("bad_payloads", spec=await inputs.spec_path(), payloads=paths)
        bad = {int(shard): str(reason) for shard, reason in refused.items()}
        for shard, reason in bad.items():
            self._log.warning("payload_refused", round=round.number, shard=shard, reason=reason)
        return Payloads({shard: path for shard, path in found.items() if shard not in bad}, bad)
