"""Requests signed by a peer's key, for what costs the server something or is not for everyone.

The signed text names the server, so that one peer cannot replay at another what it was sent. Signing and recovering
are passed in: keys live behind `protocol.chain`. The digest is a sha256 of a text with its own first line; a chain
hashes with keccak, so no signature made here can pass for a transaction or for typed data.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from protocol.transport.errors import RequestRefused

DOMAIN: Final = "gradmarket-request-v1"
SIGNER: Final = "Gradmarket-Signer"
EXPIRES: Final = "Gradmarket-Expires"
NONCE: Final = "Gradmarket-Nonce"
SIGNATURE: Final = "Gradmarket-Signature"

Sign = Callable[[bytes], bytes]  # 32-byte digest -> signature
Recover = Callable[[bytes, bytes], str]  # (32-byte digest, signature) -> address; may raise anything

_FORMS: Final = {
    SIGNER: re.compile(r"0x[0-9a-fA-F]{40}"),
    EXPIRES: re.compile(r"[0-9]{1,12}"),
    NONCE: re.compile(r"[0-9a-f]{32}"),
    SIGNATURE: re.compile(r"(?:0x)?([0-9a-f]{2}){1,128}"),
}


@dataclass(frozen=True)
class Request:
    """What a signature covers, beside expiry, nonce and signer. `server`: host:port as the client dialled it."""

    method: str
    server: str
    path: str  # with the query string, as sent
    body: bytes = b""

    def digest(self, signer: str, expires: int, nonce: str) -> bytes:
        body = hashlib.sha256(self.body).hexdigest()
        text = [DOMAIN, self.method, self.server, self.path, body, str(expires), nonce, signer.lower()]
        return hashlib.sha256("\n".join(text).encode()).digest()


@dataclass(frozen=True)
class RequestSigner:
    """Makes the four headers for one peer's key. `life`: seconds that a signed request stays usable."""

    address: str
    sign: Sign
    life: int = 60
    clock: Callable[[], float] = time.time

    def headers(self, request: Request) -> dict[str, str]:
        expires, nonce = int(self.clock()) + self.life, secrets.token_hex(16)
        signature = self.sign(request.digest(self.address, expires, nonce))
        return {SIGNER: self.address, EXPIRES: str(expires), NONCE: nonce, SIGNATURE: signature.hex()}


@dataclass
class NonceTable:
    """Nonces in use until they expire. Bounded: when it is full of live nonces, new requests are refused."""

    limit: int = 100_000
    _expiry: dict[tuple[str, str], float] = field(default_factory=dict)

    def use(self, signer: str, nonce: str, expires: float, now: float) -> bool:
        """Whether the nonce was free; False also when there is no room."""
        if len(self._expiry) >= self.limit:
            self._expiry = {entry: until for entry, until in self._expiry.items() if until >= now}
        entry = (signer, nonce)
        if len(self._expiry) >= self.limit or self._expiry.get(entry, now - 1) >= now:
            return False
        self._expiry[entry] = expires
        return True


@dataclass
class RequestVerifier:
    """The server's side: who signed a request, or RequestRefused with one line.

    servers: the names that this server answers to, as in a Host header; a BlobServer adds its own.
    is_known: asked before a nonce is stored, so that strangers with fresh keys cannot fill the table.
    tolerance: seconds that the two clocks may differ.
    """

    recover: Recover
    servers: set[str]
    is_known: Callable[[str], bool] = lambda address: True
    max_life: int = 300
    tolerance: int = 30
    clock: Callable[[], float] = time.time
    nonces: NonceTable = field(default_factory=NonceTable)

    def check(self, request: Request, headers: Mapping[str, str]) -> str:
        """The signer's address, in lower case. Consumes the nonce."""
        signer, expires, nonce, signature = _parse(headers)
        now = self.clock()
        if request.server not in self.servers:
            raise RequestRefused(f"signed request is for {request.server}, this server is {_names(self.servers)}")
        if expires + self.tolerance < now:
            raise RequestRefused(f"signed request expired {int(now) - expires} s ago; sign a new one, check the clock")
        if expires > now + self.max_life + self.tolerance:
            raise RequestRefused(f"signed request lives {expires - int(now)} s, expected at most {self.max_life} s")
        if self._recovered(request.digest(signer, expires, nonce), signature) != signer:
            raise RequestRefused(f"signature of the request is not by {signer}")
        if not self.is_known(signer):
            raise RequestRefused(f"signer {signer} is not known here; register on chain first")
        if not self.nonces.use(signer, nonce, expires + self.tolerance, now):
            raise RequestRefused("signed request was used before, or too many are in flight; sign a new one")
        return signer

    def _recovered(self, digest: bytes, signature: bytes) -> str | None:
        try:
            return self.recover(digest, signature).lower()
        except Exception:  # a hostile signature may break any library in its own way: all mean "not a signature"
            return None


def is_signed(headers: Mapping[str, str]) -> bool:
    return any(name in headers for name in _FORMS)


def _parse(headers: Mapping[str, str]) -> tuple[str, int, str, bytes]:
    values = {name: headers.get(name, "") for name in _FORMS}
    for name, form in _FORMS.items():
        if not form.fullmatch(values[name]):
            raise RequestRefused(f"header {name} is missing or malformed in a signed request")
    signature = bytes.fromhex(values[SIGNATURE].removeprefix("0x"))
    return values[SIGNER].lower(), int(values[EXPIRES]), values[NONCE], signature


def _names(servers: Iterable[str]) -> str:
    return ", ".join(sorted(servers)) or "nameless"
