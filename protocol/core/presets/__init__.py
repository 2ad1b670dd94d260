"""What a deployment fixes for all of its jobs: value, unit and derivation, in one file per preset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from protocol.core.errors import GradmarketError


class UnknownPreset(GradmarketError):
    """A preset that is not shipped."""


@dataclass(frozen=True)
class Preset:
    """The constructor argument of the contracts (Types.sol), and default windows in seconds."""

    name: str
    slash_panel: int
    slash_needed: int
    detection_bps: int
    probation_audits: int
    abandon_after: int
    ticket_exit: int
    min_demand: int
    min_ticket: int
    windows: dict[str, int]

    def as_tuple(self) -> tuple[int, ...]:
        """In the order of Types.sol."""
        return (
            self.slash_panel, self.slash_needed, self.detection_bps, self.probation_audits,
            self.abandon_after, self.ticket_exit, self.min_demand, self.min_ticket,
        )  # fmt: skip


_FIELDS = {
    "slash_panel": "slashPanel",
    "slash_needed": "slashNeeded",
    "detection_bps": "detectionBps",
    "probation_audits": "probationAudits",
    "abandon_after": "abandonAfter",
    "ticket_exit": "ticketExit",
    "min_demand": "minDemand",
    "min_ticket": "minTicket",
}


def load_preset(name: str) -> Preset:
    """Read a shipped preset by name."""
    folder = resources.files(__package__)
    known = sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json"))
    if name not in known:
        raise UnknownPreset(f"preset {name!r}: expected one of {', '.join(known)}")
    table = json.loads(folder.joinpath(f"{name}.json").read_text())
    values = {field: int(table["parameters"][key]["value"]) for field, key in _FIELDS.items()}
    return Preset(name=name, windows=dict(table["windows"]), **values)
