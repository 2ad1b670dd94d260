"""Files of text as streams of documents: a .txt is one, a line of .jsonl or a row of .parquet is one.

What is read at a time is bounded: a block of a text file, a line of at most MAX_RECORD_BYTES, a few rows.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from protocol.core.text import one_line
from protocol.training.errors import DataError

MAX_RECORD_BYTES = 2**26
BLOCK_BYTES = 2**20  # of a text file, at a time; the pack does not depend on it
_BATCH_ROWS = 64
_ENDINGS = re.compile(r"\.(?:(txt|jsonl|ndjson)(?:\.gz)?|(parquet))$", re.I)
_BYTE_ORDER_MARK = "\ufeff"

Moved = Callable[[int], None]  # told how many bytes of the file have been read


class Source(msgspec.Struct, frozen=True):
    """A file as it was when the pack began: packing a file that changes meanwhile is refused."""

    path: str
    size: int
    modified: int  # nanoseconds


@dataclass(frozen=True)
class Document:
    """Its text in parts, from the start each time it is asked for."""

    texts: Callable[[], Iterator[str]]


def find_sources(paths: Sequence[Path]) -> tuple[Source, ...]:
    """The files, and those in the folders with a known ending, by name. Raises DataError for missing or empty ones."""
    sources: list[Source] = []
    for path in paths:
        if path.is_dir():
            inside = [_source(file) for file in sorted(path.rglob("*")) if _ENDINGS.search(file.name)]
            if not any(source.size for source in inside):
                raise DataError(f"pack {path}: no .txt, .jsonl, .ndjson (plain or .gz) or .parquet with text in it")
            sources += [source for source in inside if source.size]
        else:
            sources.append(_source(path))
            if not sources[-1].size:
                raise DataError(f"pack {path}: the file is empty")
    return tuple(sources)


def check_unchanged(sources: Sequence[Source]) -> None:
    """Raise DataError for a file that is no longer what it was when the pack began."""
    for source in sources:
        if _source(Path(source.path)) != source:
            raise DataError(f"pack {source.path}: the file changed while it was packed; pack again")


def documents(source: Source, field: str, moved: Moved) -> Iterator[Document]:
    """Every document of the file. Raises DataError with the file and the place of what cannot be read."""
    path = Path(source.path)
    found = _ENDINGS.search(path.name)
    kind = (found.group(1) or found.group(2)).lower() if found else "txt"
    if kind == "parquet":
        yield from _rows(source, field, moved)
    elif kind == "txt":
        yield Document(lambda: _text(path, moved))
    else:
        yield from _lines(path, field, moved)


def _source(path: Path) -> Source:
    try:
        facts = path.stat()
    except OSError as failure:
        raise DataError(f"pack {path}: cannot be read: {failure.strerror}") from None
    return Source(str(path.resolve()), facts.st_size, facts.st_mtime_ns)


def _text(path: Path, moved: Moved) -> Iterator[str]:
    """Decoded block by block, every kind of line end as \\n, without a byte order mark."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line_ends = io.IncrementalNewlineDecoder(None, translate=True)
    position, first = 0, True
    for block in _blocks(path, moved):
        waiting = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as failure:
            raise DataError(_not_utf8(str(path), failure, position - waiting)) from None
        position += len(block)
        text = line_ends.decode(text, final=not block)
        if first and text:
            text, first = text.removeprefix(_BYTE_ORDER_MARK), False
        if text:
            yield text


def _blocks(path: Path, moved: Moved) -> Iterator[bytes]:
    """The file's bytes, unpacked; the last block is empty."""
    with _opened(path) as (stream, raw):
        block = b" "
        while block:
            block = _guarded(path, lambda: stream.read(BLOCK_BYTES))
            moved(raw.tell())
            yield block


def _lines(path: Path, field: str, moved: Moved) -> Iterator[Document]:
    record = msgspec.defstruct("Record", [("text", str)], rename={"text": field})
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(record)
    with _opened(path) as (stream, raw):
        number = 0
        while line := _guarded(path, lambda: stream.readline(MAX_RECORD_BYTES + 1)):
            number += 1
            moved(raw.tell())
            if len(line) > MAX_RECORD_BYTES:
                raise DataError(f"pack {path}:{number}: a line of more than {MAX_RECORD_BYTES:,} bytes")
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                yield _in_memory(_record(decoder, line, field, f"{path}:{number}"))


def _record(decoder: msgspec.json.Decoder[Any], line: bytes, field: str, place: str) -> str:
    try:
        line.decode()
        return str(decoder.decode(line).text)
    except UnicodeDecodeError as failure:
        raise DataError(_not_utf8(place, failure, 0)) from None
    except msgspec.ValidationError:
        raise DataError(f"pack {place}: {_explain(line, field)}") from None
    except (msgspec.DecodeError, RecursionError) as failure:
        raise DataError(f"pack {place}: not JSON: {failure}") from None


def _explain(line: bytes, field: str) -> str:
    """Why a line of JSON is not a record with a text."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as failure:  # behind what the strict reading stopped at
        return f"not JSON: {failure}"
    if not isinstance(value, dict):
        return f'expected an object with the field "{field}", have {type(value).__name__}'
    if field not in value:
        names = one_line(", ".join(value), 100) or "nothing"
        return f'no field "{field}"; it has {names} (choose one with --field)'
    return f'field "{field}": expected a text, have {one_line(msgspec.json.encode(value[field]).decode(), 60)}'


def _rows(source: Source, field: str, moved: Moved) -> Iterator[Document]:
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        raise DataError(f"pack {source.path}: reading Parquet needs pyarrow; run: pip install 'pyarrow>=17'") from None
    try:
        file = parquet.ParquetFile(source.path, buffer_size=BLOCK_BYTES, pre_buffer=False)
        schema, count, number = file.schema_arrow, file.metadata.num_rows, 0
        if field not in schema.names:
            names = one_line(", ".join(schema.names), 100)
            raise DataError(f'pack {source.path}: no column "{field}"; it has {names} (choose one with --field)')
        kind = schema.field(field).type
        if not (types.is_string(kind) or types.is_large_string(kind)):
            raise DataError(f'pack {source.path}: column "{field}": expected texts, have {kind}')
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[field]):
            for text in batch.column(0).to_pylist():
                number += 1
                if text is None:
                    raise DataError(f'pack {source.path}: row {number}: column "{field}" is null')
                yield _in_memory(text)
            moved(source.size * number // count)
    except UnicodeDecodeError as failure:
        raise DataError(_not_utf8(f"{source.path}: row {number}", failure, 0)) from None
    except (OSError, ArrowException) as failure:
        raise DataError(f"pack {source.path}: not a readable Parquet file: {one_line(failure, 200)}") from None


def _in_memory(text: str) -> Document:
    return Document(lambda: iter((text,) if text else ()))


def _not_utf8(place: str, failure: UnicodeDecodeError, start: int) -> str:
    byte = failure.object[failure.start]
    return f"pack {place}: not UTF-8 text: byte {start + failure.start} is 0x{byte:02x} ({failure.reason})"


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file's bytes, unpacked, and the file itself, whose position is the progress."""
    with _guarded(path, lambda: path.open("rb")) as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as unpacked:
                stream: Any = unpacked
                yield stream, raw
        else:
            yield raw, raw


def _guarded(path: Path, read: Callable[[], Any]) -> Any:
    """What `read` returns, or DataError in one line."""
    try:
        return read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as failure:
        raise DataError(f"pack {path}: broken gzip: {failure}") from None
    except OSError as failure:
        raise DataError(f"pack {path}: cannot be read: {failure.strerror}") from None
