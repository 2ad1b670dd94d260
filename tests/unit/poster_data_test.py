"""`data pack`: what it prints is what a spec names; a bad file is one line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from node.commands.data import data
from node.session import Program
from protocol.training.data import decode_manifest


@click.group(cls=Program)
def program() -> None:
    """The data group alone."""


program.add_command(data)
SIZES = ("--sequence", "16", "--shard-sequences", "4")


def pack(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(program, ["data", "pack", *arguments, "--out", str(folder / "blobs"), *SIZES])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{i} sheep and {i * i % 97} goats.\n" for i in range(300)))
    return path


def test_the_printed_digests_are_the_manifests(text: Path, tmp_path: Path) -> None:
    done = pack(tmp_path, str(text), "--vocab", "270", "--max-shards", "2", "--max-validation", "3")
    assert done.exit_code == 0, done.output
    printed = dict(line.split()[:2] for line in done.stdout.splitlines())
    manifest = decode_manifest((tmp_path / "blobs" / printed["manifest"]).read_bytes())
    assert (manifest.validation, manifest.tokenizer) == (printed["validation"], printed["tokenizer"])
    assert "2 shards of 64 tokens, 128 tokens in all" in done.stdout and "3 sequences" in done.stdout


def test_the_same_text_with_its_own_tokenizer_gives_the_same_pack(text: Path, tmp_path: Path) -> None:
    first = pack(tmp_path, str(text), "--vocab", "270").stdout
    tokenizer = tmp_path / "blobs" / dict(line.split()[:2] for line in first.splitlines())["tokenizer"]
    assert pack(tmp_path, str(text), "--vocab", "270", "--tokenizer", str(tokenizer)).stdout == first


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (b"too short", (), "give more text or smaller shards"),
        (b"\xff\xfe\x00broken", (), "cannot be read as UTF-8 text"),
        (b"", (), "0 training and 0 held-out sequences"),
        (b"a text", ("--tokenizer", "/nowhere/tokenizer.json"), "No such file or directory; expected a tokenizer.json"),
        (b"a text", ("--tokenizer", __file__), "tokenizer: not a tokenizer.json"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, content: bytes, arguments: tuple[str, ...], words: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    refused = pack(tmp_path, str(path), "--vocab", "270", *arguments)
    assert refused.exit_code == 1 and words in refused.stderr and refused.stderr.count("\n") == 1


def test_a_missing_file_and_a_size_out_of_bounds_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in pack(tmp_path, str(tmp_path / "nowhere"), "--vocab", "270").stderr
    assert pack(tmp_path, str(tmp_path / "nowhere"), "--vocab", "2").exit_code == 2
