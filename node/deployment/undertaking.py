"""A deployment that was begun, remembered so that a killed `deploy run` goes on instead of beginning again.

The file names the nonces and the bytes; the transactions themselves lie in the outbox of the deployer's key, each
stored before it is sent. Both live in the home folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from protocol.chain.blueprint import Blueprint, draw_up
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset


class DeploymentBegun(GradmarketError):
    """Another deployment stands in the way, finished or not."""


class Undertaking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was decided before the first transaction. `chain` names one very chain, `block` is the head at that time."""

    chain: str
    chain_id: int
    deployer: str
    nonce: int
    block: int
    preset: str
    token: str | None
    fingerprint: str

    def blueprint(self) -> Blueprint:
        """The market that was begun, as this program would create it."""
        return draw_up(self.chain_id, self.deployer, self.nonce, load_preset(self.preset), self.token)

    def save(self, path: Path) -> None:
        """On disk when it returns: no transaction may precede it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(path.name + ".new")
        with scratch.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @classmethod
    def load(cls, path: Path) -> Undertaking | None:
        """None where nothing was begun."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise DeploymentBegun(f"{path}: {error}: mend it, or begin again with --start-over") from None


def book_path(home: Path, chain_id: int) -> Path:
    """The address book of the chain."""
    return home / "deploy" / f"{chain_id}.json"


def begun_path(book: Path) -> Path:
    return book.with_suffix(".begun.json")


def check_same(begun: Undertaking, wanted: Undertaking, path: Path) -> None:
    """Raise DeploymentBegun unless going on gives what is asked for now. `wanted` has the nonce of `begun`."""
    differences = [
        f"{name} {getattr(begun, name)}, now {getattr(wanted, name)}"
        for name in ("chain", "deployer", "preset", "token")
        if getattr(begun, name) != getattr(wanted, name)
    ]
    if not differences and begun.fingerprint != wanted.fingerprint:
        differences = ["the contracts or the preset of this program were changed since"]
    if differences:
        raise DeploymentBegun(
            f"{path}: a deployment was begun with {'; '.join(differences)}: "
            "go on with what it was begun with, or begin again with --start-over"
        )


def put_aside(path: Path) -> Path:
    """Keep what was begun under another name; returns it."""
    aside = path.with_name(f"{path.stem}.{time.time_ns()}.abandoned")
    path.replace(aside)
    return aside
