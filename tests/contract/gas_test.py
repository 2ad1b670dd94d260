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
