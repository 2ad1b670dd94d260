"""Typed configuration from a TOML file. A mistake is one line: the file, the field, what is expected.

class Chain(Config):
    urls: list[str]
    confirmations: int = 12

class NodeConfig(Config):
    chain: Chain
    state: Path                 # relative to the file's own folder, `~` is the home folder

config = load_config(Path("node.toml"), NodeConfig)
"""

import difflib
import tomllib
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from protocol.core.text import one_line
from protocol.runtime.errors import ConfigError

MAX_CONFIG_BYTES: Final = 2**20  # 1 MiB


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every configuration section."""


ConfigT = TypeVar("ConfigT", bound=Config)


def load_config(path: Path, kind: type[ConfigT]) -> ConfigT:
    """The file as a `kind`, or ConfigError."""
    data = _read(path)
    _check_names(path, data, inspect.type_info(kind), "")
    try:
        return msgspec.convert(data, kind, strict=True, dec_hook=lambda wanted, value: _path(path, wanted, value))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise ConfigError(f"{path}: {where.rstrip('`') or 'the file'}: {what}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path}: {path.stat().st_size} bytes, expected at most {MAX_CONFIG_BYTES}")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def _check_names(path: Path, data: Any, kind: inspect.Type, where: str) -> None:
    """Name an unknown field together with the nearest names that are valid there."""
    if isinstance(kind, inspect.UnionType):
        structs = [member for member in kind.types if isinstance(member, inspect.StructType)]
        kind = structs[0] if len(structs) == 1 else kind
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(data, list):
        for index, item in enumerate(data):
            _check_names(path, item, kind.item_type, f"{where}[{index}]")
    elif isinstance(kind, inspect.DictType) and isinstance(data, dict):
        for name, item in data.items():
            _check_names(path, item, kind.value_type, f"{where}.{name}")
    elif isinstance(kind, inspect.StructType) and isinstance(data, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        for name, item in data.items():
            if name not in fields:
                raise ConfigError(_unknown(path, f"{where}.{name}".removeprefix("."), name, list(fields)))
            _check_names(path, item, fields[name], f"{where}.{name}")


def _unknown(path: Path, where: str, name: str, valid: list[str]) -> str:
    near = difflib.get_close_matches(name, valid, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"valid names: {', '.join(valid)}"
    return f"{path}: unknown field {one_line(where, 200)}; {hint}"


def _path(file: Path, wanted: type, value: Any) -> Any:
    if wanted is Path and isinstance(value, str):
        return file.parent.absolute() / Path(value).expanduser()
    raise ValueError(f"Expected a path as a string, got {type(value).__name__}")
