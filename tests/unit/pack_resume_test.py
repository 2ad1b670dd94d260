"""A pack that is killed goes on to the same bytes; what a full disk or another command does to it is one line."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.training.errors import DataError, PackStopped
from protocol.training.pack import PackResult, Progress, Stage, folder, pack_text, packing, tokens
from protocol.training.pack.progress import nobody
from tests.helpers import killed_pack
from tests.helpers.killed_pack import SIZES

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tokens, "BATCH_CHARACTERS", 3000)
    monkeypatch.setattr(tokens, "SAVED_TOKENS", 1)
    yield


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Records: many parts, as a file of text would have them only at 65,536 characters each."""
    path = tmp_path / "text.jsonl"
    path.write_text("".join(f'{{"text": "{i} sheep and {i * i % 97} goats by the river Æ."}}\n' for i in range(700)))
    return path


def blobs(out: Path) -> dict[str, bytes]:
    """Everything that can be seen, each under its digest."""
    found = {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".pack"}
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in found.items())
    return found


def killed(point: str, count: int, text: Path, out: Path) -> None:
    command = [sys.executable, "-m", "tests.helpers.killed_pack", point, str(count), str(text), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


def resumed(text: Path, out: Path) -> tuple[PackResult, dict[Stage, int]]:
    """The pack, and for how often each stage told something."""
    told: dict[Stage, int] = {}

    def watch(progress: Progress) -> None:
        told[progress.stage] = told.get(progress.stage, 0) + 1

    return pack_text([text], out, **SIZES, watch=watch), told


def test_a_pack_killed_at_any_point_goes_on_to_the_same_bytes(text: Path, tmp_path: Path) -> None:
    whole, steps = resumed(text, tmp_path / "whole")
    expected = blobs(tmp_path / "whole")
    assert steps[Stage.TOKENS] > 6 and len(whole.manifest.shards) > 6
    points = [("begun", 1), ("encoded", 1), ("written", 4), ("saved", 1), ("saved", 5), ("shard", 1), ("shard", 4)]
    points += [("noted", 3), ("shard", len(whole.manifest.shards) + 2), ("tidied", 2)]
    for point, count in points:
        out = tmp_path / f"{point}{count}"
        killed(point, count, text, out)
        blobs(out)  # what is there is whole
        again, told = resumed(text, out)
        assert again.manifest_digest == whole.manifest_digest, (point, count)
        assert blobs(out) == expected
        assert (Stage.SURVEY in told) == (point == "begun")
        assert told.get(Stage.TOKENS, 0) < steps[Stage.TOKENS] or (point, count) in [
            ("begun", 1), ("encoded", 1), ("written", 4), ("saved", 1)
        ]  # fmt: skip
    assert (tmp_path / "noted3" / ".pack").is_dir() and not (tmp_path / "noted3" / ".pack" / "training.tokens").exists()


def test_a_pack_killed_again_and_again_comes_to_its_end(text: Path, tmp_path: Path) -> None:
    expected = pack_text([text], tmp_path / "whole", **SIZES)
    for point, count in (("saved", 2), ("written", 3), ("saved", 3), ("noted", 2), ("noted", 2)):
        killed(point, count, text, tmp_path / "out")
    assert pack_text([text], tmp_path / "out", **SIZES).manifest_digest == expected.manifest_digest
    assert blobs(tmp_path / "out") == blobs(tmp_path / "whole")


def test_finished_shards_are_kept_and_a_damaged_one_is_written_again(text: Path, tmp_path: Path) -> None:
    expected = pack_text([text], tmp_path / "whole", **SIZES)
    out = tmp_path / "out"
    killed("noted", 5, text, out)
    shards = expected.manifest.shards[:5]
    before = [(out / digest).stat().st_mtime_ns for digest in shards]
    (out / shards[3]).write_bytes(b"rotten")
    pack_text([text], out, **SIZES)
    after = [(out / digest).stat().st_mtime_ns for digest in shards]
    assert after[:3] == before[:3] and after[4] != before[4]
    assert blobs(out) == blobs(tmp_path / "whole")


def test_a_finished_pack_is_read_back_and_a_damaged_one_mended(text: Path, tmp_path: Path) -> None:
    first, _ = resumed(text, tmp_path / "out")
    again, told = resumed(text, tmp_path / "out")
    assert again == first and not told
    (tmp_path / "out" / first.manifest.shards[2]).unlink()
    mended, told = resumed(text, tmp_path / "out")
    assert mended == first and Stage.TOKENS in told
    blobs(tmp_path / "out")
    assert resumed(text, tmp_path / "out")[1] == {}


def test_lost_files_of_an_unfinished_pack_are_made_again(text: Path, tmp_path: Path) -> None:
    expected = pack_text([text], tmp_path / "whole", **SIZES)
    for name in ("training.tokens", "held-out.tokens", "tokenizer", "shards"):
        out = tmp_path / name
        killed("noted", 2, text, out)
        (out / ".pack" / name).unlink()
        assert pack_text([text], out, **SIZES).manifest_digest == expected.manifest_digest
        assert blobs(out) == blobs(tmp_path / "whole")


def test_another_command_in_the_same_folder_is_refused(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed("saved", 2, text, out)
    with pytest.raises(DataError, match=r"belongs to another command \(sequence 16, now 32\); give another --out, or"):
        pack_text([text], out, **SIZES | {"sequence": 32})
    text.write_text(text.read_text() + '{"text": "one more"}\n')
    with pytest.raises(DataError, match=r"belongs to another command \(of other files\)"):
        pack_text([text], out, **SIZES)
    (out / ".pack" / "state.json").write_bytes(b"{")
    with pytest.raises(DataError, match=r"state.json is not what a pack leaves there"):
        pack_text([text], out, **SIZES)


def test_files_that_were_written_again_with_the_same_text_are_the_same(text: Path, tmp_path: Path) -> None:
    expected = pack_text([text], tmp_path / "whole", **SIZES)
    killed("saved", 3, text, tmp_path / "out")
    text.write_text(text.read_text())
    packed, told = resumed(text, tmp_path / "out")
    assert packed.manifest_digest == expected.manifest_digest and Stage.SURVEY in told and Stage.TOKENIZER not in told
    text.touch()
    assert resumed(text, tmp_path / "out")[0] == packed and pack_text([text], tmp_path / "whole", **SIZES) == expected
    text.write_text(text.read_text().replace("12 sheep", "21 sheep"))
    with pytest.raises(DataError, match=r"belongs to another command \(of other files\)"):
        resumed(text, tmp_path / "out")


def test_two_processes_in_one_folder_are_refused(text: Path, tmp_path: Path) -> None:
    with folder.PackFolder(tmp_path / "out").locked(), pytest.raises(DataError, match="another process is packing"):
        pack_text([text], tmp_path / "out", **SIZES)


def test_a_file_that_changes_meanwhile_is_told_and_nothing_is_left(text: Path, tmp_path: Path) -> None:
    def change(progress: Progress) -> None:
        if progress.stage is Stage.TOKENS:
            text.touch()

    with pytest.raises(DataError, match=r"text.jsonl: the file changed while it was packed"):
        pack_text([text], tmp_path / "out", **SIZES, watch=change)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_packed_leaves_the_folder_to_another_command(text: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give more text"):
        pack_text([text], tmp_path / "out", **SIZES | {"shard_sequences": 10**6})
    assert not (tmp_path / "out").exists()
    pack_text([text], tmp_path / "out", **SIZES)


FULL = """
import resource, signal, sys
from pathlib import Path
from protocol.training.errors import PackStopped
from protocol.training.pack import pack_text
from tests.helpers.killed_pack import SIZES, small_steps
small_steps()
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    pack_text([Path(sys.argv[1])], Path(sys.argv[2]), **SIZES | {"shard_sequences": int(sys.argv[4])})
except PackStopped as stopped:
    print(stopped)
"""


@pytest.mark.parametrize("stage", ["state", "tokens", "shard"])
def test_a_full_disk_stops_a_pack_with_one_line_and_it_goes_on(text: Path, tmp_path: Path, stage: str) -> None:
    small_shards = pack_text([text], tmp_path / "small", **SIZES).manifest
    sequences = len(small_shards.shards) * small_shards.shard_sequences
    sizes = SIZES | {"shard_sequences": sequences}  # one shard, larger than the file of tokens that it comes from
    expected = pack_text([text], tmp_path / "whole", **sizes)
    limit = {"state": 100, "tokens": 30 * sequences, "shard": 33 * sequences + 300}[stage]
    out = tmp_path / "out"
    command = [sys.executable, "-c", FULL, str(text), str(out), str(limit), str(sequences)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert "no space left in" in done.stdout and "run the same command: it goes on" in done.stdout
    assert done.stdout.count("\n") == 1 and not blobs(out) and not (out / ".pack" / "blob").exists()
    assert (b'"whole":true' in (out / ".pack" / "state.json").read_bytes()) if stage == "shard" else True
    assert pack_text([text], out, **sizes).manifest_digest == expected.manifest_digest
    assert blobs(out) == blobs(tmp_path / "whole")


def test_a_folder_that_cannot_be_written_is_one_line(text: Path) -> None:
    with pytest.raises(PackStopped, match=r"text.jsonl/out cannot be written: Not a directory"):
        pack_text([text], text / "out", **SIZES)


def test_every_stage_reaches_its_end(text: Path, tmp_path: Path) -> None:
    last: dict[Stage, Progress] = {}

    def watch(progress: Progress) -> None:
        before = last.get(progress.stage, Progress(progress.stage, 0, progress.total))
        assert before.done <= progress.done <= progress.total == before.total and before.tokens <= progress.tokens
        last[progress.stage] = progress

    packed = pack_text([text], tmp_path / "out", **SIZES, watch=watch)
    assert list(last) == list(Stage) and all(progress.done == progress.total for progress in last.values())
    assert last[Stage.SHARDS].tokens == len(packed.manifest.shards) * packed.manifest.shard_tokens
    nobody(last[Stage.SHARDS])


def test_the_dying_process_knows_its_points() -> None:
    for where, name in killed_pack.POINTS.values():
        assert callable(getattr(where, name))
    assert packing.SAMPLE > 0
