"""`data pack`: what it prints is what a spec names; a bad file is one line."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from node.commands.data import data
from node.commands.packing import shown
from node.session import Program
from protocol.training.checkpoint import decode_checkpoint
from protocol.training.data import decode_manifest, load_validation
from protocol.training.families import family_of
from protocol.training.pack import Progress, Stage, tokens
from protocol.training.pack.progress import nobody
from protocol.training.spec import encode_spec, parse_spec
from tests.unit.training_fixtures import a_spec


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


def digests(text: str) -> dict[str, str]:
    """What awk takes: the second word of the line that begins with a name."""
    return {line.split()[0]: line.split()[1] for line in text.splitlines() if len(line.split()) > 1}


def test_the_printed_digests_are_the_manifests(text: Path, tmp_path: Path) -> None:
    done = pack(tmp_path, str(text), "--vocab", "270", "--max-shards", "2", "--validation", "3")
    assert done.exit_code == 0 and not done.stderr, done.output
    printed = digests(done.stdout)
    manifest = decode_manifest((tmp_path / "blobs" / printed["manifest"]).read_bytes())
    assert (manifest.validation, manifest.tokenizer) == (printed["validation"], printed["tokenizer"])
    shards = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("shard ")]
    assert tuple(shards) == manifest.shards
    assert "2 shards of 64 tokens, 128 tokens in all" in done.stdout and "3 sequences, 48 tokens\n" in done.stdout
    fragment = done.stdout.split("In the spec:")[1].split("\n  and")[0]
    assert json.loads("{" + fragment.rstrip(",") + "}") == {
        "tokenizer": manifest.tokenizer,
        "data": {"manifest": printed["manifest"], "validation": manifest.validation},
    }
    assert f'blobs = "{tmp_path / "blobs"}"' in done.stdout


def test_many_shards_are_not_all_told_and_a_short_validation_split_is(text: Path, tmp_path: Path) -> None:
    done = pack(tmp_path, str(text), "--vocab", "270", "--validation", "1000")
    count = len(decode_manifest((tmp_path / "blobs" / digests(done.stdout)["manifest"]).read_bytes()).shards)
    assert count > 30 and f"… and {count - 20} more; the manifest names all" in done.stdout
    assert "(1,000 were asked for: a twentieth of the text has no more)" in done.stdout


def test_the_same_text_with_its_own_tokenizer_gives_the_same_pack(text: Path, tmp_path: Path) -> None:
    first = pack(tmp_path, str(text), "--vocab", "270").stdout
    tokenizer = tmp_path / "blobs" / digests(first)["tokenizer"]
    for arguments in (("--vocab", "270"), ()):  # the vocabulary is the tokenizer's own
        again = pack(tmp_path / f"own{len(arguments)}", str(text), "--tokenizer", str(tokenizer), *arguments).stdout
        assert digests(again)["manifest"] == digests(first)["manifest"]
    assert pack(tmp_path, str(text), "--vocab", "270").stdout == first  # a second time in the same folder


def test_records_and_their_ending_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({"body": f"{i} sheep and {i * i % 97} goats.\n"}) + "\n" for i in range(600)))
    done = pack(tmp_path, str(path), "--vocab", "270", "--field", "body", "--end-of-text", "")
    assert done.exit_code == 0, done.output
    manifest = decode_manifest((tmp_path / "blobs" / digests(done.stdout)["manifest"]).read_bytes())
    rows = load_validation((tmp_path / "blobs" / manifest.validation).read_bytes(), manifest)
    assert rows.min() > 0  # 0 is the ending


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (b"too short", (), "give more text or smaller shards"),
        (b"\xff\xfe\x00broken", (), "bad.txt: not UTF-8 text: byte 0 is 0xff (invalid start byte)"),
        (b"", (), "bad.txt: the file is empty"),
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
    missing = str(tmp_path / "nowhere")
    assert "nowhere: cannot be read: No such file or directory" in pack(tmp_path, missing, "--vocab", "270").stderr
    assert pack(tmp_path, missing, "--vocab", "2").exit_code == 2
    refused = pack(tmp_path, missing)
    assert (
        refused.exit_code == 2 and "give --vocab, the size of the tokenizer to train, or --tokenizer" in refused.stderr
    )


def test_another_command_and_an_unwritable_folder_are_one_line(text: Path, tmp_path: Path) -> None:
    pack(tmp_path, str(text), "--vocab", "270")
    refused = pack(tmp_path, str(text), "--vocab", "280")
    assert refused.exit_code == 1 and "belongs to another command (vocab 270, now 280)" in refused.stderr
    assert refused.stderr.count("\n") == 1
    refused = pack(text, str(text), "--vocab", "270")
    assert refused.exit_code == 1 and "text.txt/blobs cannot be written: Not a directory" in refused.stderr


def test_ctrl_c_says_how_to_go_on(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_append", interrupted)
        stopped = pack(tmp_path, str(text), "--vocab", "270")
    assert stopped.exit_code == 130 and stopped.stderr == "stopped; the same command goes on from here\n"
    assert (tmp_path / "blobs" / ".pack" / "state.json").exists()
    assert pack(tmp_path, str(text), "--vocab", "270").exit_code == 0


def test_the_bar_shows_bytes_tokens_a_second_and_the_time_left_at_a_terminal_only() -> None:
    with shown(Console(file=io.StringIO(), force_terminal=False)) as watch:
        assert watch is nobody
    screen = io.StringIO()
    with shown(Console(file=screen, force_terminal=True, width=80)) as watch:
        watch(Progress(Stage.SURVEY, 10**6, 10**6))
        watch(Progress(Stage.TOKENS, 5 * 10**5, 2 * 10**6, 10**6))
        time.sleep(0.05)
        watch(Progress(Stage.TOKENS, 10**6, 2 * 10**6, 10**6 + 5_000))
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    found = re.search(r"tokenize .* 1.0/2.0 MB +([\d,]+) tokens/s (\d|-):", drawn)
    assert found and 0 < int(found[1].replace(",", "")) <= 100_000, drawn


def test_a_published_model_becomes_a_spec_and_its_first_checkpoint(tmp_path: Path) -> None:
    spec = a_spec()
    family = family_of(spec.model)
    published = family.build(family.config(spec.model, spec.inner.sequence))
    published.save_pretrained(tmp_path / "published")
    told = CliRunner().invoke(program, ["data", "model", str(tmp_path / "published" / "config.json")])
    table = json.loads(encode_spec(spec)) | {"model": json.loads(told.stdout)}
    assert parse_spec(json.dumps(table)) == spec
    (tmp_path / "spec.json").write_text(json.dumps(table))
    files = [str(tmp_path / "spec.json"), str(tmp_path / "published" / "model.safetensors")]
    done = CliRunner().invoke(program, ["data", "genesis", *files, "--out", str(tmp_path / "blobs")])
    assert done.exit_code == 0, done.output
    digest = done.stdout.split()[1]
    start = decode_checkpoint(spec, (tmp_path / "blobs" / digest).read_bytes())
    norm = dict(published.named_parameters())["model.norm.weight"].detach().numpy()
    assert (start.weights["model.norm.weight"] == norm).all()
    assert parse_spec(json.dumps(table | {"genesis": digest})).genesis == digest


def test_what_is_no_published_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mixtral"}')
    (tmp_path / "spec.json").write_bytes(encode_spec(a_spec()))
    (tmp_path / "model.safetensors").write_bytes(b"a pickle")
    spec = str(tmp_path / "spec.json")
    wrong = [
        (["model", str(tmp_path / "config.json")], "model_type: expected llama or"),
        (["model", str(tmp_path / "absent.json")], "No such file or directory; expected a config.json"),
        (["genesis", spec, str(tmp_path / "model.safetensors"), "--out", str(tmp_path)], "not a safetensors file"),
        (["genesis", spec, str(tmp_path / "absent"), "--out", str(tmp_path)], "expected a model.safetensors"),
    ]
    for arguments, words in wrong:
        refused = CliRunner().invoke(program, ["data", *arguments])
        assert refused.exit_code == 1 and words in refused.stderr and refused.stderr.count("\n") == 1
