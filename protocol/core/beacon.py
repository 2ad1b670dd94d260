"""Tickets of beacons with proofs, and drand's quicknet: which round is when, what its answer must look like.

Twin of ProvenBeacon.sol and DrandBeacon.sol. A signature is not verified here: the contract does, and nobody else's
word counts.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Annotated

import msgspec

from protocol.core.errors import GradmarketError

PREVRANDAO, DRAND = "PrevrandaoBeacon", "DrandBeacon"
PROVEN = (PREVRANDAO, DRAND)  # kinds whose outcomes somebody must show to the chain

MOMENT_BITS = 64
LAST = 3  # replacements after which a ticket is the hash of a block and needs no proof

QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"  # the hash that names the network
GENESIS, PERIOD = 1_692_803_367, 3  # the second of round 1, and seconds between rounds

PRIME = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
POINT_BYTES = 48  # of one coordinate, and of a compressed point
COMPRESSED, INFINITY, LARGER_Y = 0x80, 0x40, 0x20  # the three upper bits of a compressed point


class Unread(Enum):
    """Why a ticket gives no seed yet."""

    TO_COME = "its moment is to come"
    UNPROVED = "nobody has proved its moment"


class BadSignature(GradmarketError):
    """An answer for a drand round that cannot be its signature."""


class Published(msgspec.Struct, frozen=True):
    """What a relay answers for a round: hex without 0x. Other fields are not looked at."""

    round: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    randomness: str
    signature: str


def moment_of(ticket: int) -> int:
    """The block or the round that a ticket names."""
    return ticket & ((1 << MOMENT_BITS) - 1)


def needs_proof(ticket: int) -> bool:
    """False for a last resort."""
    return ticket >> MOMENT_BITS < LAST


def round_time(round: int) -> int:
    """The second in which drand publishes a round; rounds count from 1."""
    return GENESIS + (round - 1) * PERIOD


def has_happened(kind: str, moment: int, block: int, now: int) -> bool:
    """Whether a chain at this block with this block time takes a proof of the moment."""
    return now >= round_time(moment) if kind == DRAND else block > moment


def proof_of_round(round: int, answer: bytes) -> bytes:
    """The proof that DrandBeacon wants, from a relay's JSON. Raises BadSignature for what cannot be that round's."""
    try:
        published = msgspec.json.decode(answer, type=Published)
        signature, randomness = _hex(published.signature), _hex(published.randomness)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadSignature(f"the answer is not a round of drand: {error}") from None
    if published.round != round:
        raise BadSignature(f"the answer is round {published.round}, expected {round}")
    if hashlib.sha256(signature).digest() != randomness:
        raise BadSignature(f"round {round}: the randomness is not the sha256 of the signature")
    return uncompressed(signature)


def uncompressed(point: bytes) -> bytes:
    """A compressed point of BLS12-381's G1 as `x || y`, 96 bytes. Raises BadSignature unless it is on the curve.

    Whether it lies in the subgroup, the chain's precompile says.
    """
    if len(point) != POINT_BYTES:
        raise BadSignature(f"a signature has {len(point)} bytes, expected {POINT_BYTES}")
    if point[0] & (COMPRESSED | INFINITY) != COMPRESSED:
        raise BadSignature("a signature is no compressed point, or the point at infinity")
    x = int.from_bytes(bytes([point[0] & 0x1F]) + point[1:])
    if x >= PRIME:
        raise BadSignature("a signature's coordinate is not below the prime")
    square = (pow(x, 3, PRIME) + 4) % PRIME
    y = pow(square, (PRIME + 1) // 4, PRIME)  # the prime is 3 mod 4
    if y * y % PRIME != square:
        raise BadSignature("a signature is not on the curve")
    if (y > PRIME // 2) != bool(point[0] & LARGER_Y):
        y = PRIME - y
    return x.to_bytes(POINT_BYTES) + y.to_bytes(POINT_BYTES)


def _hex(text: str) -> bytes:
    """Hex digits alone: bytes.fromhex would take spaces."""
    if text.strip("0123456789abcdefABCDEF"):
        raise ValueError("expected hex digits")
    return bytes.fromhex(text)
