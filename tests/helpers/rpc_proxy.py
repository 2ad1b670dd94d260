"""A JSON-RPC endpoint in front of a real one, with the faults that public providers have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

Fault = Callable[[str, list[Any]], Any]  # method, params -> None: pass on; a Response: send it; else: the result


@dataclass
class RpcProxy:
    url: str = ""
    fault: Fault = lambda method, params: None
    seen: list[str] = field(default_factory=list)
    swallow: str = ""  # a method that is passed on, but whose answer is lost


def refusal(message: str, code: int = -32000) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": message}})


@asynccontextmanager
async def rpc_proxy(upstream: str, fault: Fault) -> AsyncIterator[RpcProxy]:
    proxy = RpcProxy(fault=fault)
    session = aiohttp.ClientSession()

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        proxy.seen.append(body["method"])
        answer = proxy.fault(body["method"], body["params"])
        if isinstance(answer, web.Response):
            return answer
        if answer is not None:
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": answer})
        async with session.post(upstream, json=body) as response:
            answer = await response.json()
        return web.Response(status=504) if body["method"] == proxy.swallow else web.json_response(answer)

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield proxy
    finally:
        await runner.cleanup()
        await session.close()
