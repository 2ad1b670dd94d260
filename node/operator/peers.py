"""What an operator serves: public blobs to everyone, traces and end states to those who sit in judgement over them."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from node.operator.worker import Worker
from protocol.chain.signer import recover_digest
from protocol.core.audit import CasePhase
from protocol.transport.errors import TransportError
from protocol.transport.server import BlobServer
from protocol.transport.signing import RequestVerifier
from verifier.files import END_STATE, TRACE
from verifier.station import Station

KINDS = {TRACE: "trace_blob", END_STATE: "state"}


def open_server(station: Station, worker: Worker) -> BlobServer:
    """The operator's server; start it with `async with`."""
    serve = station.config.serve
    verifier = RequestVerifier(
        recover=recover_digest,
        servers={serve.advertise.removeprefix("http://").removeprefix("https://").rstrip("/")}
        if serve.advertise
        else set(),
        is_known=lambda address: any(address.lower() == known.lower() for known in station.operators),
    )
    server = BlobServer(
        station.blobs,
        serve.host,
        serve.port,
        verifier=verifier,
        traffic=station.client.traffic,
        health=lambda: {"operator": station.sender.address},
    )

    async def get_artefact(request: web.Request) -> web.StreamResponse:
        caller = await server.caller(request)
        return await _artefact(station, worker, request, caller)

    server.mount("/claims/{commitment}/{what}", get_artefact)
    return server


async def is_served_at(station: Station, url: str) -> bool:
    """Whether a node of this very operator answers at `url`."""
    try:
        health = msgspec.json.decode(await station.client.call(url, "/health", max_bytes=4096), type=dict[str, Any])
    except (TransportError, msgspec.DecodeError):
        return False
    return health.get("operator") == station.sender.address


async def _artefact(station: Station, worker: Worker, request: web.Request, caller: str | None) -> web.StreamResponse:
    """One answer for everybody who may not have it, whatever the reason: nothing leaks about who is asked for what."""
    refused = web.HTTPNotFound(text="no such artefact, or not for you now\n")
    kind = KINDS.get(request.match_info["what"])
    where = await station.intents.get(f"commitment/{request.match_info['commitment']}")
    if kind is None or where is None or caller is None:
        raise refused
    job_id = bytes.fromhex(where["job"])
    round = await station.market.round(job_id, where["round"])
    case = round.cases.get(where["shard"])
    # Blindness: nothing is shown before every seat of the cycle has committed its own trace.
    if case is None or case.phase not in (CasePhase.REVEALING, CasePhase.DONE):
        raise refused
    if caller.lower() not in {seat.operator.lower() for seat in case.seats}:
        raise refused
    result = await station.intents.get(where["result"])
    if result is None:
        raise refused  # tidied away
    return web.FileResponse(worker.private.path(result[kind]))
