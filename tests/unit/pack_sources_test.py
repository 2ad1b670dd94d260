"""What text may come in: every kind of file gives the same documents, and what cannot be read is one line."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from protocol.training.errors import DataError
from protocol.training.pack import sources
from protocol.training.pack.sources import check_unchanged, documents, find_sources

TEXTS = ["naïve ☃ 𝄞\n", "two\nlines\n", 'with "quotes"', "a\u2028b\ttab"]


def read(path: Path, field: str = "text") -> list[str]:
    """The documents, each joined."""
    found = [document for source in find_sources([path]) for document in documents(source, field, lambda _: None)]
    return ["".join(document.texts()) for document in found]


def lines(texts: list[str], field: str = "text") -> bytes:
    return "".join(json.dumps({"id": 7, field: text}, ensure_ascii=False) + "\n" for text in texts).encode()


def refused(path: Path, content: bytes, field: str = "text") -> str:
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path, field)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "A.JSONL"])
def test_each_line_of_records_is_a_document(tmp_path: Path, name: str) -> None:
    data = b"\xef\xbb\xbf" + lines(TEXTS, "body") + b"\n \n" + lines([""], "body")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name, "body") == [*TEXTS, ""]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a", "a.md"])
def test_a_file_of_text_is_a_document_and_every_line_end_is_the_same(tmp_path: Path, name: str) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\rthree\n\r\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name) == ["one\ntwo\nthree\n\n"]


def test_each_row_of_parquet_is_a_document(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    many = [f"{number} {text}" for number in range(100) for text in TEXTS]
    table = pyarrow.table({"id": list(range(len(many))), "body": many})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=150)
    assert read(tmp_path / "a.parquet", "body") == many
    for field, words in (("text", 'no column "text"; it has id, body'), ("id", "expected texts, have int64")):
        with pytest.raises(DataError, match=words):
            read(tmp_path / "a.parquet", field)
    parquet.write_table(pyarrow.table({"text": ["a", None]}), tmp_path / "n.parquet")
    with pytest.raises(DataError, match=r'n.parquet: row 2: column "text" is null'):
        read(tmp_path / "n.parquet")
    assert "not a readable Parquet file" in refused(tmp_path / "b.parquet", b"PAR1 and nothing else")


def test_parquet_without_its_library_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "reading Parquet needs pyarrow; run: pip install 'pyarrow>=17'" in refused(tmp_path / "a.parquet", b"PAR1")


def test_a_folder_gives_its_files_by_name_and_leaves_others_out(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("two")
    (tmp_path / "a.jsonl").write_bytes(lines(["one"]))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"three"))
    (tmp_path / "empty.txt").touch()
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert read(tmp_path) == ["one", "two", "three"]
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"none: no .txt, .jsonl, .ndjson \(plain or .gz\) or .parquet"):
        read(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"", "a.txt: the file is empty"),
        ("a.txt", b"good \xffbad", "not UTF-8 text: byte 5 is 0xff (invalid start byte)"),
        ("a.txt", b"cut \xe2\x98", "not UTF-8 text: byte 4 is 0xe2 (unexpected end of data)"),
        ("a.jsonl", lines(["good"]) + b"{broken\n", "a.jsonl:2: not JSON: "),
        ("a.jsonl", lines(["good"]) + b'\n{"text": "\xff"}\n', "a.jsonl:3: not UTF-8 text: byte 10 is 0xff"),
        ("a.jsonl", b'{"body": "x", "id": 1}\n', 'no field "text"; it has body, id (choose one with --field)'),
        ("a.jsonl", b'{"text": [1]}\n', 'a.jsonl:1: field "text": expected a text, have [1]'),
        ("a.jsonl", b'{"text": null}\n', 'a.jsonl:1: field "text": expected a text, have null'),
        ("a.jsonl", b'["text"]\n', 'a.jsonl:1: expected an object with the field "text", have list'),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl:1: not JSON: "),
        ("a.jsonl", b'{"text": "a"} {"text": "b"}\n', "a.jsonl:1: not JSON: "),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1: not JSON: "),
        ("a.jsonl", b"[1 broken\n", "a.jsonl:1: not JSON: "),
        ("a.txt.gz", b"no gzip", "broken gzip: Not a gzipped file"),
        ("a.txt.gz", gzip.compress(b"a text that is long enough" * 99)[:-12], "broken gzip: "),
        ("a.jsonl.gz", gzip.compress(b"x")[:12] + b"\xff\xff\xff", "broken gzip: "),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_line_with_its_place(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    assert words in refused(tmp_path / name, content)


def test_a_bad_byte_is_counted_from_the_start_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "☃\r\n𝄞".encode() * 5
    for size in range(1, 12):
        monkeypatch.setattr(sources, "BLOCK_BYTES", size)
        assert f"byte {len(content)} is 0xc0" in refused(tmp_path / "a.txt", content + b"\xc0abc")


def test_a_line_that_never_ends_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_RECORD_BYTES", 1000)
    assert "a.jsonl:2: a line of more than 1,000 bytes" in refused(tmp_path / "a.jsonl", lines(["x", "y" * 1000]))
    (tmp_path / "b.jsonl").write_bytes(lines(["x" * 900]))
    assert read(tmp_path / "b.jsonl") == ["x" * 900]


def test_a_missing_or_changed_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent: cannot be read: No such file or directory"):
        find_sources([tmp_path / "absent"])
    (tmp_path / "a.txt").write_text("before")
    found = find_sources([tmp_path / "a.txt"])
    check_unchanged(found)
    (tmp_path / "a.txt").write_text("after it")
    with pytest.raises(DataError, match=r"a.txt: the file changed while it was packed"):
        check_unchanged(found)
