"""Strings as other people wrote them on chain: an address or a seed need not be text, and must not stop a reader."""

from __future__ import annotations

from typing import Any

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.encoding import TextStringEncoder
from eth_abi.registry import BaseEquals
from web3._utils.abi import build_strict_registry


class _AnyString(StringDecoder):
    """Bytes that are no UTF-8 become U+FFFD, which no URL contains: such an endpoint is refused like any bad one."""

    def __init__(self, handle_string_errors: str = "replace") -> None:
        super().__init__(handle_string_errors)  # type: ignore[no-untyped-call]


def forgiving_codec() -> ABICodec:
    """web3's own codec, but one that reads every string."""
    registry: Any = build_strict_registry()
    registry.unregister("string")
    registry.register(BaseEquals("string"), TextStringEncoder, _AnyString, label="string")  # type: ignore[no-untyped-call]
    return ABICodec(registry)
