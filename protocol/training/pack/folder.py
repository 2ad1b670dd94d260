"""The folder of a pack: whole blobs under their sha256, and in `.pack` what an unfinished pack needs to go on.

.pack/state.json       the command, and how far it has come
.pack/training.tokens  flat, as are the held-out ones; gone when the pack is finished
.pack/tokenizer        published with the shards
.pack/shards           the digests of finished shards, a line each
.pack/blob             being written, never read by anyone
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from protocol.training.errors import DataError, PackStopped
from protocol.training.pack.sources import Source
from protocol.training.pack.split import Split

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
OTHER_FILES = "of other files"
_OTHER = "give another --out, or remove {}"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the bytes of a pack depend on; the given tokenizer by its digest, its library by its version."""

    sources: tuple[Source, ...]
    field: str
    vocab: int
    sequence: int
    shard_sequences: int
    seed: int
    max_shards: int | None
    validation: int | None
    tokenizer: str | None
    end_of_text: str | None
    library: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pack has come: `parts` of the text are in the two files of tokens, `whole` when that is all of them."""

    command: Command
    split: Split
    tokenizer: str
    parts: int = 0
    text_bytes: int = 0
    training: int = 0
    held_out: int = 0
    whole: bool = False
    manifest: str | None = None


def put_blob(folder: Path, blob: bytes) -> str:
    """Write one blob under its sha256, hex, which is returned; whole or not at all."""
    target = PackFolder(folder)
    with target.locked():
        digest = target.put(blob)
    if not (target.work / "state.json").exists():  # no pack of text works here
        shutil.rmtree(target.work, ignore_errors=True)
    return digest


class PackFolder:
    """Raises PackStopped, in one line, when the disk is full or the folder cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path, self.work = path, path / ".pack"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder while the body runs. The kernel lets go of it with the process."""
        with self.writing():
            self.work.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.work / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DataError(f"pack: another process is packing into {self.path} now; wait for it") from None
            yield
        finally:
            os.close(descriptor)

    def load(self, command: Command) -> State | None:
        """What an earlier run of the same command left, the files' times aside. Raises DataError if it was another."""
        try:
            state = msgspec.json.decode((self.work / "state.json").read_bytes(), type=State)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            advice = _OTHER.format(self.work)
            raise DataError(f"pack: {self.work / 'state.json'} is not what a pack leaves there; {advice}") from None
        if _timeless(state.command) != _timeless(command):
            raise self.other_command(_change(state.command, command))
        return state

    def other_command(self, why: str) -> DataError:
        """What is said where this folder belongs to another command."""
        return DataError(f"pack: {self.path} belongs to another command ({why}); {_OTHER.format(self.work)}")

    def save(self, state: State) -> None:
        with self.writing():
            self._publish([msgspec.json.encode(state)], self.work / "state.json", sync=True)

    def keep_tokenizer(self, blob: bytes) -> None:
        """Keep it for the rest of the pack."""
        with self.writing():
            self._publish([blob], self.work / "tokenizer", sync=True)

    def kept_tokenizer(self, digest: str) -> bytes | None:
        """What was kept; None if it is no longer there as it was."""
        try:
            blob = (self.work / "tokenizer").read_bytes()
        except OSError:
            return None
        return blob if hashlib.sha256(blob).hexdigest() == digest else None

    def put(self, blob: bytes) -> str:
        """The blob's digest, under which it lies in the folder from now on."""
        return self.put_parts([blob])

    def put_parts(self, parts: Iterable[bytes]) -> str:
        """As `put`, of a blob that is never in memory as a whole."""
        digest = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for part in parts:
                digest.update(part)
                yield part

        with self.writing():
            written = self._write(hashed())
            os.replace(written, self.path / digest.hexdigest())
        return digest.hexdigest()

    def has(self, digest: str) -> bool:
        """Whether the blob lies in the folder, byte by byte."""
        try:
            with (self.path / digest).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == digest
        except OSError:
            return False

    def finished_shards(self) -> list[str]:
        """Digests of the shards that are done, up to the first that is not as it was written."""
        try:
            lines = (self.work / "shards").read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        whole: list[str] = []
        for digest in lines:
            if not self.has(digest):
                break
            whole.append(digest)
        with self.writing():
            (self.work / "shards").write_text("".join(f"{digest}\n" for digest in whole), encoding="ascii")
        return whole

    def add_shard(self, digest: str) -> None:
        with self.writing(), (self.work / "shards").open("ab", buffering=0) as file:
            file.write(f"{digest}\n".encode())

    def tidy(self) -> None:
        """Remove what only an unfinished pack needs."""
        for name in ("training.tokens", "held-out.tokens", "tokenizer", "shards", "blob"):
            (self.work / name).unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove every trace of this pack but its blobs."""
        shutil.rmtree(self.work, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()  # only an empty one goes

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A failure of the disk as one line."""
        try:
            yield
        except OSError as failure:
            if failure.errno in _FULL:
                raise PackStopped(
                    f"pack: no space left in {self.path}; free some and run the same command: it goes on from there"
                ) from None
            raise PackStopped(f"pack: {self.path} cannot be written: {failure.strerror or failure}") from None

    def _write(self, parts: Iterable[bytes], sync: bool = False) -> Path:
        path = self.work / "blob"
        try:
            with path.open("wb", buffering=0) as file:
                for part in parts:
                    write_all(file.fileno(), part)
                if sync:
                    os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _publish(self, parts: Iterable[bytes], target: Path, *, sync: bool) -> None:
        os.replace(self._write(parts, sync), target)


def write_all(descriptor: int, data: bytes) -> None:
    """All of it, or OSError: a disk that fills takes a part first."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _timeless(command: Command) -> Command:
    return replace(command, sources=tuple(replace(source, modified=0) for source in command.sources))


def _change(before: Command, now: Command) -> str:
    """The first thing that differs, in words."""
    for field in Command.__struct_fields__:
        old, new = getattr(before, field), getattr(now, field)
        if old != new:
            return OTHER_FILES if field == "sources" else f"{field.replace('_', ' ')} {old}, now {new}"
    return "the same"
