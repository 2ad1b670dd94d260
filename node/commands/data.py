"""gradmarket data: from text to the blobs of a job, and from a published model to a job's start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from protocol.training.errors import DataError

if TYPE_CHECKING:
    from protocol.training.pack import PackResult

_LISTED = 20  # shards that are told one by one


@click.group()
def data() -> None:
    """Prepare training data and a job's start."""


@data.command("pack")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the blobs.")
@click.option("--vocab", type=click.IntRange(16, 2**18), help="Tokens of the vocabulary; a given tokenizer's own.")
@click.option("--sequence", required=True, type=click.IntRange(8, 2**17), help="Tokens of a sequence.")
@click.option("--shard-sequences", required=True, type=click.IntRange(1, 2**22), help="Sequences of a shard.")
@click.option("--max-shards", type=click.IntRange(min=1), help="Shards to keep; all by default.")
@click.option(
    "--validation", default=256, show_default=True, type=click.IntRange(1, 2**22),
    help="Sequences to hold out; at most a twentieth of the text.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**64 - 1), help="Of the shuffle.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A tokenizer.json; one is trained by default.")
@click.option("--field", default="text", show_default=True, help="Of .jsonl and .parquet: where a record's text is.")
@click.option("--end-of-text", help='Token after each document, "" for none; the tokenizer\'s own by default.')
def pack(
    files: tuple[Path, ...],
    out: Path,
    vocab: int | None,
    sequence: int,
    shard_sequences: int,
    max_shards: int | None,
    validation: int,
    seed: int,
    tokenizer: Path | None,
    field: str,
    end_of_text: str | None,
) -> None:
    """Cut the text of FILES and folders into shards and a validation split, each named by its sha256.

    Reads .txt (and what has another ending) as UTF-8, .jsonl and .ndjson, each also as .gz, and .parquet. What was
    interrupted goes on when the same command is run again.
    """
    from node.commands.packing import shown
    from protocol.training.pack import load_tokenizer, pack_text, tokenizer_vocab

    given = None if tokenizer is None else _read(tokenizer, "tokenizer.json")
    if vocab is None:
        if given is None:
            raise click.UsageError("give --vocab, the size of the tokenizer to train, or --tokenizer")
        vocab = max(16, tokenizer_vocab(load_tokenizer(given)))
    try:
        with shown() as watch:
            packed = pack_text(
                files,
                out,
                vocab=vocab,
                sequence=sequence,
                shard_sequences=shard_sequences,
                seed=seed,
                max_shards=max_shards,
                max_validation=validation,
                tokenizer=given,
                field=field,
                end_of_text=end_of_text,
                watch=watch,
            )
    except KeyboardInterrupt:
        click.echo("stopped; the same command goes on from here", err=True)
        raise
    _tell(packed, out, validation)


def _tell(packed: PackResult, out: Path, wanted: int) -> None:
    manifest = packed.manifest
    count = len(manifest.shards)
    for number, digest in enumerate(manifest.shards[: _LISTED if count > _LISTED + 1 else count]):
        click.echo(f"shard {number:<6} {digest}  {manifest.shard_tokens:,} tokens")
    if count > _LISTED + 1:
        click.echo(f"… and {count - _LISTED:,} more; the manifest names all")
    held_out = manifest.validation_sequences * manifest.sequence
    fewer = (
        ""
        if manifest.validation_sequences == wanted
        else f" ({wanted:,} were asked for: a twentieth of the text has no more)"
    )
    click.echo(f"manifest     {packed.manifest_digest}")
    click.echo(
        f"validation   {manifest.validation}  {manifest.validation_sequences:,} sequences, {held_out:,} tokens{fewer}"
    )
    click.echo(f"tokenizer    {manifest.tokenizer}  vocabulary {manifest.vocab:,}")
    tokens = count * manifest.shard_tokens
    click.echo(f"{count:,} shards of {manifest.shard_tokens:,} tokens, {tokens:,} tokens in all, in {out}")
    click.echo(
        f"""
In the spec:
  "tokenizer": "{manifest.tokenizer}",
  "data": {{"manifest": "{packed.manifest_digest}", "validation": "{manifest.validation}"}},
  and model.vocab {manifest.vocab}, inner.sequence {manifest.sequence}; \
inner.steps × inner.batch = {manifest.shard_sequences} trains a shard once.
In job.toml:
  blobs = "{out}"
Next: gradmarket job plan job.toml"""
    )


@data.command("model")
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False))
def model(config: Path) -> None:
    """Print the `model` of a spec for a Hugging Face CONFIG (config.json)."""
    from protocol.training.documents import canonical_json
    from protocol.training.families import model_from_config

    click.echo(canonical_json(model_from_config(_read(config, "config.json"))).decode())


@data.command("genesis")
@click.argument("spec", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("weights", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the blob.")
def genesis(spec: Path, weights: Path, out: Path) -> None:
    """Make checkpoint 0 of SPEC from published WEIGHTS (model.safetensors); print what its `genesis` must be."""
    from protocol.training.checkpoint import encode_checkpoint, first_checkpoint
    from protocol.training.pack.folder import put_blob
    from protocol.training.spec import parse_spec
    from protocol.training.weights import weights_from_safetensors

    job = parse_spec(_read(spec, "spec"))
    start = first_checkpoint(job, weights_from_safetensors(job, _read(weights, "model.safetensors")))
    click.echo(f"genesis     {put_blob(out, encode_checkpoint(job, start))}")


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; expected a {what}") from None
