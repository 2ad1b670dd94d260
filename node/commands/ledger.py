"""gradmarket ledger: every account, from the chain alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from eth_utils.address import is_address
from rich.console import Console
from rich.table import Table

from node.ledger import Account, Books, check_books, keep_books, read_events, read_gas
from node.session import Home, pass_home, run_async
from node.wallet import open_market
from protocol.core.units import TOKEN, format_tokens

COLUMNS = {
    "staked": "staked",
    "slashed": "slashed",
    "trained": "for training",
    "judged": "for audits",
    "proved": "for proof",
    "funded": "funded",
    "refunded": "refunded",
    "gained": "gain",
}


@click.group()
def ledger() -> None:
    """The books of the market."""


@ledger.command("prove")
@click.option("--json", "as_json", is_flag=True, help="Amounts in wei.")
@click.option("--gas", is_flag=True, help="Add what each account paid for gas; reads every block.")
@click.option(
    "--names", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="JSON file of address to name."
)
@pass_home
@run_async
async def prove(home: Home, as_json: bool, gas: bool, names: Path | None) -> None:
    """Recompute every account from the chain's events and check that all sums come out to the wei."""
    async with open_market(home.config) as market:
        books = keep_books(await read_events(market))
        await check_books(market, books)
        if gas:
            await read_gas(market, books)
    known = _read_names(names)
    if as_json:
        click.echo(json.dumps(as_record(books, known), indent=1))
    else:
        show(make_console(), books, known, gas=gas)


def make_console() -> Console:
    """As wide as the terminal; in a file wide enough that no number is cut."""
    console = Console()
    return console if console.is_terminal else Console(width=130)


def as_record(books: Books, names: dict[str, str]) -> dict[str, object]:
    """Everything in wei, as decimal text where a reader's numbers might be too short."""
    accounts = {
        address: {"name": names.get(address, ""), **{key: str(value) for key, value in asdict(account).items()}}
        for address, account in books.accounts.items()
    }
    totals = {name: str(getattr(books, name)) for name in ("put_in", "burnt", "in_pots", "court_fund", "still_staked")}
    return {"accounts": accounts, **totals, "still_credited": str(books.still_credited)}


def show(console: Console, books: Books, names: dict[str, str], *, gas: bool) -> None:
    """The table, its sums, and what they have to equal; in as many tables as the width asks for."""
    columns = [*COLUMNS.values(), *(["gas (coins)"] if gas else [])]
    involved = {address: account for address, account in books.accounts.items() if account.put_in_or_out}
    rows = sorted((names.get(address, address), _cells(account, gas)) for address, account in involved.items())
    sums = [_short(books.total(column)) for column in COLUMNS] + ([_coins(books.total("gas"))] if gas else [])
    parts = _parts(console.width, columns, [*rows, ("sum", sums)])
    if len(parts) > 1:
        rows = [(_short_name(name), cells) for name, cells in rows]
        parts = _parts(console.width, columns, [*rows, ("sum", sums)])
    for part in parts:
        table = Table(title="Accounts, in tokens (rounded; exact in wei below)", title_justify="left")
        table.add_column("account")
        for number in part:
            table.add_column(columns[number], justify="right", no_wrap=True)
        for name, cells in rows:
            table.add_row(name, *(cells[number] for number in part))
        table.add_section()
        table.add_row("sum", *(sums[number] for number in part))
        console.print(table)
    shares = {
        "withdrawn": books.total("withdrawn") + books.total("unstaked"),
        "burnt": books.burnt,
        "still staked": books.still_staked,
        "credit not yet withdrawn": books.still_credited,
        "court fund": books.court_fund,
        "other pots": books.in_pots - books.court_fund,
    }
    named = " + ".join(f"{format_tokens(amount)} {what}" for what, amount in shares.items())
    console.print(f"put in {format_tokens(books.put_in)} = {named}")
    console.print(f"{books.put_in} = {' + '.join(str(v) for v in shares.values())} wei: the books balance")


def _parts(width: int, columns: list[str], rows: list[tuple[str, list[str]]]) -> list[list[int]]:
    """The numbers of the columns that stand side by side, each table beginning with the names."""
    frame = 3  # a rule and the space around a cell
    first = max(len(name) for name, _ in rows) + frame + 1
    parts: list[list[int]] = [[]]
    left = width - first
    for number, title in enumerate(columns):
        need = max(len(title), *(len(cells[number]) for _, cells in rows)) + frame
        if need > left and parts[-1]:
            parts.append([])
            left = width - first
        parts[-1].append(number)
        left -= need
    return parts


def _cells(account: Account, gas: bool) -> list[str]:
    return [_short(getattr(account, column)) for column in COLUMNS] + ([_coins(account.gas)] if gas else [])


def _coins(wei: int) -> str:
    return f"{wei / 1e18:.6f}"


def _short_name(name: str) -> str:
    """An address by its ends."""
    return f"{name[:8]}…{name[-4:]}" if is_address(name) else name


def _short(wei: int) -> str:
    """Four decimals for the eye; the line below the table and the JSON are exact."""
    return f"{wei / TOKEN:,.4f}" if wei else "-"


def _read_names(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError:
        raise click.BadParameter(f"{path}: expected a JSON object of address to name") from None
    return {str(address): str(name) for address, name in found.items()}
