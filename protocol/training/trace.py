"""What an inner step leaves in the trace besides its loss: a sketch of the way so far, a digest of the full state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from protocol.training import seeds
from protocol.training.canonical import encode_header
from protocol.training.layout import FULL_STATE, FULL_STATE_METADATA, full_state_table
from protocol.training.spec import Spec

BUCKETS = 64  # 11 % standard deviation of an estimated norm: enough for thresholds a factor of two apart


class Sketch:
    """±1 count-sketch of θ₀ − θ_t: bucket = flat index mod 64, signs from H(job, round, shard).

    Flat means all parameters in sorted order of their names. The buckets are float64; the row carries their sha256.
    """

    def __init__(self, start: torch.Tensor, job_id: bytes, round: int, shard: int) -> None:
        """start: float32 [P], the weights before the first step."""
        seed = seeds.claim_seed("sketch", job_id, round, shard)
        self._start = start.clone()
        self._signs = torch.from_numpy(seeds.signs(seed, start.numel())).to(start.device)
        self._padding = -start.numel() % BUCKETS

    def digest(self, weights: torch.Tensor) -> bytes:
        """weights: float32 [P], after a step. 32 bytes."""
        signed = (self._start - weights) * self._signs
        padded = torch.nn.functional.pad(signed, (0, self._padding))
        buckets: npt.NDArray[np.float64] = padded.view(-1, BUCKETS).sum(dim=0, dtype=torch.float64).cpu().numpy()
        return hashlib.sha256(buckets.astype("<f8").tobytes()).digest()


def full_state_digest(spec: Spec, state: Mapping[str, torch.Tensor]) -> bytes:
    """sha256 of the canonical safetensors bytes of first_moment/…, second_moment/… and weights/….

    `state`: these three as float32 [P], flat in sorted order of the names, which is the order of the file.
    """
    digest = hashlib.sha256(encode_header(full_state_table(spec), FULL_STATE_METADATA))
    for part in FULL_STATE:
        digest.update(state[part].cpu().numpy().astype("<f4", copy=False).tobytes())
    return digest.digest()
