"""What a claim leaves behind (no torch: judging and committing do not need it)."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.core.trace import TraceRow
from protocol.training.compress import Update


@dataclass(frozen=True)
class ClaimResult:
    """The payload to publish, and what its commitment binds."""

    payload: bytes
    payload_digest: str  # sha256, hex
    rows: list[TraceRow]
    end_state: bytes  # canonical bytes of the state after step H
    state_digest: str  # sha256 of `end_state`, hex
    update: Update  # before compression
