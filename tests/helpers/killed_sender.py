"""A process that sends one transaction and kills itself at a chosen point: URL FOLDER PROBE stored|sent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from web3.types import RPCEndpoint, RPCResponse

from node.devnet.chain import dev_accounts
from protocol.chain.connection import connect
from protocol.chain.provider import AiohttpProvider
from protocol.chain.transactions import Sender
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from tests.helpers.probe import compiled, errors


class DyingOutbox(Outbox):
    async def store(self, **fields: Any) -> None:
        await super().store(**fields)
        os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, folder: Path, probe: str, point: str) -> None:
    send = AiohttpProvider.make_request

    async def send_and_die(self: AiohttpProvider, method: RPCEndpoint, params: Any) -> RPCResponse:
        answer = await send(self, method, params)
        if method == "eth_sendRawTransaction":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    if point == "sent":
        AiohttpProvider.make_request = send_and_die  # type: ignore[method-assign]
    async with open_store(folder) as database, await connect([url]) as connection:
        account = dev_accounts()[1]
        outbox = (DyingOutbox if point == "stored" else Outbox)(database, connection.key, account.address)
        sender = Sender(connection, account, outbox, None, errors())
        contract: Any = connection.w3.eth.contract(address=connection.w3.to_checksum_address(probe), abi=compiled()[0])
        await sender.submit("note:42", contract.functions.note(42))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
