"""JSON-RPC over one keep-alive aiohttp session, with fail-over between endpoints.

Used in place of web3's AsyncHTTPProvider (8.0.0): that one opens a TCP connection for each request and deadlocks the
whole process once a waiting request is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from protocol.chain.errors import ChainUnavailable, WrongChain

ROUNDS = 3  # how often the whole list of endpoints is tried for one request
PAUSE_SECONDS = 0.25  # after the first round; doubled for each further one
MAX_RESPONSE_BYTES = 2**28  # 256 MiB: more than any honest answer to our questions


class EndpointFailed(Exception):
    """This endpoint did not give a JSON-RPC answer; another one may."""


class AiohttpProvider(AsyncJSONBaseProvider):
    """A request goes to the endpoint that answered last; when that one fails, to the next.

    Every request here may be repeated: reads change nothing, and a signed transaction sent twice is the same
    transaction. An endpoint is asked for its chain id before its first answer is believed.
    """

    def __init__(self, urls: Sequence[str], timeout: float = 20.0) -> None:
        super().__init__()
        if not urls:
            raise ChainUnavailable({"no RPC address": "none was given"})
        self.urls = tuple(urls)
        self.expected_chain_id: int | None = None
        self.global_ccip_read_enabled = False  # a contract's answer must not make this program fetch web addresses
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=5.0)
        self._session: aiohttp.ClientSession | None = None
        self._current = 0
        self._verified: set[str] = set()

    @property
    def url(self) -> str:
        """The endpoint that requests go to now."""
        return self.urls[self._current]

    def rotate(self) -> None:
        """Prefer the next endpoint."""
        self._current = (self._current + 1) % len(self.urls)

    async def disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        reasons: dict[str, str] = {}
        for round_ in range(ROUNDS):
            for _ in self.urls:
                url = self.url
                try:
                    await self._check_chain(url)
                    return await self._post(url, method, params)
                except EndpointFailed as error:
                    reasons[shown(url)] = str(error)
                    # Another request may have moved on already.
                    if self.url == url:
                        self.rotate()
            if round_ < ROUNDS - 1:
                await asyncio.sleep(PAUSE_SECONDS * 2**round_)
        raise ChainUnavailable(reasons)

    async def _check_chain(self, url: str) -> None:
        if self.expected_chain_id is None or url in self._verified:
            return
        answer = await self._post(url, RPCEndpoint("eth_chainId"), [])
        try:
            have = int(str(answer["result"]), 16)
        except (KeyError, ValueError):
            raise EndpointFailed("it does not tell its chain id") from None
        if have != self.expected_chain_id:
            raise WrongChain(shown(url), have, self.expected_chain_id)
        self._verified.add(url)

    async def _post(self, url: str, method: RPCEndpoint, params: Any) -> RPCResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        data = self.encode_rpc_request(method, params)
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(url, data=data, headers=headers) as response:
                if response.status == 429:
                    raise EndpointFailed("it limits the request rate (HTTP 429)")
                body = await _read_at_most(response, MAX_RESPONSE_BYTES)
                return self._answer(response.status, body)
        except TimeoutError:
            raise EndpointFailed(f"no answer in {self._timeout.total:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise EndpointFailed(str(error) or type(error).__name__) from None

    def _answer(self, status: int, body: bytes) -> RPCResponse:
        """Some nodes send a JSON-RPC error with an HTTP error status: the body counts, then the status."""
        try:
            answer = self.decode_rpc_response(body)
        except (ValueError, TypeError):
            raise EndpointFailed(f"HTTP {status} without a JSON-RPC answer") from None
        if not isinstance(answer, dict) or ("result" not in answer and "error" not in answer):
            raise EndpointFailed(f"HTTP {status} without a JSON-RPC answer")
        return answer


def shown(url: str) -> str:
    """An address as it may appear in a message: its path and user often are a key that somebody pays for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def _read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise EndpointFailed(f"its answer is larger than {limit} bytes")
        parts.append(chunk)
    return b"".join(parts)
