"""gradmarket ledger: every account, from the chain alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from node.ledger import Books, check_books, keep_books, read_events, read_gas
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
    """The table, its sums, and what they have to equal."""
    table = Table(title="Accounts, in tokens (rounded; exact in wei below)", title_justify="left")
    table.add_column("account")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")
    if gas:
        table.add_column("gas (coins)", justify="right")
    rows = [(names.get(a, a), account) for a, account in books.accounts.items() if account.put_in_or_out]
    for name, account in sorted(rows, key=lambda row: row[0]):
        cells = [_short(getattr(account, column)) for column in COLUMNS]
        table.add_row(name, *cells, *([f"{account.gas / 1e18:.6f}"] if gas else []))
    sums = [_short(books.total(column)) for column in COLUMNS]
    table.add_section()
    table.add_row("sum", *sums, *([f"{books.total('gas') / 1e18:.6f}"] if gas else []))
    console.print(table)
    parts = {
        "withdrawn": books.total("withdrawn") + books.total("unstaked"),
        "burnt": books.burnt,
        "still staked": books.still_staked,
        "credit not yet withdrawn": books.still_credited,
        "court fund": books.court_fund,
        "other pots": books.in_pots - books.court_fund,
    }
    named = " + ".join(f"{format_tokens(amount)} {what}" for what, amount in parts.items())
    console.print(f"put in {format_tokens(books.put_in)} = {named}")
    console.print(f"{books.put_in} = {' + '.join(str(v) for v in parts.values())} wei: the books balance")


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
