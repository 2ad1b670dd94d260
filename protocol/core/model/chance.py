"""Seeds, uniform draws, and majorities over maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocol.core.encoding import abi_encode, keccak
from protocol.core.model.refusals import SeedExpired, SeedNotReady
from protocol.core.model.world import World

REACH = 256  # blocks that the beacon can look back


def pin(w: World) -> int:
    """The block whose hash will be the seed: nobody knows it yet."""
    return w.block.height + 1


def is_expired(w: World, beacon_ticket: int) -> bool:
    """Whether the seed can no longer be proved."""
    return w.block.height > beacon_ticket + REACH


def seed_of(w: World, beacon_ticket: int) -> bytes:
    """The seed of a pin, once its block is there."""
    if w.block.height <= beacon_ticket:
        raise SeedNotReady(beacon_ticket, w.block.height)
    if is_expired(w, beacon_ticket):
        raise SeedExpired(beacon_ticket, w.block.height)
    types = ("address", "uint256", "uint256", "bytes32")
    return keccak(abi_encode(types, (w.site.beacon, w.site.chain_id, beacon_ticket, w.block.hash_of(beacon_ticket))))


def number_of(seed: bytes, *words: bytes | int) -> int:
    """A uniform number that belongs to a seed and a purpose. A word is 32 bytes or a number; see `purpose`."""
    return int.from_bytes(keccak(seed + b"".join(w if isinstance(w, bytes) else w.to_bytes(32) for w in words)))


def purpose(seed: bytes, name: str, index: int) -> int:
    """A uniform number for the `index`-th use of a seed under a name."""
    return int.from_bytes(keccak(abi_encode(("bytes32", "string", "uint256"), (seed, name, index))))


def bits(bitmap: int) -> Iterator[int]:
    """The numbers of the set bits, ascending."""
    return (i for i in range(bitmap.bit_length()) if bitmap >> i & 1)


def share_of(total: int, bps: int) -> int:
    """That share of a number, rounded up."""
    return -(-total * bps // 10_000)


def choose(bitmap: int, wanted: int, seed: bytes) -> int:
    """A uniform subset of so many bits: each bit in turn is taken with probability wanted / left."""
    chosen, left = 0, bitmap.bit_count()
    for i in bits(bitmap):
        if wanted and purpose(seed, "sample", i) % left < wanted:
            chosen |= 1 << i
            wanted -= 1
        left -= 1
    return chosen


def majority(weighed: Iterable[tuple[int, int]]) -> int:
    """The bits that maps of more than half of all weight set; `weighed` are maps with their weights."""
    maps = list(weighed)
    total = sum(weight for _, weight in maps)
    every = 0
    for bitmap, _ in maps:
        every |= bitmap
    heavy = [i for i in bits(every) if 2 * sum(weight for bitmap, weight in maps if bitmap >> i & 1) > total]
    return sum(1 << i for i in heavy)
