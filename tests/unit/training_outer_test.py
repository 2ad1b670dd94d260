"""The outer step: values worked out by hand, the clip, and the same bytes from everybody."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from protocol.training.checkpoint import Checkpoint, encode_checkpoint
from protocol.training.compress import decode_payload, encode_payload
from protocol.training.compress.blocks import Blocks
from protocol.training.errors import OuterStepError, PayloadError
from protocol.training.layout import parameter_shapes
from protocol.training.outer import _square_sums, compute_outer_step, median, norm
from protocol.training.spec import ExchangeSpec, OuterSpec, Spec
from tests.unit.training_fixtures import a_checkpoint, a_spec, random_update

ROOT = Path(__file__).parents[2]
METHODS = ["fp16", "int8", "int4", "topk"]


def payloads(spec: Spec, count: int = 4) -> list[tuple[int, bytes]]:
    return [(shard, encode_payload(spec, random_update(spec, shard))) for shard in range(count)]


def constant(spec: Spec, value: float) -> bytes:
    return encode_payload(spec, {n: np.full(s, value, np.float32) for n, s in parameter_shapes(spec).items()})


def test_one_step_has_the_values_that_a_hand_computes() -> None:
    spec = a_spec(outer=OuterSpec(lr=0.5, momentum=0.25), exchange=ExchangeSpec(compressor="fp16", block=64))
    shapes = parameter_shapes(spec)
    base = Checkpoint(
        {n: np.full(s, 10.0, np.float32) for n, s in shapes.items()},
        {n: np.full(s, 4.0, np.float32) for n, s in shapes.items()},
    )
    after = compute_outer_step(spec, base, [(0, constant(spec, 1.0)), (3, constant(spec, 2.0))])
    # The lower median norm is that of the ones, so the twos are halved: mean 1. v' = 0.25·4 + 1 = 2;
    # u = 0.25·2 + 1 = 1.5; θ' = 10 − 0.5·1.5 = 9.25.
    for name in shapes:
        assert (after.momentum[name] == np.float32(2.0)).all()
        assert (after.weights[name] == np.float32(9.25)).all()


def test_the_digest_of_a_known_step_never_changes() -> None:
    """The vectors of docs/spec/training.md: another digest is another protocol version."""
    known = {
        "fp16": "a03897a3f698a713d9b92253d5805b2ff457aa04574de5ceb5e2fb3003c496c2",
        "int8": "1482fe4362c7d656e5430626f636fb5d25ce2115ca93142cc46127fac1e7ffd0",
        "int4": "fc013bb8de66121dd7f2d60585dca2ac06a05b7f70b6ba0e788cf44d4b2911ec",
        "topk": "c684b4ebe7819116a8d1c4c6b33726bb8f595cedaa1bf088ccbf1d38c29ab770",
    }
    assert {method: known_step(method) for method in METHODS} == known


def known_step(method: str) -> str:
    """Integers only, so that no library's random numbers are part of the vector."""
    spec = a_spec(exchange=ExchangeSpec(compressor=method, block=64, keep=256))  # type: ignore[arg-type]

    def tensors(seed: int, scale: float) -> dict[str, np.ndarray]:
        return {
            name: ((np.arange(np.prod(shape)) * (2 * seed + 7919) % 65521 - 32760) * np.float32(scale))
            .astype(np.float32)
            .reshape(shape)
            for name, shape in parameter_shapes(spec).items()
        }

    base = Checkpoint(tensors(1, 1e-5), tensors(2, 1e-7))
    sent = [(shard, encode_payload(spec, tensors(10 + shard, 1e-7 * (shard + 1)))) for shard in range(3)]
    return hashlib.sha256(encode_checkpoint(spec, compute_outer_step(spec, base, sent))).hexdigest()


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_arrival_does_not_matter(method: str) -> None:
    spec = a_spec(exchange=ExchangeSpec(compressor=method, block=64))  # type: ignore[arg-type]
    base, sent = a_checkpoint(spec), payloads(spec)
    first = encode_checkpoint(spec, compute_outer_step(spec, base, sent))
    assert encode_checkpoint(spec, compute_outer_step(spec, base, sent[::-1])) == first


