"""The table of accounts on terminals of any width."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from node.commands.ledger import COLUMNS, show
from node.ledger import Account, Books
from protocol.core.units import TOKEN

ADDRESSES = ["0x" + f"{number:02x}" * 20 for number in (0x1A, 0x2B)]
BOOKS = Books(
    accounts={
        ADDRESSES[0]: Account(staked=700 * TOKEN, slashed=TOKEN, trained=12_345 * TOKEN, judged=6 * TOKEN, gas=10**15),
        ADDRESSES[1]: Account(funded=24_030 * TOKEN, refunded=11_000 * TOKEN, proved=2 * TOKEN, gas=2 * 10**15),
    }
)


def shown(width: int, names: dict[str, str]) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show(console, BOOKS, names, gas=True)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def tables(lines: list[str]) -> list[list[str]]:
    """The header's titles of each table."""
    return [[cell.strip() for cell in re.split("[┃│]", line) if cell.strip()] for line in lines if "account " in line]


@pytest.mark.parametrize("width", [60, 80, 100, 130])
@pytest.mark.parametrize("names", [{}, {ADDRESSES[0]: "ada", ADDRESSES[1]: "poster"}], ids=["unnamed", "named"])
def test_no_number_is_cut_and_no_line_is_longer_than_the_terminal(width: int, names: dict[str, str]) -> None:
    lines = shown(width, names)
    assert max(map(len, lines)) <= width
    table = "\n".join(line for line in lines if "│" in line)
    for number in ("700.0000", "12,345.0000", "24,030.0000", "-13,028.0000", "0.002000", "0.003000"):
        assert number in table
    assert "…" not in table.replace("0x1a1a1a…1a1a", "").replace("0x2b2b2b…2b2b", "")


def test_one_table_where_it_fits_and_every_column_once_where_it_does_not() -> None:
    names = {ADDRESSES[0]: "ada", ADDRESSES[1]: "poster"}
    titles = [*COLUMNS.values(), "gas (coins)"]
    assert tables(shown(130, names)) == [["account", *titles]]
    narrow = tables(shown(80, names))
    assert len(narrow) == 2
    assert [title for part in narrow for title in part if title != "account"] == titles
