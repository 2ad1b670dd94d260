"""Who was paid what, from the chain's events alone; every sum must come out to the wei."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from protocol.chain.follower import Follower, Rollback
from protocol.chain.logs import Event
from protocol.chain.market import Market
from protocol.core.commitment import COURT_FUND, round_pot
from protocol.core.errors import GradmarketError

CONTRACTS = (
    "StakeVault",
    "RewardLedger",
    "OperatorRegistry",
    "JobMarket",
    "RoundBook",
    "TicketBook",
    "AuditCourt",
    "CheckpointCourt",
)


class BooksDoNotBalance(GradmarketError):
    """The events and the balances on chain contradict each other: a fault of the contracts."""


@dataclass
class Account:
    """What one address put in and got out; wei. `trained`, `judged`, `proved`, `refunded` are credits by reason."""

    staked: int = 0
    unstaked: int = 0
    slashed: int = 0
    funded: int = 0
    trained: int = 0
    judged: int = 0
    proved: int = 0
    refunded: int = 0
    withdrawn: int = 0
    gas: int = 0

    @property
    def credited(self) -> int:
        return self.trained + self.judged + self.proved + self.refunded

    @property
    def put_in_or_out(self) -> bool:
        """Whether the account ever had to do with the market's money."""
        return bool(self.staked or self.funded or self.credited)

    @property
    def gained(self) -> int:
        """Credits less what was funded and slashed: what the market made of this account."""
        return self.credited - self.funded - self.slashed


@dataclass
class Books:
    """All accounts, and what belongs to none: burnt wei, and wei that pots still hold."""

    accounts: dict[str, Account] = field(default_factory=dict)
    burnt: int = 0
    in_pots: int = 0
    court_fund: int = 0

    def of(self, address: str) -> Account:
        return self.accounts.setdefault(address, Account())

    def total(self, name: str) -> int:
        return sum(int(getattr(account, name)) for account in self.accounts.values())

    @property
    def put_in(self) -> int:
        return self.total("staked") + self.total("funded")

    @property
    def still_staked(self) -> int:
        return self.total("staked") - self.total("unstaked") - self.total("slashed")

    @property
    def still_credited(self) -> int:
        return self.total("credited") - self.total("withdrawn")


class MemoryCursor:
    """A follower's position for one run: the books are read from the first block each time."""

    async def load(self, name: str) -> bytes | None:
        return None

    async def save(self, name: str, value: bytes) -> None:
        return None


async def read_events(market: Market) -> list[Event]:
    """All events of the market's contracts, in order."""
    contracts = {name: getattr(market, snake(name)) for name in CONTRACTS}
    follower = Follower(market.connection, contracts, market.deployment.block, MemoryCursor(), name="books")
    events: list[Event] = []
    while batch := await follower.poll():
        for item in batch:
            if isinstance(item, Rollback):
                events = [event for event in events if event.block_number <= item.to_block]
            else:
                events.append(item)
    return events


def keep_books(events: Iterable[Event]) -> Books:
    """Post every event to the accounts. Pure: the same events give the same books."""
    books, pots = Books(), _Pots()
    previous: Event | None = None
    for event in events:
        pots.learn(event)
        args = event.args
        if event.contract == "StakeVault":
            _post_stake(books, event.name, args)
        elif event.name == "Credited":
            books.in_pots -= args["amount"]
            account, reason = books.of(args["account"]), pots.reason(event, previous)
            setattr(account, reason, getattr(account, reason) + args["amount"])
        elif event.contract == "RewardLedger":
            _post_ledger(books, event.name, args)
        previous = event
    return books


@dataclass
class _Pots:
    """What a pot of the ledger is, learnt from the books' own events."""

    jobs: set[bytes] = field(default_factory=set)
    rounds: set[bytes] = field(default_factory=set)

    def learn(self, event: Event) -> None:
        if event.name == "JobPosted":
            self.jobs.add(event.args["jobId"])
        elif event.name == "RoundOpened":
            self.rounds.add(round_pot(event.args["jobId"], event.args["round"]))

    def reason(self, credit: Event, previous: Event | None) -> str:
        """A seat's fee is announced by the event just before it; what else a case pays is for proof or damage."""
        pot = credit.args["pot"]
        if pot in self.jobs:
            return "refunded"
        if pot in self.rounds:
            return "trained"
        return "judged" if previous is not None and previous.name == "SeatPaid" else "proved"


def _post_stake(books: Books, name: str, args: dict[str, Any]) -> None:
    match name:
        case "Deposited":
            books.of(args["owner"]).staked += args["amount"]
        case "Withdrawn":
            books.of(args["owner"]).unstaked += args["amount"]
        case "Slashed":
            books.of(args["owner"]).slashed += args["amount"]
            books.burnt += args["burnt"]


def _post_ledger(books: Books, name: str, args: dict[str, Any]) -> None:
    match name:
        case "Funded":
            books.of(args["payer"]).funded += args["amount"]
            books.in_pots += args["amount"]
        case "Absorbed":
            books.in_pots += args["amount"]
        case "Moved":
            books.court_fund += args["amount"] * ((args["to"] == COURT_FUND) - (args["from"] == COURT_FUND))
        case "Burnt":
            books.burnt += args["amount"]
            books.in_pots -= args["amount"]
        case "Withdrawn":
            books.of(args["account"]).withdrawn += args["amount"]


async def check_books(market: Market, books: Books) -> None:
    """Raise BooksDoNotBalance unless what went in is what went out, was burnt and is still held, and the chain says the
    same of the two vaults' tokens, of every account and of the court fund."""
    out = books.total("unstaked") + books.total("withdrawn") + books.burnt
    held = books.still_staked + books.still_credited + books.in_pots
    balances = {
        "StakeVault": (await market.token_balance(market.deployment.address("StakeVault")), books.still_staked),
        "RewardLedger": (
            await market.token_balance(market.deployment.address("RewardLedger")),
            books.still_credited + books.in_pots,
        ),
    }
    wrong = [f"put in {books.put_in}, got out {out}, still held {held}"] if books.put_in != out + held else []
    (fund,) = await market.pots([COURT_FUND])
    balances["the court fund"] = (fund, books.court_fund)
    balances |= await _accounts(market, books)
    wrong += [f"{name} holds {have}, its events say {say}" for name, (have, say) in balances.items() if have != say]
    if wrong:
        raise BooksDoNotBalance(f"the books do not balance (wei): {'; '.join(wrong)}")


async def _accounts(market: Market, books: Books) -> dict[str, tuple[int, int]]:
    """Stake and credit of every account: on chain, and by its events."""
    vault, ledger = market.stake_vault.functions, market.reward_ledger.functions
    found = {}
    for address, account in books.accounts.items():
        stake, credit = account.staked - account.unstaked - account.slashed, account.credited - account.withdrawn
        found[f"the stake of {address}"] = (int(await market.call(vault.balanceOf(address))), stake)
        found[f"the credit of {address}"] = (int(await market.call(ledger.creditOf(address))), credit)
    return found


async def read_gas(market: Market, books: Books) -> None:
    """Add what every account paid for gas (wei of the chain's coin) since the market was deployed."""
    w3: Any = market.connection.w3
    for number in range(market.deployment.block, await market.connection.block_number() + 1):
        block = await w3.eth.get_block(number)
        for tx_hash in block["transactions"]:
            receipt = await w3.eth.get_transaction_receipt(tx_hash)
            books.of(receipt["from"]).gas += int(receipt["gasUsed"]) * int(receipt["effectiveGasPrice"])


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
