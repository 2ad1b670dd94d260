"""Errors of training: each is one line that says what was expected and what is there."""

from __future__ import annotations

from protocol.core.errors import GradmarketError


class TrainingError(GradmarketError):
    """The root of this package's errors."""


class SpecError(TrainingError):
    """A job's spec that this version does not accept."""


class DataError(TrainingError):
    """A manifest, a shard or a text source that cannot be used."""


class PackStopped(TrainingError):
    """The disk does not take what packing writes. The same command goes on from there."""


class CheckpointError(TrainingError):
    """Bytes that are not a checkpoint of this job."""


class PayloadError(TrainingError):
    """Bytes that are not a payload of this job."""


class OuterStepError(TrainingError):
    """An outer step that cannot be computed, or a processor that would compute another one."""


class TrainingFailed(TrainingError):
    """A claim whose training cannot go on: the loss or the gradient is no longer a number."""


class CompareError(TrainingError):
    """A comparison that was asked for with inputs that do not belong together."""
