"""The one door to eth-abi and keccak: how values become the bytes that both languages hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak as _keccak


def keccak(data: bytes) -> bytes:
    """keccak-256. Slow in Python (about 30 MB/s): for trees and commitments, never for blobs."""
    return bytes(_keccak(data))


def sha256_hex(data: bytes) -> str:
    """The name of a blob: the sha256 of the bytes that are sent, in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def abi_encode(types: Sequence[str], values: Sequence[Any]) -> bytes:
    """Solidity's abi.encode."""
    return bytes(encode(types, values))


def typehash(definition: str) -> bytes:
    """keccak of a type definition, in EIP-712's notation: the tag that separates one kind of hash from another."""
    return keccak(definition.encode())
