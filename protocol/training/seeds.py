"""Randomness that every machine draws alike: sha256 and SHAKE-256 of a purpose and a place, no generator's state."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from protocol.core.errors import GradmarketError


def claim_seed(purpose: str, job_id: bytes, round: int, shard: int) -> bytes:
    """32 bytes that belong to one claim and one purpose. `job_id`: the job's 32 bytes on chain (shorter in tests)."""
    if len(job_id) > 32:
        raise GradmarketError(f"job id: expected at most 32 bytes, have {len(job_id)}")
    place = job_id.rjust(32, b"\0") + round.to_bytes(8, "big") + shard.to_bytes(8, "big")
    return hashlib.sha256(b"gradmarket/" + purpose.encode() + b"\0" + place).digest()


def order(seed: bytes, count: int) -> npt.NDArray[np.int64]:
    """A permutation of 0…count-1: sorted by the first 8 bytes of sha256(seed ‖ index), a tie keeps the lower index."""
    keys = [hashlib.sha256(seed + index.to_bytes(8, "big")).digest()[:8] for index in range(count)]
    return np.argsort(np.frombuffer(b"".join(keys), ">u8"), kind="stable").astype(np.int64)


def signs(seed: bytes, count: int) -> npt.NDArray[np.float32]:
    """±1 for each of `count` coordinates: the bits of SHAKE-256(seed), most significant first, 1 is minus."""
    stream = np.frombuffer(hashlib.shake_256(seed).digest((count + 7) // 8), np.uint8)
    bits = np.unpackbits(stream, count=count)
    return (1 - 2 * bits.astype(np.int8)).astype(np.float32)


def near_normal(seed: bytes, count: int) -> npt.NDArray[np.int32]:
    """Integers of a nearly normal law: sums of four uniform 16-bit integers of SHAKE-256(seed), centred at zero.

    Integers only, so that no platform's logarithm decides a weight. Standard deviation: NEAR_NORMAL_DEVIATION.
    """
    stream = np.frombuffer(hashlib.shake_256(seed).digest(8 * count), "<u2").reshape(count, 4)
    drawn: npt.NDArray[np.int32] = stream.astype(np.int32).sum(axis=1, dtype=np.int32) - np.int32(2 * 65535)
    return drawn


NEAR_NORMAL_DEVIATION = (4 * (2**32 - 1) / 12) ** 0.5  # of four uniform integers in 0…65535
