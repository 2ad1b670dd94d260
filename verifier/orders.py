"""What a person asks of a running service: an appeal, a demanded audit. One key must not send from two programs, so a
command that finds the service running leaves an order in its home and waits for the answer beside it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import structlog

from protocol.chain.errors import Reverted
from protocol.chain.market import Market
from protocol.chain.transactions import Call, Sender
from verifier.actions import Appeal, DemandAudit

Order = Appeal | DemandAudit
FOLDER = "orders"
POLL_SECONDS = 0.2


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An order at rest. Bytes as hex; `case` is empty for a demanded audit."""

    job: str
    round: int
    shard: int = 0
    case: str = ""
    is_step: bool = False

    def read(self) -> Order:
        job = bytes.fromhex(self.job)
        if self.case:
            return Appeal(job, self.round, bytes.fromhex(self.case), self.is_step)
        return DemandAudit(job, self.round, self.shard)


class Orders:
    """The orders of one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._log = structlog.get_logger("orders")

    def pending(self) -> list[Order]:
        """What nobody has answered yet; a file that is no order is left alone, and told."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Written).read())
            except (msgspec.DecodeError, ValueError, OSError) as error:
                self._log.warning("order_unreadable", file=str(path), reason=str(error))
        return found

    async def carry_out(self, order: Order, market: Market, sender: Sender) -> None:
        """Send it once and leave the answer: an empty text, or what the contract said."""
        answer = ""
        try:
            await send_order(order, market, sender)
        except Reverted as refusal:
            answer = str(refusal)
        self._log.info("order_carried_out", order=order.key, refusal=answer)
        self._path(order, ".answer").write_text(answer)
        self._path(order, ".json").unlink(missing_ok=True)

    async def hand_over(self, order: Order, seconds: float) -> str | None:
        """Leave an order for the running service; its answer, or None when it gave none in time."""
        self._folder.mkdir(parents=True, exist_ok=True)
        answer, scratch = self._path(order, ".answer"), self._path(order, ".new")
        answer.unlink(missing_ok=True)
        scratch.write_bytes(msgspec.json.encode(_written(order)))
        scratch.replace(self._path(order, ".json"))
        for _ in range(int(seconds / POLL_SECONDS)):
            if answer.exists():
                text = answer.read_text()
                answer.unlink()
                return text
            await asyncio.sleep(POLL_SECONDS)
        return None

    def _path(self, order: Order, suffix: str) -> Path:
        return self._folder / f"{order.key.replace(':', '-')}{suffix}"


async def send_order(order: Order, market: Market, sender: Sender) -> None:
    """Raises Reverted with the contract's reason."""
    await sender.submit_and_confirm(order.key, _call(order, market))


def _call(order: Order, market: Market) -> Call:
    call: Call
    if isinstance(order, DemandAudit):
        call = market.audit_court.functions.demandAudit(order.job_id, order.round, order.shard)
    else:
        court = market.checkpoint_court if order.is_step else market.audit_court
        call = court.functions.appeal(order.case_id)
    return call


def _written(order: Order) -> Written:
    if isinstance(order, DemandAudit):
        return Written(order.job_id.hex(), order.round, shard=order.shard)
    return Written(order.job_id.hex(), order.round, case=order.case_id.hex(), is_step=order.is_step)
