"""The child's side of a compute process: `serve` answers calls until the parent is gone."""

import contextlib
import ctypes
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

from protocol.runtime.channel import (
    CHANNEL,
    Answer,
    Call,
    Failure,
    Progress,
    Ready,
    Result,
    decode_call,
    encode_frame,
    receive_frame,
)

RECURSION_LIMIT: Final = 1000  # Python's own default
PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_parent: socket.socket | None = None


def serve(handlers: Mapping[str, Callable[..., Any]]) -> None:
    """Answer calls one at a time, on the main thread, until the parent closes the channel or dies. Never returns.

    A handler takes keyword arguments and returns what msgpack can carry; what it raises goes back as ChildFailed.
    """
    global _parent
    sys.setrecursionlimit(RECURSION_LIMIT)  # whatever a library made of it: hostile nesting must raise, not crash
    _parent = socket.socket(fileno=int(os.environ.pop(CHANNEL)))
    _die_with_parent()
    calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(_parent, calls), daemon=True).start()
    _send(Ready())
    while True:
        _send(_answer(handlers, calls.get()))


def progress(**data: Any) -> None:
    """Tell the parent how far the present call is; nothing happens outside a compute process."""
    if _parent is not None:
        _send(Progress(data))


def _listen(parent: socket.socket, calls: queue.SimpleQueue[Call]) -> None:
    """A thread of its own, so that the end of the parent is noticed in the middle of a long computation."""
    try:
        while True:
            calls.put(decode_call(receive_frame(parent)))
    except (EOFError, OSError):
        os._exit(0)  # no clean-up: the main thread may be inside a kernel that takes minutes


def _answer(handlers: Mapping[str, Callable[..., Any]], call: Call) -> Answer:
    try:
        if call.method not in handlers:
            raise LookupError(f"no method {call.method!r}; known: {', '.join(sorted(handlers))}")
        answer = Result(handlers[call.method](**call.params))
        encode_frame(answer)  # a value that cannot travel is the handler's failure, not the channel's
    except Exception as error:  # whatever a handler raises is its answer; the process lives on
        traceback.print_exc()  # to the log of the compute process
        return Failure(type(error).__name__, " ".join(str(error).split())[:2000])
    return answer


def _send(answer: Answer) -> None:
    assert _parent is not None
    try:
        _parent.sendall(encode_frame(answer))
    except OSError:
        os._exit(0)


def _die_with_parent() -> None:
    """On Linux the kernel ends this process with its parent, even while the interpreter is held by native code."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
