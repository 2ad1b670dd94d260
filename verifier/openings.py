"""What commitments hide, as the operators published it when they committed. Each is checked against the chain."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from protocol.chain.follower import CursorStore, Follower, Rollback
from protocol.chain.market import Market
from protocol.core.claim import Claim
from protocol.core.commitment import Opening, commitment
from protocol.core.round import Round


class Memory(Protocol):
    """Durable key to JSON value (protocol.store.intents)."""

    async def note(self, key: str, value: Any) -> None: ...

    async def get(self, key: str) -> Any: ...


class Openings:
    """Reads the Committed events on demand: only when a commitment's opening is not known yet."""

    def __init__(self, market: Market, memory: Memory, cursors: CursorStore) -> None:
        self._market, self._memory = market, memory
        self._reading = asyncio.Lock()
        contracts = {"RoundBook": market.round_book}
        self._follower = Follower(market.connection, contracts, market.deployment.block, cursors, name="openings")

    async def of_round(self, job_id: bytes, round: Round) -> dict[int, Opening]:
        """The openings of all commitments of a round, by shard; a provider that lags leaves some out."""
        wanted = [claim for claim in round.claims if claim.is_committed]
        found = await self._known(job_id, round, wanted)
        if len(found) < len(wanted):
            await self._catch_up()
            found = await self._known(job_id, round, wanted)
        return found

    async def of_claim(self, job_id: bytes, round: Round, shard: int) -> Opening | None:
        return (await self.of_round(job_id, round)).get(shard)

    async def _known(self, job_id: bytes, round: Round, wanted: list[Claim]) -> dict[int, Opening]:
        found = {}
        for claim in wanted:
            entry = await self._memory.get(_key(job_id, round.number, claim.shard, claim.operator))
            if entry is None:
                continue
            opening = Opening(*(bytes.fromhex(part) for part in entry))
            if self._opens(job_id, round, claim, opening):
                found[claim.shard] = opening
        return found

    def _opens(self, job_id: bytes, round: Round, claim: Claim, opening: Opening) -> bool:
        """An event of an abandoned fork opens nothing: the commitment on chain decides."""
        made = commitment(
            self._market.connection.chain_id,
            self._market.deployment.address("RoundBook"),
            job_id,
            round.number,
            claim.shard,
            claim.operator,
            round.base,
            opening.payload_digest,
            opening.trace_root,
            opening.state_digest,
        )
        return made == claim.commitment

    async def _catch_up(self) -> None:
        """One at a time: whoever polls while another has the batch in hand would find nothing and believe it."""
        async with self._reading:
            await self._read_on()

    async def _read_on(self) -> None:
        while batch := await self._follower.poll():
            for event in batch:
                if isinstance(event, Rollback) or event.name != "Committed":
                    continue
                args = event.args
                key = _key(args["jobId"], args["round"], args["shard"], args["operator"])
                parts = [bytes(args[name]).hex() for name in ("payloadDigest", "traceRoot", "stateDigest")]
                await self._memory.note(key, parts)
            await self._follower.acknowledge()


def _key(job_id: bytes, round: int, shard: int, operator: str) -> str:
    return f"opening/{job_id.hex()}/{round}/{shard}/{operator}"
