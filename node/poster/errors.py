"""What a poster can run into, each as one line: what, where, expected, have, what to do."""

from protocol.core.errors import GradmarketError


class PosterError(GradmarketError):
    """The root of what this package raises on purpose."""


class JobFileError(PosterError):
    """A job file that says something that cannot be posted."""


class Obstructed(PosterError):
    """A job that would not start, or not go on, on the market as it is."""


class BlobsIncomplete(PosterError):
    """The folder of packed data does not hold what the spec names."""


class NotThePoster(PosterError):
    """Only the key that posted a job may do this to it."""


class JobOver(PosterError):
    """The job's state does not allow what was asked."""


class NoCheckpoint(PosterError):
    """The chain has agreed on no checkpoint yet."""


class BooksDisagree(PosterError):
    """What the chain says of a job's money does not add up; a provider mixed two states, or a contract is wrong."""
