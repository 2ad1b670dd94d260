"""Payloads: what is lost, what is refused, and how far an auditor's vector is from what was sent."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

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
from protocol.training.compress.full import Full
from protocol.training.compress.half import Half
from protocol.training.compress.levels import Levels
from protocol.training.compress.normal import LAWS, Normal, _rms
from protocol.training.compress.topk import TopK
from protocol.training.errors import PayloadError, TrainingFailed
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec
from tests.unit.training_fixtures import (
    METHODS,
    a_sharing_spec,
    a_spec,
    encoding,
    plain,
    random_tensors,
    random_update,
)


def spec_of(method: str) -> Spec:
    return a_spec(exchange=encoding(method))


def dense(blocks: Blocks) -> np.ndarray:
    values = blocks.integers * blocks.scales.astype(np.float64)[:, None]
    rows = np.zeros((len(blocks.scales), blocks.block))
    if blocks.indices is None:
        rows[:] = values
    else:
        np.add.at(rows, (np.arange(len(rows))[:, None], blocks.indices), values)
    return rows.reshape(-1)[: blocks.count]


def error(spec: Spec, update: Tensors) -> float:
    decoded = decode_payload(spec, encode_payload(spec, plain(update))).parts["update"]
    away = sum(((dense(decoded[n]) - update[n].reshape(-1)) ** 2).sum() for n in update)
    return math.sqrt(away / sum((a.astype(np.float64) ** 2).sum() for a in update.values()))


def distance(spec: Spec, update: Tensors, payload: bytes) -> float:
    method, decoded = compressor(spec.exchange), decode_payload(spec, payload).parts["update"]
    away = sum(method.squared_distance(update[n].reshape(-1), decoded[n]) for n in update)
    return math.sqrt(away / sum((a.astype(np.float64) ** 2).sum() for a in update.values()))


@pytest.mark.parametrize(
    ("method", "most"),
    [("fp16", 3e-4), ("int8", 0.01), ("int4", 0.2), ("int2", 0.5), ("ternary", 0.6), ("sign", 0.75), ("topk", 0.92)],
)
def test_a_payload_decodes_to_about_what_was_encoded_and_always_has_the_same_size(method: str, most: float) -> None:
    spec = spec_of(method)
    assert most / 10 < error(spec, random_tensors(spec, 1)) < most
    for seed, size in ((1, 1.0), (2, 1e-9), (3, 0.0)):
        assert len(encode_payload(spec, random_update(spec, seed, size))) == max_payload_bytes(spec)


@pytest.mark.parametrize("method", METHODS)
def test_the_cell_distance_is_zero_for_the_honest_and_grows_with_the_lie(method: str) -> None:
    spec = spec_of(method)
    update, other = random_tensors(spec, 1), random_tensors(spec, 2)
    payload = encode_payload(spec, plain(update))
    noise = random_tensors(spec, 3, 1e-3 * 1e-5)
    drifted = {n: (update[n] + noise[n]).astype(np.float32) for n in update}
    assert distance(spec, update, payload) < 1e-7
    assert distance(spec, drifted, payload) < 5e-5
    scaled = {n: update[n] * np.float32(1.05) for n in update}
    assert 5e-3 < distance(spec, scaled, payload) <= 0.0501
    assert distance(spec, other, payload) > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_cell_distance_never_exceeds_the_distance_to_any_vector_that_encodes_to_the_payload(method: str) -> None:
    spec = spec_of(method)
    sent = random_tensors(spec, 4)
    payload = encode_payload(spec, plain(sent))
    for seed in range(5, 9):
        own = {n: (sent[n] + 0.3 * random_tensors(spec, seed)[n]).astype(np.float32) for n in sent}
        apart = sum(((own[n].astype(np.float64) - sent[n]) ** 2).sum() for n in sent)
        size = sum((a.astype(np.float64) ** 2).sum() for a in own.values())
        assert distance(spec, own, payload) <= math.sqrt(apart / size) * (1 + 1e-9)


def test_fp32_loses_nothing_but_values_below_its_least() -> None:
    spec = spec_of("fp32")
    update = random_tensors(spec, 1)
    assert error(spec, update) == 0
    assert len(encode_payload(spec, plain(update))) == max_payload_bytes(spec)
    method, edge = Full(), np.array([2.0**-102, -(2.0**-103), 1e-45, -0.0, 1 + 2.0**-23, -(2.0**39.9)], np.float32)
    sent = method.decode(method.encode(edge), edge.size, "x")
    assert dense(sent).tolist() == [2.0**-102, 0, 0, 0, 1 + 2.0**-23, float(edge[5])]
    assert method.squared_distance(edge, sent) == 0
    assert (sent.scales[sent.scales > 0] >= 2.0**-126).all()
    for bad in (math.nan, math.inf, 1e-45, 2.0**41, -(2.0**41)):
        with pytest.raises(PayloadError, match=r"x: a value must be 0 or of a size in \[2\^-102, 2\^40\], have"):
            method.decode({"values": np.array([1, bad], np.float32)}, 2, "x")


def test_int2_sends_four_levels_in_units_of_the_block_s_root_mean_square() -> None:
    method = Normal(LAWS["int2"], 16)
    flat = np.array([2, -2, 0.5, -0.5, 0, 0, 0, 0] * 2, np.float32)  # RMS sqrt(17/8 ÷ 2)
    rms = math.sqrt(17 / 16)
    parts = method.encode(flat)
    assert parts["scales"].tolist() == [np.float32(rms * 0.1510)]
    assert parts["values"].tolist() == [0b10_00_11_01, 0] * 2  # first value in the lowest bits; codes +3 +10 −3 −10
    blocks = method.decode(parts, 16, "x")
    assert blocks.integers.tolist() == [[10, -10, 3, -3, 3, 3, 3, 3] * 2]
    assert dense(blocks)[:4] == pytest.approx([1.51 * rms, -1.51 * rms, 0.453 * rms, -0.453 * rms], rel=1e-6)


def test_ternary_packs_five_values_to_a_byte_in_base_three() -> None:
    method = Normal(LAWS["ternary"], 16)
    parts = method.encode(np.array([1, -1, 0, 0.1, 1, -1], np.float32))  # RMS 0.82: 0.1 is below 0.612 of it
    assert parts["values"].tolist() == [1 + 2 * 3 + 1 * 81, 2]
    blocks = method.decode(parts, 6, "x")
    assert blocks.integers.tolist() == [[1, -1, 0, 0, 1, -1] + [0] * 10]
    for bad, words in ((243, "5 digits below 3"), (255, "5 digits below 3")):
        with pytest.raises(PayloadError, match=words):
            method.decode(parts | {"values": np.array([bad, 2], np.uint8)}, 6, "x")
    with pytest.raises(PayloadError, match="unused digits"):
        method.decode(parts | {"values": np.array([88, 2 + 3], np.uint8)}, 6, "x")


def test_sign_sends_one_bit_and_a_zero_counts_as_positive() -> None:
    method = Normal(LAWS["sign"], 16)
    parts = method.encode(np.array([3, -3, 0, -0.0, -1e-3, 3, -3, 3, -3, 3], np.float32))
    assert parts["values"].tolist() == [0b01010010, 0b01]
    blocks = method.decode(parts, 10, "x")
    assert blocks.integers.tolist() == [[1, -1, 1, 1, -1, 1, -1, 1, -1, 1] + [0] * 6]
    with pytest.raises(PayloadError, match="unused digits"):
        method.decode(parts | {"values": np.array([0, 4], np.uint8)}, 10, "x")


@pytest.mark.parametrize("law", ["int2", "ternary", "sign"])
def test_levels_of_a_normal_law_keep_its_size_and_lose_what_theory_says(law: str) -> None:
    """Least squared errors of 4, 3 and 2 levels for a normal law: 0.1175, 0.1902 and 0.3634 (Max, 1960)."""
    flat = np.random.default_rng(1).standard_normal(2**18).astype(np.float32)
    method = Normal(LAWS[law], 4096)
    lost = float(((dense(method.decode(method.encode(flat), flat.size, "x")) - flat) ** 2).mean())
    assert lost == pytest.approx({"int2": 0.1175, "ternary": 0.1902, "sign": 0.3634}[law], rel=0.01)


@pytest.mark.parametrize("law", ["int2", "ternary", "sign"])
def test_a_block_of_nothing_has_scale_zero_and_no_digits(law: str) -> None:
    method = Normal(LAWS[law], 16)
    flat = np.zeros(40, np.float32)
    flat[16:32] = [1, -1] * 8
    parts = method.encode(flat)
    assert [scale > 0 for scale in parts["scales"]] == [False, True, False]
    assert (dense(method.decode(parts, 40, "x"))[:16] == 0).all()
    full = method.encode(np.where(flat == 0, -1, flat).astype(np.float32))
    with pytest.raises(PayloadError, match="scale 0 must hold zeros"):
        method.decode(full | {"scales": parts["scales"]}, 40, "x")


def test_the_root_mean_square_is_that_of_exact_integers() -> None:
    flat = (np.random.default_rng(5).standard_t(3, (9, 4096)) * 1e-5).astype(np.float32)
    exact = [math.sqrt(sum(Fraction(float(v)) ** 2 for v in row) / 4096) for row in flat]
    assert _rms(flat, np.full(9, 4096)) == pytest.approx(exact, rel=1e-6)
    assert _rms(flat * np.float32(2**60), np.full(9, 4096)).tolist() == (_rms(flat, np.full(9, 4096)) * 2**60).tolist()
    assert _rms(flat[:, ::-1], np.full(9, 4096)).tolist() == _rms(flat, np.full(9, 4096)).tolist()


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
    update = random_tensors(spec, 1)
    turned = {n: np.asfortranarray(a) for n, a in update.items()}
    assert encode_payload(spec, plain(turned)) == encode_payload(spec, plain(update))


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
        with pytest.raises(PayloadError, match=r"payload update/model.embed_tokens.weight: a scale must be"):
            check_payload(spec, bytes(data))


def test_an_update_that_is_not_finite_is_never_encoded() -> None:
    spec = spec_of("int8")
    update = random_update(spec, 1)
    update.pseudo_gradient["model.norm.weight"][3] = np.nan
    with pytest.raises(TrainingFailed, match=r"update of model.norm.weight"):
        encode_payload(spec, update)


@pytest.mark.parametrize("first", [None, *METHODS])
def test_a_payload_with_moments_comes_back_and_always_has_the_same_size(first: str | None) -> None:
    spec = a_sharing_spec(first=first)
    for seed, size in ((1, 1.0), (2, 1e-9), (3, 0.0)):
        update = random_update(spec, seed, size)
        data = encode_payload(spec, update)
        assert len(data) == max_payload_bytes(spec)
        decoded = decode_payload(spec, data)
        assert set(decoded.parts) == ({"update"} if first is None else {"update", "first"})
        assert decoded.second.keys() == update.second.keys()
        assert all((decoded.second[n] == update.second[n]).all() for n in update.second)
        for part, values in (("update", update.pseudo_gradient), ("first", update.first)):
            method = compressor(spec.exchange if part == "update" or first is None else encoding(first))
            for name, tensor in values.items():
                alone = method.decode(method.encode(tensor.reshape(-1)), tensor.size, "x")
                assert (dense(decoded.parts[part][name]) == dense(alone)).all()


def test_second_moments_that_are_no_squares_are_refused_and_never_sent() -> None:
    spec = a_sharing_spec()
    name = "model.norm.weight"
    for bad in (math.nan, math.inf, -1e-9, 2.0**40):
        update = random_update(spec, 1)
        data = encode_payload(spec, update)
        place = data.rindex(update.second[name].tobytes())
        with pytest.raises(PayloadError, match=rf"payload second/{name}: a second moment must be in \[0, 2\^40\)"):
            check_payload(spec, data[:place] + struct.pack("<f", bad) + data[place + 4 :])
        update.second[name][0] = bad
        with pytest.raises(TrainingFailed, match=rf"second moment of {name}: not finite or above 2\^40"):
            encode_payload(spec, update)
    update = random_update(spec, 1)
    update.first[name][0] = np.inf
    with pytest.raises(TrainingFailed, match=rf"first of {name}: not finite or above 2\^40"):
        encode_payload(spec, update)


def test_hostile_bytes_in_moments_are_refused_in_one_line() -> None:
    spec = a_sharing_spec(first="int4")
    good = encode_payload(spec, random_update(spec, 1))
    others = {
        "no moments": encode_payload(a_spec(), random_update(a_spec(), 1)),
        "no first moments": encode_payload(a_sharing_spec(first=None), random_update(a_sharing_spec(first=None), 1)),
        "first moments of another method": encode_payload(
            a_sharing_spec(first="int8"), random_update(a_sharing_spec(first="int8"), 1)
        ),
        "moments of Muon": encode_payload(
            a_sharing_spec(optimizer="muon"), random_update(a_sharing_spec(optimizer="muon"), 1)
        ),
        "second moments under another name": good.replace(b"second/", b"zecond/"),
    }
    for name, data in others.items():
        with pytest.raises(PayloadError) as caught:
            check_payload(spec, data)
        assert "\n" not in str(caught.value), name


def test_a_scale_without_an_outermost_level_can_come_from_no_vector() -> None:
    blocks = Blocks(np.array([[3, 1]], np.int8), np.array([1.0], np.float32), 2, 2)
    assert Levels(127, 2).squared_distance(np.array([3, 1], np.float32), blocks) == math.inf


def test_the_safetensors_library_reads_a_payload() -> None:
    from safetensors.numpy import load

    spec = spec_of("int8")
    tensors = load(encode_payload(spec, random_update(spec, 1)))
    assert len(tensors) == 2 * len(parameter_shapes(spec))
