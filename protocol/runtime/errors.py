"""What can go wrong in running a service. Each text is the one line for the user."""

from protocol.core.errors import GradmarketError


class RuntimeFault(GradmarketError):
    """Any fault of running a service."""


class ConfigError(RuntimeFault):
    """A configuration file that does not say what is needed."""


class ServiceStuck(RuntimeFault):
    """A service made no progress for too long; its process should end with an error and be started anew."""


class ChildFailed(RuntimeFault):
    """A call raised in the compute process, which lives on. `kind` is the class name of what was raised."""

    def __init__(self, method: str, kind: str, message: str) -> None:
        super().__init__(f"{method} failed in the compute process: {kind}: {message}")
        self.method = method
        self.kind = kind
        self.message = message


class ChildDied(RuntimeFault):
    """The compute process ended or was ended; the next call starts another one."""
