"""gradmarket data: from text to the blobs of a job."""

from __future__ import annotations

from pathlib import Path

import click

from protocol.training.errors import DataError


@click.group()
def data() -> None:
    """Prepare training data."""


@data.command("pack")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the blobs.")
@click.option("--vocab", required=True, type=click.IntRange(16, 2**18), help="Tokens of the vocabulary.")
@click.option("--sequence", required=True, type=click.IntRange(8, 2**17), help="Tokens of a sequence.")
@click.option("--shard-sequences", required=True, type=click.IntRange(1, 2**22), help="Sequences of a shard.")
@click.option("--max-shards", type=click.IntRange(min=1), help="Shards to keep; all by default.")
@click.option("--max-validation", type=click.IntRange(min=1), help="Held-out sequences to keep; all by default.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the shuffle.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A tokenizer.json; one is trained by default.")
def pack(
    files: tuple[Path, ...],
    out: Path,
    vocab: int,
    sequence: int,
    shard_sequences: int,
    max_shards: int | None,
    max_validation: int | None,
    seed: int,
    tokenizer: Path | None,
) -> None:
    """Cut UTF-8 text FILES into shards and a validation split, each named by its sha256."""
    from protocol.training.pack import pack_text

    packed = pack_text(
        files,
        out,
        vocab=vocab,
        sequence=sequence,
        shard_sequences=shard_sequences,
        seed=seed,
        max_shards=max_shards,
        max_validation=max_validation,
        tokenizer=_read_tokenizer(tokenizer) if tokenizer else None,
    )
    manifest = packed.manifest
    click.echo(f"manifest    {packed.manifest_digest}")
    click.echo(f"validation  {manifest.validation}  {manifest.validation_sequences} sequences")
    click.echo(f"tokenizer   {manifest.tokenizer}")
    tokens = len(manifest.shards) * manifest.shard_tokens
    click.echo(f"{len(manifest.shards)} shards of {manifest.shard_tokens:,} tokens, {tokens:,} tokens in all, in {out}")


def _read_tokenizer(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"tokenizer {path}: {error.strerror}; expected a tokenizer.json") from None
