"""One checked connection to one chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from web3 import AsyncWeb3
from web3.exceptions import BlockNotFound, Web3Exception
from web3.middleware import AttributeDictMiddleware, ExtraDataToPOAMiddleware
from web3.types import BlockIdentifier

from protocol.chain.errors import Refused, StaleHead, WrongChain
from protocol.chain.provider import AiohttpProvider, shown
from protocol.chain.revert import rpc_message
from protocol.chain.words import forgiving_codec


@dataclass(frozen=True)
class Head:
    """A block as far as this program cares."""

    number: int
    hash: str
    parent: str
    timestamp: int
    base_fee: int


class Connection:
    """A web3 client whose chain was checked. `key` names this very chain, so that a reset dev chain is another one."""

    def __init__(self, w3: AsyncWeb3[AiohttpProvider], provider: AiohttpProvider, chain_id: int, genesis: str) -> None:
        self.w3, self.chain_id = w3, chain_id
        self.key = f"{chain_id}-{genesis[2:18]}"
        self._provider = provider

    @property
    def urls(self) -> tuple[str, ...]:
        return self._provider.urls

    async def head(self, block: BlockIdentifier = "latest") -> Head:
        """The newest block, or the one asked for; raises web3's BlockNotFound when there is none, Refused otherwise."""
        try:
            found: Any = await self.w3.eth.get_block(block)
        except BlockNotFound:
            raise
        except Web3Exception as error:
            raise Refused(f"the RPC node does not show block {block!r}: {rpc_message(error)}") from error
        return Head(
            number=int(found["number"]),
            hash=found["hash"].to_0x_hex(),
            parent=found["parentHash"].to_0x_hex(),
            timestamp=int(found["timestamp"]),
            base_fee=int(found.get("baseFeePerGas", 0)),
        )

    async def now(self) -> int:
        """The time of the newest block: the only clock that a deadline on chain knows."""
        return (await self.head()).timestamp

    async def block_number(self) -> int:
        return int(await self.w3.eth.block_number)

    async def check_fresh(self, max_age_seconds: int, wall: Callable[[], float] = time.time) -> Head:
        """Return the head; every endpoint gets its chance to have a recent one, else StaleHead."""
        oldest: StaleHead | None = None
        for _ in self.urls:
            head = await self.head()
            age = int(wall()) - head.timestamp
            if age <= max_age_seconds:
                return head
            oldest = StaleHead(age, max_age_seconds, head.number)
            self._provider.rotate()
        assert oldest is not None  # there is at least one endpoint
        raise oldest

    async def close(self) -> None:
        await self._provider.disconnect()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


async def connect(urls: Sequence[str], expected_chain_id: int | None = None, *, timeout: float = 20.0) -> Connection:
    """Open a connection; the endpoints back each other up and must all serve `expected_chain_id`.

    Raises ChainUnavailable when none answers, WrongChain when one serves another chain.
    """
    provider = AiohttpProvider(urls, timeout)
    # PoA chains put more than 32 bytes into extraData; the middleware makes their blocks readable.
    middleware = [(AttributeDictMiddleware, "attributes"), (ExtraDataToPOAMiddleware, "poa")]
    w3: AsyncWeb3[AiohttpProvider] = AsyncWeb3(provider, middleware=middleware)
    w3.codec = forgiving_codec()
    try:
        chain_id = int(await w3.eth.chain_id)
        if expected_chain_id is not None and chain_id != expected_chain_id:
            raise WrongChain(shown(provider.url), chain_id, expected_chain_id)
        provider.expected_chain_id = chain_id
        genesis: Any = await w3.eth.get_block(0)
    except Web3Exception as error:
        await provider.disconnect()
        raise Refused(f"{shown(provider.url)} is no usable RPC node: {rpc_message(error)}") from error
    except BaseException:
        await provider.disconnect()
        raise
    return Connection(w3, provider, chain_id, genesis["hash"].to_0x_hex())
