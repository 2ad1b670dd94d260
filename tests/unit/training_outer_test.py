"""The outer step: values worked out by hand, the clip, and the same bytes from everybody."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from protocol.training.checkpoint import Checkpoint, Tensors, encode_checkpoint
from protocol.training.compress import Update, decode_payload, encode_payload
from protocol.training.compress.blocks import Blocks
from protocol.training.errors import OuterStepError, PayloadError
from protocol.training.layout import parameter_shapes, state_parts
from protocol.training.outer import _square_sums, compute_outer_step, lower_median, median, norm
from protocol.training.spec import OuterSpec, Spec
from tests.unit.training_fixtures import (
    METHODS,
    a_checkpoint,
    a_sharing_spec,
    a_spec,
    encoding,
    plain,
    random_tensors,
    random_update,
)

ROOT = Path(__file__).parents[2]
VECTORS = [*METHODS, "moments"]


def payloads(spec: Spec, count: int = 4) -> list[tuple[int, bytes]]:
    return [(shard, encode_payload(spec, random_update(spec, shard))) for shard in range(count)]


def constant(spec: Spec, value: float) -> bytes:
    return encode_payload(spec, plain({n: np.full(s, value, np.float32) for n, s in parameter_shapes(spec).items()}))


def test_one_step_has_the_values_that_a_hand_computes() -> None:
    spec = a_spec(outer=OuterSpec(lr=0.5, momentum=0.25), exchange=encoding("fp16"))
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
    assert after.progress == base.progress + 1


def test_a_step_without_momentum_and_with_moments_has_the_values_that_a_hand_computes() -> None:
    spec = a_sharing_spec(first="fp16", exchange="fp16")
    parts = state_parts(spec)

    def full(part: str, value: float) -> Tensors:
        return {n: np.full(s, value, np.float32) for n, s in parts[part].items()}

    def sent(step: float, first: float, second: float) -> bytes:
        return encode_payload(spec, Update(full("weights", step), full("first", first), full("second", second)))

    base = Checkpoint(full("weights", 10.0), {}, full("first", 9.0), full("second", 9.0), 4)
    after = compute_outer_step(spec, base, [(0, sent(1, 8, 0.5)), (1, sent(2, 1, 0.25)), (2, sent(4, 2, 64.0))])
    # Steps: the median is 2, so 4 counts as 2: mean 5/3. First moments: the median is 2, so 8 counts as 2: mean 5/3.
    # Second moments: the median. The base's own moments are in the payloads already.
    mean = np.float32(5 / 3)
    for name in parts["weights"]:
        assert (after.weights[name] == np.float32(10) - np.float32(0.7) * mean).all()
        assert (after.first[name] == mean).all()
    assert all((values == np.float32(0.5)).all() for values in after.second.values())
    assert not after.momentum and after.progress == 5


def test_the_digest_of_a_known_step_never_changes() -> None:
    """The vectors of docs/spec/training.md: another digest is another protocol version."""
    known = {
        "fp32": "644cb7ce532852a0cfeb755c084a6ca7b33b82114baf02cd3c307aaf8c45cf35",
        "fp16": "feabf10542a6626b73917a4b7a1fb17614e1433e9c8ce3425fda59070fcb35ab",
        "int8": "71d69b5f17af9f5e17961042912c2e23d30dcf2adb5fb67d68cadc6279f5cf1e",
        "int4": "2c720354b159fc0890cad3a61401423b639f7a8854110a54a3c57a909b46c81c",
        "int2": "c5f674e73bb2033f72aa18cfabfac9a82bd1371e233db664d451a3e1351a9db5",
        "ternary": "51a3dcf83a61972b8d531cda19030366cf417789a1c1e205bf8e69769dbedcdc",
        "sign": "cbbec23fcce90889a78f958204ed210db155ad338e1913697557b35e84b5ea34",
        "topk": "6c3bc0ff0bc0cb1683f028afecd1dd3c0614ce5cf1542c55b4744c1930798c0e",
        "moments": "64f8902572c93e78a9f97ccb0dd492c985667bccb38d02d6a865293bb791c026",
    }
    assert {vector: known_step(vector) for vector in VECTORS} == known


def known_step(vector: str) -> str:
    """Integers only, so that no library's random numbers are part of the vector."""
    shared = vector == "moments"
    spec = a_sharing_spec() if shared else a_spec(exchange=encoding(vector, keep=256))
    parts = state_parts(spec)

    def tensors(part: str, seed: int, scale: float) -> Tensors:
        return {
            name: ((np.arange(np.prod(shape)) * (2 * seed + 7919) % 65521 - 32760) * np.float32(scale))
            .astype(np.float32)
            .reshape(shape)
            for name, shape in parts.get(part, {}).items()
        }

    def squares(seed: int, scale: float) -> Tensors:
        return {name: np.abs(values) for name, values in tensors("second", seed, scale).items()}

    def sent(shard: int) -> Update:
        size = 1e-7 * (shard + 1)
        return Update(
            tensors("weights", 10 + shard, size), tensors("first", 20 + shard, size), squares(30 + shard, size)
        )

    base = Checkpoint(
        tensors("weights", 1, 1e-5), tensors("momentum", 2, 1e-7), tensors("first", 3, 1e-7), squares(4, 1e-7)
    )
    payloads = [(shard, encode_payload(spec, sent(shard))) for shard in range(3)]
    return hashlib.sha256(encode_checkpoint(spec, compute_outer_step(spec, base, payloads))).hexdigest()


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_arrival_does_not_matter(method: str) -> None:
    spec = a_sharing_spec(first="int4", exchange=method, momentum=0.5)
    base, sent = a_checkpoint(spec), payloads(spec)
    first = encode_checkpoint(spec, compute_outer_step(spec, base, sent))
    assert encode_checkpoint(spec, compute_outer_step(spec, base, sent[::-1])) == first


