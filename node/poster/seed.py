"""Serving the poster's blobs until told to stop, so that operators can begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from node.poster.blobs import open_folder
from protocol.runtime.loop import stopping_on_signals
from protocol.transport.server import BlobServer


async def serve_folder(folder: Path, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `ready` is told the URL. Blobs added meanwhile are served as well."""
    stop = asyncio.Event()
    async with BlobServer(open_folder(folder), host, port) as server:
        with stopping_on_signals(stop):
            ready(server.url)
            await stop.wait()
