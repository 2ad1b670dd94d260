"""The embedded chain on disk: an append-only file of frames, one per block, all of it in memory as well."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from eth.db.backends.base import BaseDB

HEADER = 8  # bytes before a frame: length and crc32, big-endian


class StateFile(BaseDB):
    """py-evm's database. `commit` makes everything since the last one durable, or after a crash nothing of it."""

    def __init__(self, path: Path | None) -> None:
        self._values: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, bytes | None] = {}
        self._file: BinaryIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
            self._load(self._file)

    def _load(self, file: BinaryIO) -> None:
        file.seek(0)
        good = 0
        while (frame := _read_frame(file)) is not None:
            for key, value in msgspec.msgpack.decode(frame, type=dict[bytes, bytes | None]).items():
                self._apply(key, value)
            good = file.tell()
        file.truncate(good)  # a frame that was cut by a kill

    def _apply(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def commit(self) -> None:
        if self._file is not None and self._fresh:
            frame = msgspec.msgpack.encode(self._fresh)
            self._file.write(len(frame).to_bytes(4, "big") + zlib.crc32(frame).to_bytes(4, "big") + frame)
            self._file.flush()
        self._fresh.clear()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __getitem__(self, key: bytes) -> bytes:
        return self._values[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._values[key] = self._fresh[key] = value

    def __delitem__(self, key: bytes) -> None:
        del self._values[key]
        self._fresh[key] = None

    def _exists(self, key: bytes) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _read_frame(file: BinaryIO) -> bytes | None:
    head = file.read(HEADER)
    if len(head) < HEADER:
        return None
    frame = file.read(int.from_bytes(head[:4], "big"))
    whole = len(frame) == int.from_bytes(head[:4], "big") and zlib.crc32(frame) == int.from_bytes(head[4:], "big")
    return frame if whole else None
