"""What is held out, and that it is never trained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from protocol.training.data import load_shard, load_validation
from protocol.training.errors import DataError
from protocol.training.pack import PackResult, load_tokenizer, pack_text, split
from protocol.training.pack.progress import nobody
from protocol.training.pack.sources import find_sources
from protocol.training.pack.split import Split, parts, survey


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def sides(paths: list[Path], wanted: int | None = None, seed: int = 0) -> tuple[list[str], list[str], Split]:
    """The training part's documents, the held-out ones, and the split."""
    sources = find_sources(paths)
    chosen = survey(sources, "text", seed, wanted, nobody)
    found: tuple[list[str], list[str]] = ([], [])
    open_texts = ["", ""]
    for part in parts(sources, "text", seed, chosen):
        open_texts[part.held_out] += part.text
        if part.last:
            found[part.held_out].append(open_texts[part.held_out])
            open_texts[part.held_out] = ""
    assert open_texts == ["", ""]
    return found[0], found[1], chosen


def test_few_documents_lose_their_ends(tmp_path: Path) -> None:
    texts = [f"{number}" * 400 for number in range(9)]
    trained, held_out, chosen = sides([write(tmp_path / "a.jsonl", texts)])
    assert chosen.needed == chosen.characters // 20 == 9 * 400 // 20 and not chosen.marks
    assert [a + b for a, b in zip(trained, held_out, strict=True)] == texts
    assert {len(text) for text in held_out} == {20}


def test_many_documents_are_held_out_whole(tmp_path: Path) -> None:
    texts = [f"{number} " * 20 for number in range(1000)]
    trained, held_out, chosen = sides([write(tmp_path / "a.jsonl", texts)])
    assert len(chosen.marks) == len(held_out) and sorted(trained + held_out) == sorted(texts)
    spare = sum(map(len, held_out)) - chosen.needed
    assert 0 <= spare < 80 and trained == [text for text in texts if text not in held_out]
    other = sides([tmp_path / "a.jsonl"], seed=1)[1]
    assert set(other) != set(held_out)


def test_only_as_much_as_the_sequences_need_is_held_out(tmp_path: Path) -> None:
    texts = [f"{number} " * 20 for number in range(1000)]
    _, held_out, chosen = sides([write(tmp_path / "a.jsonl", texts)], wanted=50)
    assert chosen.needed == 400 and 400 <= sum(map(len, held_out)) < 480


def test_equal_documents_are_on_one_side_whatever_their_file(tmp_path: Path) -> None:
    texts = [f"{number} " * 20 for number in range(500)]
    (tmp_path / "same").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "same" / f"{number}.txt").write_text(text)
    trained, held_out, _ = sides([write(tmp_path / "a.jsonl", texts + texts[:250]), tmp_path / "same"])
    assert held_out and not set(trained) & set(held_out)
    assert len(held_out) == len(set(held_out)) and len(trained) > len(set(trained))


def test_equal_documents_among_few_lose_the_same_end(tmp_path: Path) -> None:
    text = "".join(f"{number:04}" for number in range(1000))
    (tmp_path / "a.txt").write_text(text)
    trained, held_out, _ = sides([write(tmp_path / "a.jsonl", [text]), tmp_path / "a.txt"])
    assert trained[0] == trained[1] == text[:3800] and held_out == [text[3800:]] * 2


def test_a_document_that_is_most_of_the_text_is_never_held_out(tmp_path: Path) -> None:
    texts = [f"{number} " * 5 for number in range(200)] + ["long " * 10_000]
    for seed in range(40):
        trained, held_out, _ = sides([write(tmp_path / "a.jsonl", texts)], seed=seed)
        assert texts[-1] in trained and held_out


def test_so_many_are_remembered_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number} " * 5 for number in range(3000)]
    all_of_them = sides([write(tmp_path / "a.jsonl", texts + texts)])[2]
    monkeypatch.setattr(split, "MAX_HELD_OUT", 120)
    fewer = sides([tmp_path / "a.jsonl"])[2]
    assert len(fewer.marks) == 120 < len(all_of_them.marks) and fewer.marks < all_of_them.marks
    assert max(fewer.marks) < min(all_of_them.marks - fewer.marks)


def test_files_without_a_letter_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the files hold no text at all"):
        sides([write(tmp_path / "a.jsonl", ["", ""])])


def rows(packed: PackResult) -> np.ndarray:
    manifest, folder = packed.manifest, packed.out_dir
    return np.concatenate([load_shard((folder / digest).read_bytes(), manifest) for digest in manifest.shards])


def test_no_held_out_document_is_trained(tmp_path: Path) -> None:
    texts = [f"in {number} the miller saw {number * 7 % 131} sheep by the river.\n" for number in range(1500)]
    packed = pack_text(
        [write(tmp_path / "a.jsonl", texts * 2)], tmp_path / "out", vocab=300, sequence=16, shard_sequences=1
    )
    blob = (packed.out_dir / packed.manifest.validation).read_bytes()
    tokenizer = load_tokenizer((packed.out_dir / packed.manifest.tokenizer).read_bytes())

    def documents(windows: np.ndarray) -> set[str]:
        """Numbers that stand whole in a window."""
        texts = (tokenizer.decode(row.tolist(), skip_special_tokens=False) for row in windows)
        return {number for text in texts for number in re.findall(r"in (\d+) the", text)}

    held_out, trained = documents(load_validation(blob, packed.manifest)), documents(rows(packed))
    assert len(held_out) > 40 and len(trained) > 1000 and not held_out & trained
