"""JSON documents that a digest stands for: one canonical form, read strictly, with one line for what is wrong."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from protocol.core.text import one_line

_T = TypeVar("_T")


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no spaces, shortest floats."""
    return msgspec.json.encode(msgspec.to_builtins(value), order="sorted")


def parse_json(data: bytes, kind: type[_T], error: type[Exception], what: str, limit: int) -> _T:
    """Decode strictly, or raise `error` with one line: field, rule and the value that breaks it."""
    if len(data) > limit:
        raise error(f"{what}: {len(data)} bytes, at most {limit} are read")
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as failure:
        text = str(failure)
        path = match.group(1) if (match := re.search(r"`(\$[^`]*)`$", text)) else "$"
        rule = one_line(text.split(" - at ")[0], 200)
        raise error(f"{what} {path.removeprefix('$.')}: {rule}, have {_value_at(data, path)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
        raise error(f"{what}: not JSON: {failure}") from None


def _value_at(data: bytes, path: str) -> str:
    """The offending value, shortened, for the error's line."""
    try:
        value: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return "what is no JSON either"  # the first rule broken ends the strict reading, perhaps before a syntax error
    for key, index in re.findall(r"\.([A-Za-z0-9_]+)|\[(\d+)\]", path):
        try:
            value = value[key] if key else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return "something else"
    return one_line(msgspec.json.encode(value).decode(), 60)
