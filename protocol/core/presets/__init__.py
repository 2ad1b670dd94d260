"""What a deployment fixes for all of its jobs: value, unit and derivation, in one file per preset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from protocol.core.errors import GradmarketError


class UnknownPreset(GradmarketError):
    """A preset that is not shipped."""


@dataclass(frozen=True)
class Parameter:
    """A number and the reason for it. `name` is the Solidity one."""

    name: str
    value: int | str
    unit: str
    why: str


@dataclass(frozen=True)
class BeaconChoice:
    """The beacon contract to deploy, its constructor's arguments by name, and what it needs of a chain."""

    kind: str
    why: str
    needs: tuple[str, ...]
    arguments: dict[str, Parameter]


@dataclass(frozen=True)
class Rules:
    """The constructor argument of the contracts (`Preset` in Types.sol)."""

    slash_panel: int
    slash_needed: int
    appeal_panel: int
    appeal_needed: int
    detection_bps: int
    probation_audits: int
    abandon_after: int
    ticket_exit: int
    min_demand: int
    min_window: int
    ticket: int
    calibrated: bool

    def as_tuple(self) -> tuple[int, ...]:
        """In the order of Types.sol."""
        return tuple(self.parameter(name) for name in _FIELDS)

    def parameter(self, name: str) -> int:
        """By its name in Types.sol."""
        value: int = getattr(self, _FIELDS[name])
        return value


@dataclass(frozen=True)
class Preset(Rules):
    """The rules of a deployment, and what a job gets that names nothing else.

    `windows` in seconds, `terms` as job files write them. `chains` are the ids that it may be deployed on; none means
    any, if it is named. `reasons` holds every number once more with unit and derivation.
    """

    name: str
    windows: dict[str, int]
    terms: dict[str, int | str]
    beacon: BeaconChoice
    chains: tuple[int, ...]
    reasons: tuple[Parameter, ...]


# Solidity's name -> Python's, in the order of Types.sol
_FIELDS = {
    "slashPanel": "slash_panel",
    "slashNeeded": "slash_needed",
    "appealPanel": "appeal_panel",
    "appealNeeded": "appeal_needed",
    "detectionBps": "detection_bps",
    "probationAudits": "probation_audits",
    "abandonAfter": "abandon_after",
    "ticketExit": "ticket_exit",
    "minDemand": "min_demand",
    "minWindow": "min_window",
    "ticket": "ticket",
    "calibrated": "calibrated",
}
PARAMETERS = tuple(_FIELDS)


def preset_names() -> list[str]:
    """The shipped presets."""
    folder = resources.files(__package__)
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json"))


def load_preset(name: str) -> Preset:
    """Read a shipped preset by name."""
    known = preset_names()
    if name not in known:
        raise UnknownPreset(f"preset {name!r}: expected one of {', '.join(known)}")
    table = json.loads(resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
    parameters, windows, terms = (_parameters(table[part]) for part in ("parameters", "windows", "terms"))
    values: dict[str, Any] = {field: parameters[key].value for key, field in _FIELDS.items()}
    beacon = table["beacon"]
    return Preset(
        name=name,
        windows={key: int(window.value) for key, window in windows.items()},
        terms={key: term.value for key, term in terms.items()},
        beacon=BeaconChoice(beacon["kind"], beacon["why"], tuple(beacon["needs"]), _parameters(beacon["arguments"])),
        chains=tuple(table["chains"]["ids"]),
        reasons=(*parameters.values(), *windows.values(), *terms.values()),
        **values,
    )


def _parameters(rows: dict[str, dict[str, Any]]) -> dict[str, Parameter]:
    return {name: Parameter(name, row["value"], row["unit"], row["why"]) for name, row in rows.items()}
