"""What moved over the wire, per kind of blob, payload bytes only (no headers, no TCP)."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Traffic:
    """Bytes by kind since the start; `received` counts a lying source's too, but no answer that broke off."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
