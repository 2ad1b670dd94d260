"""Payloads: what is lost, what is refused, and how far an auditor's vector is from what was sent."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from protocol.training.checkpoint import Tensors
from protocol.training.compress import (
    check_payload,
    compressor,
    decode_payload,
    encode_payload,
    max_payload_bytes,
)
from protocol.training.compress.blocks import Blocks
from protocol.training.compress.half import Half
from protocol.training.compress.levels import Levels
from protocol.training.compress.topk import TopK
from protocol.training.errors import PayloadError, TrainingFailed
from protocol.training.layout import parameter_shapes
from protocol.training.spec import ExchangeSpec, Spec
from tests.unit.training_fixtures import a_spec, random_update

METHODS = ["fp16", "int8", "int4", "topk"]


def spec_of(method: str) -> Spec:
    return a_spec(exchange=ExchangeSpec(compressor=method, block=64, keep=128))  # type: ignore[arg-type]


def dense(blocks: Blocks) -> np.ndarray:
    values = blocks.integers * blocks.scales.astype(np.float64)[:, None]
    rows = np.zeros((len(blocks.scales), blocks.block))
    if blocks.indices is None:
        rows[:] = values
    else:
        np.add.at(rows, (np.arange(len(rows))[:, None], blocks.indices), values)
    return rows.reshape(-1)[: blocks.count]


def error(spec: Spec, update: Tensors) -> float:
    decoded = decode_payload(spec, encode_payload(spec, update))
    away = sum(((dense(decoded[n]) - update[n].reshape(-1)) ** 2).sum() for n in update)
    return math.sqrt(away / sum((a.astype(np.float64) ** 2).sum() for a in update.values()))


def distance(spec: Spec, update: Tensors, payload: bytes) -> float:
    method, decoded = compressor(spec), decode_payload(spec, payload)
    away = sum(method.squared_distance(update[n].reshape(-1), decoded[n]) for n in update)
    return math.sqrt(away / sum((a.astype(np.float64) ** 2).sum() for a in update.values()))


@pytest.mark.parametrize(("method", "most"), [("fp16", 3e-4), ("int8", 0.01), ("int4", 0.2), ("topk", 0.92)])
def test_a_payload_decodes_to_about_what_was_encoded_and_always_has_the_same_size(method: str, most: float) -> None:
    spec = spec_of(method)
    assert most / 10 < error(spec, random_update(spec, 1)) < most
    for seed, size in ((1, 1.0), (2, 1e-9), (3, 0.0)):
        assert len(encode_payload(spec, random_update(spec, seed, size))) == max_payload_bytes(spec)


@pytest.mark.parametrize("method", METHODS)
def test_the_cell_distance_is_zero_for_the_honest_and_grows_with_the_lie(method: str) -> None:
    spec = spec_of(method)
    update, other = random_update(spec, 1), random_update(spec, 2)
    payload = encode_payload(spec, update)
    noise = random_update(spec, 3, 1e-3 * 1e-5)
    drifted = {n: (update[n] + noise[n]).astype(np.float32) for n in update}
    assert distance(spec, update, payload) < 1e-7
    assert distance(spec, drifted, payload) < 5e-5
    scaled = {n: update[n] * np.float32(1.05) for n in update}
    assert 5e-3 < distance(spec, scaled, payload) <= 0.0501
    assert distance(spec, other, payload) > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_cell_distance_never_exceeds_the_distance_to_any_vector_that_encodes_to_the_payload(method: str) -> None:
    spec = spec_of(method)
    sent = random_update(spec, 4)
    payload = encode_payload(spec, sent)
    for seed in range(5, 9):
        own = {n: (sent[n] + 0.3 * random_update(spec, seed)[n]).astype(np.float32) for n in sent}
        apart = sum(((own[n].astype(np.float64) - sent[n]) ** 2).sum() for n in sent)
        size = sum((a.astype(np.float64) ** 2).sum() for a in own.values())
        assert distance(spec, own, payload) <= math.sqrt(apart / size) * (1 + 1e-9)


def test_int8_rounds_ties_to_even_and_keeps_the_outermost_level() -> None:
    parts = Levels(127, 4).encode(np.array([127.0, 0.5, 1.5, -2.5, 0, 0, 0], np.float32))
    assert parts["scales"].tolist() == [1.0, 0.0]
    assert parts["values"].tolist() == [127, 0, 2, -2, 0, 0, 0]


def test_int4_packs_two_values_to_a_byte_low_half_first() -> None:
    method = Levels(7, 4)
    parts = method.encode(np.array([7.0, -1.0, 3.0], np.float32))
    assert parts["values"].tolist() == [0xF7, 0x03]
    assert method.decode(parts, 3, "x").integers.tolist() == [[7, -1, 3, 0]]
    for bad in ([0x87, 0x03], [0xF7, 0x13]):  # −8 is no level; the unused half must be zero
        with pytest.raises(PayloadError):
            method.decode(parts | {"values": np.array(bad, np.uint8)}, 3, "x")


def test_fp16_scales_by_a_power_of_two_and_decodes_to_whole_units() -> None:
    method = Half(4)
    parts = method.encode(np.array([0.75, -3e-6, 0.0, 1e-12], np.float32))
    assert parts["scales"].tolist() == [2.0**-39]
    blocks = method.decode(parts, 4, "x")
    assert blocks.integers[0, 0] * float(blocks.scales[0]) == 0.75
    with pytest.raises(PayloadError, match="power of two"):
        method.decode(parts | {"scales": np.array([3.0], np.float32)}, 4, "x")


def test_top_k_keeps_the_largest_and_a_tie_keeps_the_lower_place() -> None:
    flat = np.zeros(4096 + 40, np.float32)
    flat[[5, 9, 4000]] = [-3.0, 1.0, 1.0]
    flat[4096:] = 0.5
    method = TopK(2)
    blocks = method.decode(method.encode(flat), flat.size, "x")
    assert blocks.indices is not None
    assert blocks.indices[0].tolist() == [5, 9]
    assert (blocks.integers[0] * blocks.scales[0]).tolist() == [-3.0, 1.0]
    assert blocks.indices[1, 0] == 0 and blocks.integers[1].tolist() == [3, 0]  # 40 of 4096 keep one


def test_top_k_refuses_places_that_repeat_or_lie_outside() -> None:
    method = TopK(128)
    flat = np.arange(1, 101, dtype=np.float32)  # one short chunk: 4 of 100 are kept
    parts = method.encode(flat)
    for places in ([3, 3, 4, 5], [4, 3, 5, 6], [3, 4, 5, 100]):
        bits = "".join(f"{place:012b}" for place in places)
        packed = np.frombuffer(int(bits, 2).to_bytes(len(bits) // 8, "big"), np.uint8)
        with pytest.raises(PayloadError, match="place"):
            method.decode(parts | {"places": packed}, 100, "x")


@pytest.mark.parametrize("method", METHODS)
def test_equal_inputs_give_equal_bytes_whatever_the_memory_layout(method: str) -> None:
    spec = spec_of(method)
    update = random_update(spec, 1)
    turned = {n: np.asfortranarray(a) for n, a in update.items()}
    assert encode_payload(spec, turned) == encode_payload(spec, update)


@pytest.mark.parametrize("method", METHODS)
def test_hostile_bytes_are_refused_in_one_line(method: str) -> None:
    spec = spec_of(method)
    good = encode_payload(spec, random_update(spec, 1))
    other = encode_payload(spec_of("int8" if method != "int8" else "int4"), random_update(spec, 1))
    body = 8 + struct.unpack("<Q", good[:8])[0]
    hostile = {
        "pickle": b"\x80\x04\x95" + b"\0" * 64,
        "empty": b"",
        "cut": good[:-1],
        "longer": good + b"\0",
        "huge header": struct.pack("<Q", 2**62) + good[8:],
        "other method": other,
        "other shape": good.replace(b"[96,32]", b"[32,96]").replace(b"[48]", b"[47]"),
        "header only": good[:body],
    }
    for name, data in hostile.items():
        if data != good:
            with pytest.raises(PayloadError) as caught:
                check_payload(spec, data)
            assert "\n" not in str(caught.value), name


def test_scales_that_are_not_finite_or_out_of_range_are_refused() -> None:
    spec = spec_of("int8")
    for bad in (math.nan, math.inf, -1.0, 1e-40, 2.0**41):
        data = bytearray(encode_payload(spec, random_update(spec, 1)))
        body = 8 + struct.unpack("<Q", data[:8])[0]
        data[body : body + 4] = struct.pack("<f", bad)
        with pytest.raises(PayloadError, match=r"payload model.embed_tokens.weight: a scale must be"):
            check_payload(spec, bytes(data))


def test_an_update_that_is_not_finite_is_never_encoded() -> None:
    spec = spec_of("int8")
    update = random_update(spec, 1)
    update["model.norm.weight"][3] = np.nan
    with pytest.raises(TrainingFailed, match=r"model.norm.weight"):
        encode_payload(spec, update)


def test_a_scale_without_an_outermost_level_can_come_from_no_vector() -> None:
    blocks = Blocks(np.array([[3, 1]], np.int8), np.array([1.0], np.float32), 2, 2)
    assert Levels(127, 2).squared_distance(np.array([3, 1], np.float32), blocks) == math.inf


def test_the_safetensors_library_reads_a_payload() -> None:
    from safetensors.numpy import load

    spec = spec_of("int8")
    tensors = load(encode_payload(spec, random_update(spec, 1)))
    assert len(tensors) == 2 * len(parameter_shapes(spec))
