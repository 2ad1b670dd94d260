"""The frames between a process and its compute process: 4 bytes of length, then one msgpack message.

Big things travel as paths of files: a frame is capped, on both sides.
"""

import socket
from typing import Any, Final

import msgspec

MAX_FRAME_BYTES: Final = 2**24  # 16 MiB
LENGTH_BYTES: Final = 4
CHANNEL: Final = "GRADMARKET_CHANNEL"  # the environment variable that tells a child its socket's number


class Call(msgspec.Struct, frozen=True, tag=True):
    method: str
    params: dict[str, Any]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The child has imported its module and waits for calls."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    data: dict[str, Any]


class Result(msgspec.Struct, frozen=True, tag=True):
    value: Any


class Failure(msgspec.Struct, frozen=True, tag=True):
    kind: str
    message: str


Answer = Ready | Progress | Result | Failure

decode_call: Final = msgspec.msgpack.Decoder(Call).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


def encode_frame(message: Call | Answer) -> bytes:
    body = msgspec.msgpack.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(f"message of {len(body)} bytes, expected at most {MAX_FRAME_BYTES}; pass a path instead")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def receive_frame(channel: socket.socket) -> bytes:
    """The next frame's body; EOFError when the other side is gone."""
    length = int.from_bytes(_receive_exactly(channel, LENGTH_BYTES), "big")
    if length > MAX_FRAME_BYTES:
        raise EOFError(f"frame of {length} bytes")
    return _receive_exactly(channel, length)


def _receive_exactly(channel: socket.socket, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = channel.recv(size - len(pieces))
        if not piece:
            raise EOFError("the other side closed the channel")
        pieces += piece
    return bytes(pieces)
