"""The committed gas table is what the contracts cost now."""

from __future__ import annotations

import shutil

import pytest

from tests.contract import gas_table


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npx") is None, reason="Hardhat needs Node")
def test_the_gas_table_is_what_is_measured_now() -> None:
    assert gas_table.PAGE.read_text() == gas_table.page(gas_table.measure())


def test_the_table_names_every_step_of_a_round() -> None:
    text = gas_table.PAGE.read_text()
    for call in ("open", "claim", "commit", "attest", "draw", "settle"):
        assert f"`RoundBook.{call}`" in text


def test_the_table_has_a_column_for_each_size_of_a_round() -> None:
    rows = [line.split("|")[1:-1] for line in gas_table.PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    assert cells["call"] == [f"{n} shard{'s' * (n > 1)}" for n in gas_table.SHARDS], "the last table of calls"
    for call in ("open", "commit", "draw", gas_table.ONE, gas_table.SETTLED):
        assert len([cell for cell in cells[call] if cell != "–"]) == len(gas_table.SHARDS)
    assert cells[gas_table.QUARTER][0] == "–", "one shard has no quarter"
