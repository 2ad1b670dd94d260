"""A Hugging Face config.json, read with one line for every setting that this version does not train."""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.core.text import one_line
from protocol.training.errors import SpecError

MAX_CONFIG_BYTES = 8 * 2**20  # a classifier's file lists the names of its classes
ROPE_THETA = 10000.0


class Config:
    """Settings by name. What the library's module does not read either is not looked at."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def whole(self, *names: str, default: int | None = None) -> int:
        """The first setting of these names that is there and not null, a whole number."""
        value = self.value(*names, default=default)
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse(names[0], "a whole number", value)
        return int(value)

    def number(self, name: str, default: float) -> float:
        """A number."""
        value = self.value(name, default=default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._refuse(name, "a number", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self.value(name, default=default)
        if not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return bool(value)

    def table(self, name: str) -> dict[str, Any]:
        """An object; empty if it is absent or null."""
        value = self.value(name, default={})
        if not isinstance(value, dict):
            self._refuse(name, "an object", value)
        return dict(value)

    def only(self, name: str, trained: object, default: object = None) -> None:
        """Refuse any value but the one that this version trains. `default`: what the library assumes."""
        value = self.value(name, default=trained if default is None else default)
        if value != trained or isinstance(value, bool) != isinstance(trained, bool):
            self._refuse(name, f"{_shown(trained)} (this version trains nothing else)", value)

    def all_of(self, name: str, trained: str) -> None:
        """Refuse a list with any entry but the one that this version trains."""
        entries = self.value(name, default=[])
        if not isinstance(entries, list):
            self._refuse(name, "a list", entries)
        for entry in entries:
            Config({name: entry}).only(name, trained)

    def absent(self, name: str) -> None:
        """Refuse a setting that changes the model, whatever its value."""
        if (value := self.value(name)) is not None:
            self._refuse(name, "nothing (this version does not know it)", value)

    def rope_theta(self) -> float:
        """The base of plain rotary embeddings; every kind of scaling is refused."""
        theta = self.number("rope_theta", ROPE_THETA)
        for name in ("rope_scaling", "rope_parameters"):
            table = self.table(name)
            kind = table.get("rope_type", table.get("type", "default"))
            if kind != "default":
                self._refuse(name, "the type default (this version scales no positions)", kind)
            if table.get("partial_rotary_factor", 1.0) != 1.0:
                self._refuse(f"{name}.partial_rotary_factor", "1.0", table["partial_rotary_factor"])
            theta = Config(table).number("rope_theta", theta)
        self.only("partial_rotary_factor", 1.0)
        return theta

    def value(self, *names: str, default: object = None) -> Any:
        """The first of these settings that is there and not null."""
        for name in names:
            if (value := self._settings.get(name)) is not None:
                return value
        return default

    def _refuse(self, name: str, expected: str, value: object) -> None:
        raise SpecError(f"config.json {name}: expected {expected}, have {_shown(value)}")


def parse_config(data: bytes) -> Config:
    """Raises SpecError in one line."""
    if len(data) > MAX_CONFIG_BYTES:
        raise SpecError(f"config.json: {len(data)} bytes, at most {MAX_CONFIG_BYTES} are read")
    try:
        return Config(msgspec.json.decode(data, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise SpecError(f"config.json: not a JSON object: {one_line(str(failure), 120)}") from None


def _shown(value: object) -> str:
    return one_line(msgspec.json.encode(value).decode(), 60)
