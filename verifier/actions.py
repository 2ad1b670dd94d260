"""What a service may do, one side effect each. `key` names the effect, so that a turn never starts it twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OnJob:
    """About a job as a whole."""

    job_id: bytes

    @property
    def key(self) -> str:
        return f"{self.name}:{self.job_id.hex()[:12]}"

    @property
    def name(self) -> str:
        """The kind that gas is counted by."""
        words = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(self).__name__)
        return words.lstrip("-")


@dataclass(frozen=True)
class OnRound(OnJob):
    """About one round."""

    round: int

    @property
    def key(self) -> str:
        return f"{super().key}:{self.round}"


@dataclass(frozen=True)
class OnShards(OnRound):
    """About some shards of a round."""

    shards: tuple[int, ...]

    @property
    def key(self) -> str:
        return f"{super().key}:{','.join(map(str, self.shards))}"


@dataclass(frozen=True)
class OnSeat(OnRound):
    """About one seat of one case."""

    shard: int
    case_id: bytes
    seat: int
    commitment: bytes

    @property
    def key(self) -> str:
        return f"{super().key}:{self.shard}:{self.seat}"


# What anyone may do ---------------------------------------------------------------------------------------------------


class OpenRound(OnJob):
    """Open the next round."""


class CloseJob(OnJob):
    """End a job that has come to its end."""


class AdvanceRound(OnRound):
    """Seal, extend, tally, close or void a round whose time is over."""


class DrawSample(OnRound):
    """Draw the sample of a closed round."""


class Convene(OnShards):
    """Open the cases of sampled shards."""


class Settle(OnShards):
    """Settle shards whose fate is decided."""


@dataclass(frozen=True)
class AdvanceCase(OnRound):
    """Go on with a case whose phase is over."""

    shard: int
    case_id: bytes

    @property
    def key(self) -> str:
        return f"{super().key}:{self.shard}"


# What a seat does -----------------------------------------------------------------------------------------------------


class Reexecute(OnSeat):
    """Run the claim again. Takes long."""


class CommitAudit(OnSeat):
    """Commit the root of the own trace."""


class RevealAudit(OnSeat):
    """Compare, then reveal the finding. May take long."""


# What an auditor does of its own accord -------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnCommitment(OnRound):
    """About one committed claim."""

    shard: int
    commitment: bytes

    @property
    def key(self) -> str:
        return f"{super().key}:{self.shard}"


class Recheck(OnCommitment):
    """Run an accepted claim again and compare its payload. Takes long."""


class ChallengeClaim(OnCommitment):
    """Doubt a claim before the court, with a bond."""


Action = (
    OpenRound | CloseJob | AdvanceRound | DrawSample | Convene | Settle | AdvanceCase
    | Reexecute | CommitAudit | RevealAudit | Recheck | ChallengeClaim
)  # fmt: skip
