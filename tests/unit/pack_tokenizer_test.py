"""Any tokenizer.json: encoded alike each time, with an ending of its own, and only if it fits the vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from protocol.training.data import load_shard
from protocol.training.errors import DataError
from protocol.training.pack import end_of_text, load_tokenizer, pack_text, packing, tokenizer_vocab, train_tokenizer
from protocol.training.pack.tokenizer import Encoder

TEXT = "the miller saw seven sheep and nine goats by the river " * 40


@pytest.fixture(scope="module")
def trained() -> bytes:
    return train_tokenizer([TEXT], 300)


def words(*names: str) -> Any:
    """A tokenizer of whole words."""
    vocab = {name: number for number, name in enumerate(["?", *names, *sorted(set(TEXT.split()))])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def blob(tokenizer: Any) -> bytes:
    return str(tokenizer.to_str()).encode()


def test_no_setting_of_a_tokenizer_cuts_pads_adds_or_draws(trained: bytes) -> None:
    expected = [tokens.tolist() for tokens in Encoder(trained, 300, None).encode([TEXT, "goats"])]
    assert len(expected[0]) > 100 and len(expected[1]) < 10
    tokenizer = load_tokenizer(trained)
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=50)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    settings = json.loads(tokenizer.to_str())
    settings["model"]["dropout"] = 0.5
    changed = json.dumps(settings).encode()
    drawn = load_tokenizer(changed)
    drawn.no_truncation()
    assert drawn.encode(TEXT).ids != drawn.encode(TEXT).ids  # so it does matter
    for _ in range(3):
        encoder = Encoder(changed, 300, None)
        assert [tokens.tolist() for tokens in encoder.encode([TEXT, "goats"])] == expected


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (("</s>", "<|endoftext|>"), "<|endoftext|>"),
        (("<s>", "</s>"), "</s>"),
        (("<eos>",), "<eos>"),
        (("<|end_of_text|>",), "<|end_of_text|>"),
        (("<s>",), None),
    ],
)
def test_a_document_ends_with_the_tokenizers_own_token_or_none(names: tuple[str, ...], ending: str | None) -> None:
    tokenizer = words(*names)
    assert end_of_text(tokenizer) == ending
    expected = [] if ending is None else [tokenizer.token_to_id(ending)]
    assert Encoder(blob(tokenizer), 300, None).ending.tolist() == expected


def test_the_ending_can_be_chosen() -> None:
    tokenizer = words("<s>", "</s>")
    assert Encoder(blob(tokenizer), 300, "<s>").ending.tolist() == [tokenizer.token_to_id("<s>")]
    assert Encoder(blob(tokenizer), 300, "").ending.tolist() == []
    with pytest.raises(DataError, match="it has no token '<end>' to end a text with"):
        Encoder(blob(tokenizer), 300, "<end>")


def test_a_tokenizer_must_fit_the_vocabulary(trained: bytes, tmp_path: Path) -> None:
    size = tokenizer_vocab(load_tokenizer(trained))
    Encoder(trained, size, None)
    expected = rf"its tokens go up to {size - 1}, a vocabulary of {size - 1} ends at {size - 2}; give .* {size} or more"
    with pytest.raises(DataError, match=expected):
        Encoder(trained, size - 1, None)
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(DataError, match=expected):
        pack_text(
            [tmp_path / "a.txt"], tmp_path / "o", vocab=size - 1, sequence=8, shard_sequences=1, tokenizer=trained
        )
    assert not (tmp_path / "o").exists()


def test_tokens_of_more_than_sixteen_bits_are_packed(tmp_path: Path) -> None:
    tokenizer = words("</s>")
    settings = json.loads(tokenizer.to_str())
    settings["model"]["vocab"]["goats"] = 99_999
    (tmp_path / "a.txt").write_text(TEXT)
    packed = pack_text(
        [tmp_path / "a.txt"], tmp_path / "o", vocab=100_000, sequence=8, shard_sequences=1,
        tokenizer=json.dumps(settings).encode(),
    )  # fmt: skip
    found = [load_shard((packed.out_dir / digest).read_bytes(), packed.manifest) for digest in packed.manifest.shards]
    assert max(int(rows.max()) for rows in found) == 99_999


def test_a_tokenizer_is_trained_on_a_sample_of_the_training_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{number} {'abcdefghij'[number % 10] * 9}" for number in range(3000)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    seen: list[str] = []
    train = packing.train_tokenizer

    def listening(sample: Any, vocab: int) -> bytes:
        seen.extend(sample)
        return train(seen, vocab)

    monkeypatch.setattr(packing, "train_tokenizer", listening)
    monkeypatch.setattr(packing, "SAMPLE", 10_000)
    pack_text([tmp_path / "a.jsonl"], tmp_path / "o", vocab=300, sequence=8, shard_sequences=1)
    assert 5_000 < sum(map(len, seen)) <= 11_000 and set(seen) < set(texts)
    numbers = [int(text.split()[0]) for text in seen]
    assert numbers == sorted(numbers) and min(numbers) < 100 and max(numbers) > 2900
