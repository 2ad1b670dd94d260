"""The validation loss of checkpoints that the chain agreed on, computed from their own bytes."""

from __future__ import annotations

from pathlib import Path

from protocol.chain.errors import ChainError
from protocol.core.errors import GradmarketError
from protocol.transport.errors import Unavailable
from verifier.inputs import JobInputs
from verifier.jobs import JobReader


class Losses:
    """Measures each checkpoint once; remembers it by digest."""

    def __init__(self, reader: JobReader) -> None:
        self._reader = reader
        self._inputs: JobInputs = reader.inputs

    async def is_wanted(self, number: int) -> bool:
        """Whether the spec asks for a measurement of checkpoint `number`: each `evaluation`-th, and the last."""
        every = (await self._inputs.spec()).evaluation
        return number % every == 0 or number == self._inputs.terms.rounds

    async def measure(self, digest: bytes, number: int) -> float:
        """Nats a token on the validation split. Raises what made it impossible."""
        store, key = self._reader.station.intents, f"loss/{digest.hex()}"
        known: float | None = await store.get(key)
        if known is None:
            path = await self.checkpoint(digest, number)
            known = float(
                await self._reader.station.compute.call(
                    "evaluate",
                    spec=await self._inputs.spec_path(),
                    checkpoint=str(path),
                    manifest=await self._inputs.manifest_path(),
                    data=str(await self._inputs.validation()),
                )
            )
            await store.note(key, known)
        return known

    async def try_measure(self, digest: bytes, number: int) -> tuple[float | None, str]:
        """The loss, or why there is none; neither when none is wanted."""
        try:
            if not await self.is_wanted(number):
                return None, ""
            return await self.measure(digest, number), ""
        except ChainError:
            raise  # says nothing about the checkpoint: whoever asked asks again
        except GradmarketError as error:
            return None, str(error)

    async def checkpoint(self, digest: bytes, number: int) -> Path:
        """The bytes that hash to `digest`: from whoever has them, else by the exact steps from an earlier one."""
        if digest == self._inputs.terms.genesis_digest:
            return await self._inputs.genesis()
        try:
            return await self._inputs.checkpoint(digest)
        except Unavailable:
            return await self._inputs.recompute(digest, (await self._reader.refresh()).progress.opened)
