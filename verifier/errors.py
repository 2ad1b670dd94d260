"""What a check can run into, each as one line."""

from protocol.core.errors import GradmarketError


class VerifierError(GradmarketError):
    """The root of what this package raises on purpose."""


class InputsUnavailable(VerifierError):
    """Spec, data or base checkpoint cannot be had from anyone: nothing can be said about the claim."""


class JobRefused(VerifierError):
    """A job whose terms do not fit its spec; no honest program works on it."""

    permanent = True


class TooLarge(VerifierError):
    """A job beyond what this machine takes on: its own limit, nobody's fault."""

    permanent = True


class BaseUnavailable(VerifierError):
    """A base checkpoint that nobody serves, or that is not the exact step of the one before it: its attesters' fault,
    never the poster's, so it excuses no claim that was built on it."""
