"""What a running node writes down for `node status` after each turn."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from node.operator.planner import OwnState
from protocol.runtime.loop import Service
from verifier.remedies import Remedy
from verifier.snapshot import Snapshot
from verifier.station import Station


def save_status(
    station: Station,
    service: Service[Any, Any],
    snapshot: Snapshot,
    states: Mapping[bytes, OwnState],
    idle: str,
    remedies: Sequence[Remedy],
) -> None:
    """Write status.json for `node status`: what the loop does, and why not more."""
    traffic = station.client.traffic
    status = {
        "operator": snapshot.me,
        "block_time": snapshot.now,
        "block": snapshot.block,
        "turns": service.turns,
        "doing": sorted(service.in_flight),
        "idle": idle,
        "remedies": [{"about": r.about, "command": r.command, "until": r.until, "bond": str(r.bond)} for r in remedies],
        "failures": {key: failure.reason for key, failure in service.backoff.failures.items()},
        "owners": {
            job.hex(): {
                "passed_audits": s.owner.passed_audits,
                "barred": s.owner.barred,
                "free": str(s.owner.free_stake),
            }
            for job, s in states.items()
        },
        "sent": dict(traffic.sent),
        "received": dict(traffic.received),
        "cpu_seconds": cpu_seconds(),
    }
    path = station.home / "status.json"
    scratch = path.with_suffix(".new")
    scratch.write_bytes(msgspec.json.encode(status))
    scratch.replace(path)


def cpu_seconds() -> float:
    """CPU time of this process and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)
