"""A contract call asked under conditions: by somebody, or at one block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class View:
    """To be given to Market.call. `block`: several views of one block agree with each other."""

    function: Any
    sender: str | None = None
    block: int | None = None

    async def call(self) -> Any:
        fields = {"from": self.sender} if self.sender else {}
        return await self.function.call(fields, block_identifier="latest" if self.block is None else self.block)
