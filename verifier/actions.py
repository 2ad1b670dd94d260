"""What a service may do, one side effect each. `key` names the effect, so that a turn never starts it twice."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.core.beacon import moment_of


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


class AdvanceDoubt(OnRound):
    """Go on with the case about a round's checkpoint when its phase is over."""


class Distribute(OnRound):
    """Share what was slashed for a false checkpoint."""


@dataclass(frozen=True)
class ProveSeed:
    """Show the chain the outcome of a ticket's moment: one proof serves every ticket of that moment."""

    ticket: int

    @property
    def key(self) -> str:
        return f"{self.name}:{moment_of(self.ticket)}"

    @property
    def name(self) -> str:
        """The kind that gas is counted by."""
        return "prove-seed"


# What a seat does -----------------------------------------------------------------------------------------------------


class Reexecute(OnSeat):
    """Run the claim again. Takes long."""


class CommitAudit(OnSeat):
    """Commit the root of the own trace."""


class RevealAudit(OnSeat):
    """Compare, then reveal the finding. May take long."""


@dataclass(frozen=True)
class OnStepSeat(OnRound):
    """About one seat of the case about a round's checkpoint. `record`: the key of what it found."""

    case_id: bytes
    seat: int
    record: str

    @property
    def key(self) -> str:
        return f"{super().key}:{self.seat}"


class RecomputeStep(OnStepSeat):
    """Take the outer step alone. Takes long."""


class CommitStep(OnStepSeat):
    """Commit to what the own step gave."""


class RevealStep(OnStepSeat):
    """Reveal what the own step gave."""


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


class RecheckStep(OnRound):
    """Take the outer step of a closed round again and compare its checkpoint. Takes long."""


class ChallengeStep(OnRound):
    """Doubt a checkpoint before the court, with a bond."""


# What a person asks for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Appeal(OnRound):
    """Have the outcome of a case judged again by more seats. `is_step`: the case is about a checkpoint."""

    case_id: bytes
    is_step: bool

    @property
    def key(self) -> str:
        return f"{super().key}:{self.case_id.hex()}"


@dataclass(frozen=True)
class DemandAudit(OnRound):
    """Have an own claim judged that was voted out or lies in a void round."""

    shard: int

    @property
    def key(self) -> str:
        return f"{super().key}:{self.shard}"


Action = (
    OpenRound | CloseJob | AdvanceRound | DrawSample | Convene | Settle | AdvanceCase | AdvanceDoubt | Distribute
    | ProveSeed
    | Reexecute | CommitAudit | RevealAudit | RecomputeStep | CommitStep | RevealStep
    | Recheck | ChallengeClaim | RecheckStep | ChallengeStep | Appeal | DemandAudit
)  # fmt: skip