def test_an_attacker_a_hundred_times_too_large_counts_once() -> None:
    spec = a_spec()
    base = a_checkpoint(spec)
    honest = payloads(spec, 7)
    huge = plain({n: a * np.float32(100) for n, a in random_tensors(spec, 7).items()})
    attacked = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, huge))])
    polite = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, random_update(spec, 7)))])

    def moved(step: Checkpoint) -> float:
        return float(np.sqrt(sum(((step.weights[n] - base.weights[n]) ** 2).sum() for n in base.weights)))

    apart = np.sqrt(sum(((attacked.weights[n] - polite.weights[n]) ** 2).sum() for n in base.weights))
    assert apart < 0.05 * moved(polite)


def test_a_first_moment_a_hundred_times_too_large_counts_once_and_its_pseudo_gradient_is_not_clipped() -> None:
    spec = a_sharing_spec(first="int8")
    base, updates = a_checkpoint(spec), [random_update(spec, shard) for shard in range(7)]
    honest = [(shard, encode_payload(spec, update)) for shard, update in enumerate(updates)]
    last = random_update(spec, 7)
    huge = dataclasses.replace(last, first={n: a * np.float32(100) for n, a in last.first.items()})
    polite = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, last))])
    attacked = compute_outer_step(spec, base, [*honest, (7, encode_payload(spec, huge))])
    size = np.sqrt(sum((a**2).sum() for a in polite.first.values()))
    apart = np.sqrt(sum(((attacked.first[n] - polite.first[n]) ** 2).sum() for n in polite.first))
    assert 0 < apart < 0.05 * size
    assert all((attacked.weights[n] == polite.weights[n]).all() for n in base.weights)


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e12])
@pytest.mark.parametrize("shard", [0, 1, 2])
def test_one_attacker_of_three_moves_no_second_moment_beyond_the_honest(value: float, shard: int) -> None:
    spec = a_sharing_spec()
    base, honest = a_checkpoint(spec), [random_update(spec, 1), random_update(spec, 2)]
    hostile = dataclasses.replace(honest[0], second={n: np.full_like(a, value) for n, a in honest[0].second.items()})
    updates = [*honest[:shard], hostile, *honest[shard:]]
    after = compute_outer_step(spec, base, [(i, encode_payload(spec, u)) for i, u in enumerate(updates)])
    for name, values in after.second.items():
        pair = np.stack([update.second[name] for update in honest])
        assert (values >= pair.min(axis=0)).all() and (values <= pair.max(axis=0)).all()


def test_the_lower_median_of_tensors_is_taken_place_by_place() -> None:
    values = [np.array(row, np.float32) for row in ([1, 8, 3], [4, 5, 9], [7, 2, 6], [0, 9, 9])]
    assert lower_median(values[:3]).tolist() == [4, 5, 6]
    assert lower_median(values).tolist() == [1, 5, 6]
    assert lower_median(values[:1]).tolist() == [1, 8, 3]


def test_the_lower_median_stands_when_half_are_too_large() -> None:
    assert median([np.float64(x) for x in (100, 1, 2, 90)]) == 2
    assert median([np.float64(x) for x in (3, 1, 2)]) == 2
    assert median([np.float64(5)]) == 5


@pytest.mark.parametrize("method", METHODS)
def test_a_norm_agrees_with_exact_arithmetic(method: str) -> None:
    spec = a_spec(exchange=encoding(method))
    update = decode_payload(spec, encode_payload(spec, random_update(spec, 1))).parts["update"]
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
from tests.unit.training_outer_test import VECTORS, known_step
print(torch.backends.cpu.get_cpu_capability(), *(known_step(vector) for vector in VECTORS))
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
    assert done.stdout.split()[1:] == [known_step(vector) for vector in VECTORS]


def test_a_process_that_flushes_subnormals_refuses_to_compute() -> None:
    done = in_a_process(1, True, {})
    assert done.returncode != 0
    assert "flushes subnormals to zero" in done.stderr