def test_an_attacker_a_hundred_times_too_large_counts_once() -> None:
    spec = a_spec()
    base = a_checkpoint(spec)
    honest = payloads(spec, 7)
    huge = {n: a * np.float32(100) for n, a in random_update(spec, 7).items()}
    attacked = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, huge))])
    polite = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, random_update(spec, 7)))])

    def moved(step: Checkpoint) -> float:
        return float(np.sqrt(sum(((step.weights[n] - base.weights[n]) ** 2).sum() for n in base.weights)))

    apart = np.sqrt(sum(((attacked.weights[n] - polite.weights[n]) ** 2).sum() for n in base.weights))
    assert apart < 0.05 * moved(polite)


def test_the_lower_median_stands_when_half_are_too_large() -> None:
    assert median([np.float64(x) for x in (100, 1, 2, 90)]) == 2
    assert median([np.float64(x) for x in (3, 1, 2)]) == 2
    assert median([np.float64(5)]) == 5


@pytest.mark.parametrize("method", METHODS)
def test_a_norm_agrees_with_exact_arithmetic(method: str) -> None:
    spec = a_spec(exchange=ExchangeSpec(compressor=method, block=64))  # type: ignore[arg-type]
    update = decode_payload(spec, encode_payload(spec, random_update(spec, 1)))
    exact = sum(
        Fraction(float(scale)) ** 2 * sum(int(i) ** 2 for i in row)
        for blocks in update.values()
        for scale, row in zip(blocks.scales, blocks.integers, strict=True)
    )
    assert abs(Fraction(float(norm(update))) ** 2 / exact - 1) < Fraction(1, 10**13)


def test_square_sums_of_the_largest_halves_do_not_overflow() -> None:
    largest = 65504 * 2**24
    blocks = Blocks(np.full((1, 4096), largest, np.int64), np.array([1.0], np.float32), 4096, 4096)
    assert abs(float(_square_sums(blocks)[0]) / (4096 * largest**2) - 1) < 1e-15


def test_an_infinite_or_empty_or_doubled_round_is_refused() -> None:
    spec = a_spec()
    base, sent = a_checkpoint(spec), payloads(spec, 2)
    with pytest.raises(OuterStepError, match="at least one payload"):
        compute_outer_step(spec, base, [])
    with pytest.raises(OuterStepError, match="each shard once"):
        compute_outer_step(spec, base, [sent[0], sent[0]])
    with pytest.raises(PayloadError):
        compute_outer_step(spec, base, [sent[0], (1, b"\x80\x04.")])
    with pytest.raises(OuterStepError, match="no longer finite"):
        worst = {n: np.full_like(a, 3e38) for n, a in base.weights.items()}
        compute_outer_step(spec, Checkpoint({n: -a for n, a in worst.items()}, worst), sent)


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
import torch
torch.set_num_threads({threads})
torch.set_flush_denormal({flush})
from tests.unit.training_outer_test import METHODS, known_step
print(torch.backends.cpu.get_cpu_capability(), *(known_step(method) for method in METHODS))
"""


def in_a_process(threads: int, flush: bool, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(root=str(ROOT), threads=threads, flush=flush)
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("threads", "environment"),
    [
        (1, {"ATEN_CPU_CAPABILITY": "default", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"}),
        (2, {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"}),
    ],
)
def test_other_processes_threads_and_instruction_sets_compute_the_same_bytes(
    threads: int, environment: dict[str, str]
) -> None:
    done = in_a_process(threads, False, environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == [known_step(method) for method in METHODS]


def test_a_process_that_flushes_subnormals_refuses_to_compute() -> None:
    done = in_a_process(1, True, {})
    assert done.returncode != 0
    assert "flushes subnormals to zero" in done.stderr
