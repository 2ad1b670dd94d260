"""Where a job's tokens are, to the wei, from three sources that must agree.

The ledger says what is left (`remaining`) and what open rounds hold (`reserved`); the market says what came in and went
back (`funded`, `refunded`); the round book's events say what settled rounds gave back, and so what they `spent`.
A case's pot is not counted: what lies there for a while is auditors' stake, never the job's money.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from node.poster.errors import BooksDisagree
from node.poster.views import View
from protocol.chain.follower import CursorStore, Follower, Rollback
from protocol.chain.market import Market
from protocol.core.commitment import round_pot
from protocol.core.job import Progress


@dataclass(frozen=True)
class Money:
    """Wei at one block: spent + reserved + remaining + refunded = funded."""

    block: int
    funded: int
    spent: int
    reserved: int
    remaining: int
    refunded: int

    def check(self, job_id: bytes) -> None:
        """Raise BooksDisagree unless every wei is accounted for."""
        found = self.spent + self.reserved + self.remaining + self.refunded
        if found != self.funded:
            raise BooksDisagree(
                f"job {job_id.hex()[:10]}… at block {self.block}: funded {self.funded} wei, found {found} "
                f"({self.spent} spent, {self.reserved} reserved, {self.remaining} remaining, {self.refunded} refunded)"
            )


class Memory(Protocol):
    """Durable key to JSON value (protocol.store.intents)."""

    async def note(self, key: str, value: Any) -> None: ...

    async def under(self, prefix: str) -> dict[str, Any]: ...

    async def forget(self, key: str) -> None: ...


class Books:
    """Reads jobs' money; remembers what settled rounds gave back."""

    def __init__(self, market: Market, memory: Memory, cursors: CursorStore) -> None:
        self._market, self._memory = market, memory
        contracts = {"RoundBook": market.round_book}
        self._follower = Follower(market.connection, contracts, market.deployment.block, cursors, name="books")

    async def read(self, job_id: bytes) -> Money:
        """The job's money at the newest block whose events are known."""
        await self._catch_up()
        block = self._follower.next_block - 1
        market = self._market

        async def at(function: Any) -> Any:
            return await market.call(View(function, block=block))

        progress = Progress(*await at(market.round_book.functions.progressOf(job_id)))
        funded, refunded = await at(market.job_market.functions.totalsOf(job_id))
        remaining = await at(market.reward_ledger.functions.potOf(job_id))
        reservation = await at(market.job_market.functions.reservationOf(job_id))
        returned = await self._returned(job_id)
        reserved = spent = 0
        for number in range(progress.opened):
            if number in returned:
                spent += reservation - returned[number]
                continue
            pot = await at(market.reward_ledger.functions.potOf(round_pot(job_id, number)))
            reserved += pot
            spent += reservation - pot
        money = Money(block, funded, spent, reserved, remaining, refunded)
        money.check(job_id)
        return money

    async def _returned(self, job_id: bytes) -> dict[int, int]:
        entries = await self._memory.under(_key(job_id))
        return {entry["round"]: int(entry["wei"]) for entry in entries.values()}

    async def _catch_up(self) -> None:
        while batch := await self._follower.poll():
            for event in batch:
                if isinstance(event, Rollback):
                    await self._forget_after(event.to_block)
                elif event.name == "RoundSettled":
                    args = event.args
                    entry = {"round": args["round"], "wei": str(args["returned"]), "block": event.block_number}
                    await self._memory.note(f"{_key(args['jobId'])}{args['round']}", entry)
            await self._follower.acknowledge()

    async def _forget_after(self, block: int) -> None:
        for key, entry in (await self._memory.under("returned/")).items():
            if entry["block"] > block:
                await self._memory.forget(key)


def _key(job_id: bytes) -> str:
    return f"returned/{job_id.hex()}/"
