"""What an operator does, one side effect each."""

from __future__ import annotations

from dataclasses import dataclass

from verifier.actions import OnRound, OnShards


@dataclass(frozen=True)
class OnClaim(OnRound):
    """About one of the operator's claims."""

    shard: int

    @property
    def key(self) -> str:
        return f"{super().key}:{self.shard}"


class SyncBase(OnRound):
    """Get the checkpoint that a round starts from. May take long."""


class ClaimShards(OnShards):
    """Fetch the inputs of shards, then take holds on them. May take long; one at a time in a round."""

    @property
    def key(self) -> str:
        return f"{self.name}:{self.job_id.hex()[:12]}:{self.round}"


class Train(OnClaim):
    """Run the inner steps of a claim. Takes long."""


class CommitClaim(OnClaim):
    """Commit to a stored result."""


@dataclass(frozen=True)
class ComputeNext(OnRound):
    """Fetch the payloads and take the outer step. `bitmap`: fixed by the tally, or None to judge the payloads."""

    bitmap: int | None

    @property
    def key(self) -> str:
        return f"{super().key}:{'judge' if self.bitmap is None else format(self.bitmap, 'x')}"


@dataclass(frozen=True)
class Attest(OnRound):
    """Say which payloads count and which checkpoint follows."""

    bitmap: int
    next: str


class OpenTrace(OnClaim):
    """Answer a demand: the whole trace on chain."""


NodeAction = SyncBase | ClaimShards | Train | CommitClaim | ComputeNext | Attest | OpenTrace
LONG = (SyncBase, ClaimShards, Train, ComputeNext)
