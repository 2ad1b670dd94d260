"""The compute process of runtime_process_test.py: run as a module, never collected as a test."""

import os
import sys
import time
from typing import Any

from protocol.runtime.child import progress, serve


def add(a: int, b: int) -> int:
    return a + b


def environment() -> dict[str, str]:
    return dict(os.environ)


def count(to: int) -> int:
    for step in range(1, to + 1):
        print("noise on standard output", step)
        progress(step=step)
    return to


def fail(text: str) -> None:
    raise ValueError(text)


def die(status: int) -> None:
    print("out of memory, says the driver", file=sys.stderr)
    os._exit(status)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def hold(seconds: float) -> None:
    """Native code that keeps the interpreter's lock, as a kernel launch can."""
    sum(range(int(seconds * 10**8)))


def big() -> bytes:
    return bytes(2**24 + 1)


def unsendable() -> Any:
    return object()


if __name__ == "__main__":
    serve({f.__name__: f for f in (add, environment, count, fail, die, sleep, hold, big, unsendable)})
