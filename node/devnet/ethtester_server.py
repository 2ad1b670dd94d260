"""The embedded chain as a program: JSON-RPC over HTTP on 127.0.0.1. node.devnet.chain starts it; it knows no reorgs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from node.devnet.chain import dev_accounts
from node.devnet.evm import Evm
from node.devnet.evm_rpc import Rpc

MAX_BODY = 2**24  # 16 MiB: no transaction is larger


def application(rpc: Rpc) -> web.Application:
    async def handle(request: web.Request) -> web.Response:
        try:
            body: Any = json.loads(await request.text())
        except ValueError:
            error = {"code": -32700, "message": "the request is no JSON"}
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": error})
        requests = body if isinstance(body, list) else [body]
        answers = [rpc.answer(one) for one in requests if isinstance(one, dict)]
        return web.json_response(answers if isinstance(body, list) else answers[0])

    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_post("/", handle)
    return app


async def mine_each(seconds: float, evm: Evm) -> None:
    """Time-outs must move even where nobody sends anything."""
    while True:
        await asyncio.sleep(seconds)
        evm.mine()


async def serve(port: int, state: Path | None, block_time: float | None) -> None:
    evm = Evm([bytes.fromhex(account.address[2:]) for account in dev_accounts()], state)
    runner = web.AppRunner(application(Rpc(evm)), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    miner = asyncio.create_task(mine_each(block_time, evm)) if block_time else None
    await stop.wait()
    if miner is not None:
        miner.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await miner
    await runner.cleanup()
    evm.close()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m node.devnet.ethtester_server", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, help="file that keeps the chain")
    parser.add_argument("--block-time", type=float, help="seconds between blocks, besides one for each transaction")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.port, options.state, options.block_time))


if __name__ == "__main__":
    main(sys.argv[1:])
