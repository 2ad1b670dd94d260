"""The pages about the contracts are what their sources say now."""

from __future__ import annotations

import pytest

from docs.make_contracts import FOLDER, pages

MARK = "Written by `python -m docs.make_contracts`; do not edit."


@pytest.fixture(scope="module")
def fresh() -> dict[str, str]:
    return {path.name: text for path, text in pages().items()}


def test_every_page_is_what_its_contract_says_now(fresh: dict[str, str]) -> None:
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = [name for name, text in fresh.items() if there.get(name) != text]
    assert not stale, "run `python -m docs.make_contracts`"


def test_no_page_is_left_of_a_contract_that_is_gone(fresh: dict[str, str]) -> None:
    written = {path.name for path in FOLDER.glob("*.md") if MARK in path.read_text()}
    assert written == set(fresh)


def test_every_call_says_what_it_does(fresh: dict[str, str]) -> None:
    calls = [(name, call) for name, text in fresh.items() for call in text.split("\n## ")[1:]]
    silent = [(name, call.split("\n")[0]) for name, call in calls if not call.split("\n\n")[2:]]
    assert not [pair for pair in silent if pair[1] != "Views"]
