"""What judging needs, handed to those who judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from protocol.chain.market import Market
from protocol.chain.transactions import Sender
from protocol.core.operator import Operator
from protocol.runtime.process import ComputeProcess
from protocol.transport.relays import Relays
from protocol.transport.signing import RequestSigner
from verifier.inputs import JobInputs
from verifier.orders import Orders


class Records(Protocol):
    """Durable records (protocol.store.intents)."""

    async def record(self, key: str, value: Any) -> None: ...

    async def note(self, key: str, value: Any) -> None: ...

    async def get(self, key: str) -> Any: ...


@dataclass(frozen=True)
class Tools:
    """`inputs`: a job's artefacts by its id; `operator`: an entry of the registry by its key; `folder`: own runs;
    `orders`: what a person asked for; `relays`: where drand's rounds are had."""

    market: Market
    sender: Sender
    signer: RequestSigner
    compute: ComputeProcess
    records: Records
    folder: Path
    inputs: Callable[[bytes], JobInputs]
    operator: Callable[[str], Operator | None]
    orders: Orders
    relays: Relays
