"""What can go wrong between peers. Each text is the one line for the user."""

from collections.abc import Mapping

from protocol.core.errors import GradmarketError


class TransportError(GradmarketError):
    """Any fault of moving or keeping blobs."""


class BadDigest(TransportError):
    """A blob's name that is not 64 lower-case hex digits."""


class BlobMissing(TransportError):
    """The store does not hold this blob, or no longer does."""


class BlobTooLarge(TransportError):
    """A blob above the cap of the one who asks for it."""


class WrongDigest(TransportError):
    """Bytes whose sha256 is not their name."""


class DiskFull(TransportError):
    """No room for a blob; nothing of it became visible."""


class StoreUnusable(TransportError):
    """The store's folder cannot be read or written."""


class AddressRefused(TransportError):
    """A peer's URL that this device must not connect to."""


class PortInUse(TransportError):
    """Another program listens on the wanted port."""


class RequestRefused(TransportError):
    """A signed request that does not hold: malformed, expired, replayed or not by its signer."""


class PeerFailed(TransportError):
    """One request to one peer failed.

    transient: the same peer may do better in a moment. blame: it is the peer's fault, so others are asked first.
    """

    def __init__(self, reason: str, *, transient: bool, blame: bool) -> None:
        super().__init__(reason)
        self.transient = transient
        self.blame = blame


class Unavailable(TransportError):
    """No source gave the blob; `reasons` maps each source to why."""

    def __init__(self, digest: str, reasons: Mapping[str, str]) -> None:
        told = "; ".join(f"{source}: {reason}" for source, reason in reasons.items()) or "no source is known"
        super().__init__(f"blob {digest[:12]}… is unavailable from {len(reasons)} sources ({told})")
        self.digest = digest
        self.reasons = dict(reasons)
