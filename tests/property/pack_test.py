"""Packing does not depend on how its files are read, and loses or doubles no token."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.training.data import encode_tokens, load_shard
from protocol.training.pack import load_tokenizer, pack_text, pieces, shards, sources, tokens, train_tokenizer
from protocol.training.pack.permutation import Permutation
from protocol.training.pack.pieces import pieces as cut
from protocol.training.pack.shards import Windows
from protocol.training.pack.tokens import TokenFile

WORDS = st.lists(
    st.sampled_from(["sheep ", "é", "☃", "𝄞\n", "\r\n", "\n\n", " goats", "\t", "x" * 9, "\u2028"]), min_size=1
)
TEXT = "Æthelred, naïve owls — and ☃ 𝄞!\r\n" * 60 + "goats\n" * 40
TOKENIZER = train_tokenizer([TEXT], 300)


@contextmanager
def changed(**sizes: int) -> Iterator[None]:
    """Sizes that must not matter."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr({"BLOCK_BYTES": sources, "PIECE": pieces}.get(name, tokens), name, size)
        yield


@given(st.lists(WORDS.map("".join), max_size=6), st.integers(1, 40), st.data())
def test_pieces_depend_on_the_text_alone(texts: list[str], piece: int, data: Any) -> None:
    whole = "".join(texts)
    with changed(PIECE=piece):
        expected = list(cut([whole]))
        assert list(cut(texts)) == list(cut(whole)) == expected
    assert "".join(expected) == whole and all(0 < len(part) <= piece for part in expected)
    start = 0
    for part in expected[:-1]:  # nothing later in the window would have been a better place
        window, end = whole[start : start + piece + 1], len(part)
        lines = [at + 1 for at, (one, two) in enumerate(pairwise(window)) if one == "\n" and not two.isspace()]
        spaces = [at for at, letter in enumerate(window[:piece]) if at and letter == " "]
        assert end == (lines or spaces or [piece])[-1]
        start += end


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 5000), st.integers(1, 9))
def test_a_pack_has_the_same_bytes_whatever_is_read_and_encoded_at_a_time(block: int, batch: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.txt").write_text(TEXT, newline="")
        (folder / "b.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines()[:30]))
        sizes: dict[str, Any] = {"vocab": 300, "sequence": 16, "shard_sequences": 4, "tokenizer": TOKENIZER}
        with changed(PIECE=100):
            expected = pack_text([folder / "a.txt", folder / "b.jsonl"], folder / "expected", **sizes)
            with changed(BLOCK_BYTES=block, BATCH_CHARACTERS=batch, BATCH_PARTS=count, SAVED_TOKENS=count):
                packed = pack_text([folder / "a.txt", folder / "b.jsonl"], folder / "out", **sizes)
        assert packed.manifest_digest == expected.manifest_digest


@given(st.integers(0, 2**64 - 1), st.integers(1, 3000), st.integers(1, 200))
def test_a_permutation_hits_every_number_once(seed: int, count: int, block: int) -> None:
    order = Permutation(seed, count)
    images = np.concatenate([order(start, min(start + block, count)) for start in range(0, count, block)])
    assert sorted(images.tolist()) == list(range(count))
    assert (Permutation(seed, count)(0, count) == images).all()


def test_a_permutation_of_billions_stays_inside_and_has_no_double() -> None:
    count = 3 * 10**9 + 1
    images = Permutation(7, count)(10**9, 10**9 + 50_000)
    assert len(set(images.tolist())) == 50_000 and images.min() >= 0 and images.max() < count
    assert 0.49 < images.mean() / count < 0.51


def test_the_order_is_fixed_for_ever() -> None:
    """The rule in docs/spec/training.md, without numpy."""
    seed, count, mask64 = 5, 10, 2**64 - 1

    def mixed(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask64
        return x ^ (x >> 31)

    def network(x: int) -> int:
        left, right = x >> 2, x & 3  # 10 numbers need 4 bits
        for number in range(6):
            digest = hashlib.sha256(b"gradmarket/pack\0" + seed.to_bytes(8, "big") + bytes([number])).digest()
            key = int.from_bytes(digest[:8], "big")
            left, right = right, left ^ (mixed((right + key) & mask64) >> 62)
        return left << 2 | right

    expected = []
    for place in range(count):
        place = network(place)
        while place >= count:
            place = network(place)
        expected.append(place)
    assert Permutation(seed, count)(0, count).tolist() == expected


def test_the_orders_of_many_seeds_are_even() -> None:
    counts = Counter(
        (place, int(image)) for seed in range(4000) for place, image in enumerate(Permutation(seed, 5)(0, 5))
    )
    chi = sum((counts[a, b] - 800) ** 2 / 800 for a in range(5) for b in range(5))
    assert chi < 45  # 16 degrees of freedom: above in 0.01 % of all cases


@settings(max_examples=40)
@given(
    st.integers(0, 400), st.integers(8, 20), st.integers(0, 2**32), st.integers(1, 300), st.sampled_from([500, 70_000])
)
def test_every_token_is_a_target_once(length: int, sequence: int, seed: int, block: int, vocab: int) -> None:
    """Tokens are their own places, so that a window tells where it was cut."""
    with tempfile.TemporaryDirectory() as name, TokenFile(Path(name) / "tokens", vocab) as file:
        file.append(np.arange(length, dtype=np.int32))
        windows = Windows(file, vocab, sequence, seed)
        assert windows.count == max(0, (length - 1) // sequence)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shards, "BLOCK_BYTES", block)
            blob = b"".join(windows.blob(0, windows.count, lambda _: None))
    if not windows.count:
        return
    places = Permutation(seed, windows.count)(0, windows.count)
    rows = places[:, None] * sequence + np.arange(sequence + 1)[None, :]
    assert blob == encode_tokens(rows, vocab)
    assert sorted(rows[:, 1:].ravel().tolist()) == list(range(1, windows.count * sequence + 1))


def test_the_shards_hold_the_text_and_nothing_else() -> None:
    """Windows put back into their places are the tokens of the pieces, each document with its ending."""
    with tempfile.TemporaryDirectory() as name, changed(PIECE=100):
        folder = Path(name)
        texts = [f"{number}: {TEXT[number * 7 :]}" for number in range(5)]
        (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        packed = pack_text(
            [folder / "a.jsonl"], folder / "out", vocab=300, sequence=16, shard_sequences=1, tokenizer=TOKENIZER
        )
        tokenizer = load_tokenizer(TOKENIZER)
        stream: list[int] = []
        for text in texts:
            trained = text[: len(text) - len(text) * (sum(map(len, texts)) // 20) // sum(map(len, texts))]
            for piece in cut([trained]):
                stream += tokenizer.encode(piece).ids
            stream.append(0)
        manifest = packed.manifest
        rows = [load_shard((folder / "out" / digest).read_bytes(), manifest)[0] for digest in manifest.shards]
    places = Permutation(0, len(rows))(0, len(rows))
    assert len(rows) == (len(stream) - 1) // 16
    for place, row in zip(places, rows, strict=True):
        assert row.tolist() == stream[place * 16 : place * 16 + 17]
