"""`gradmarket` in a process that kills itself around its n-th transaction: stored|sent N ARGUMENTS…"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from web3.types import RPCEndpoint, RPCResponse

from node.cli import main
from protocol.chain.provider import AiohttpProvider


def arm(point: str, number: int) -> None:
    """stored: before the transaction leaves; sent: after the node has it, before anything of that is noted."""
    send, seen = AiohttpProvider.make_request, 0

    async def send_and_die(self: AiohttpProvider, method: RPCEndpoint, params: Any) -> RPCResponse:
        nonlocal seen
        seen += method == "eth_sendRawTransaction"
        dies = method == "eth_sendRawTransaction" and seen == number
        if dies and point == "stored":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await send(self, method, params)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    AiohttpProvider.make_request = send_and_die  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
