"""One word, one meaning: the glossary's table of words that are never written."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = ("protocol", "node", "verifier", "contracts")
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def forbidden() -> set[str]:
    """Words and phrases of the last table's right column."""
    table = GLOSSARY.read_text().split("## Never")[1]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("|")][2:]
    return {phrase.strip() for row in rows for phrase in row.split(",")}


def segments(identifier: str) -> list[str]:
    """`openCampaign_id` → open, campaign, id."""
    return [part.lower() for part in SEGMENT.findall(identifier)]


def test_the_table_is_read() -> None:
    assert {"campaign", "worker node", "epoch"} <= forbidden()
    assert segments("openCampaign_id") == ["open", "campaign", "id"]
    assert "lease" not in segments("releaseLock")


def test_no_name_in_the_code_uses_a_forbidden_word() -> None:
    words = {phrase for phrase in forbidden() if " " not in phrase}
    found = []
    for folder in SOURCES:
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.sol")]:
            text = re.sub(r'"[^"\n]*"', '""', path.read_text())  # other programs' words, such as anvil's options
            found += [
                f"{path.relative_to(ROOT)}: {name}" for name in IDENTIFIER.findall(text) if words & {*segments(name)}
            ]
    assert not found


def test_no_page_uses_a_forbidden_word() -> None:
    words = forbidden() - {"epoch"}  # chains have epochs of their own, and a page may speak of them
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(words)))})s?\b", re.I)
    found = []
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text().split("## Never")[0] if path == GLOSSARY else path.read_text()
        found += [f"{path.relative_to(ROOT)}: {word}" for word in pattern.findall(text)]
    assert not found
