"""The people of a development network: each with a home, keys and funds of its own."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from eth_account.signers.local import LocalAccount

from node.wallet import open_wallet
from protocol.chain.keystore import create_key, load_key
from protocol.chain.market import Market
from protocol.chain.transactions import Call, Sender
from protocol.runtime.config import load_config
from verifier.station import HomeConfig

FAST = 2**12  # scrypt iterations of keys that live for minutes
COINS = 10**18  # for gas


@dataclass(frozen=True)
class Person:
    """An owner with one operator, or a poster (who needs no operator)."""

    name: str
    home: Path
    owner: LocalAccount
    operator: LocalAccount


def create_person(name: str, folder: Path, rpc: str, chain_id: int, deployment: Path) -> Person:
    """Write a home: two key files, a password that only its owner can read, config.toml."""
    home = folder / name
    keys = home / "keys"
    keys.mkdir(parents=True)
    password = secrets.token_urlsafe(16)
    secret = home / "password"
    secret.touch(0o600)
    secret.write_text(password)
    for key in ("owner", "operator"):
        create_key(keys / f"{key}.json", password, FAST)
    (home / "config.toml").write_text(
        f"""[chain]
rpc = ["{rpc}"]
id = {chain_id}
deployment = "{deployment}"

[keys]
owner = "keys/owner.json"
operator = "keys/operator.json"
password = "password"

[serve]
host = "127.0.0.1"
port = 0
private_peers = true
"""
    )
    return Person(name, home, load_key(keys / "owner.json", password), load_key(keys / "operator.json", password))


class Transfer:
    """A plain payment, shaped like a contract call so that a Sender can send it."""

    def __init__(self, to: str) -> None:
        self._to = to

    async def estimate_gas(self, fields: Any) -> int:
        return 21_000

    async def build_transaction(self, fields: Any) -> Any:
        return {**fields, "to": self._to, "data": b"", "type": 2}


async def give_coins(bank: Sender, address: str, amount: int = COINS) -> None:
    """Send coins for gas."""
    await bank.submit_and_confirm(f"gift:{address}", cast(Call, Transfer(address)), value=amount)


async def settle_in(market: Market, bank: Sender, person: Person, tokens: int, stake: int, tickets: int) -> None:
    """Coins for both keys, tokens for the owner; operator registered, stake deposited, tickets enrolled."""
    for key in (person.owner, person.operator):
        await give_coins(bank, key.address)
    mint = market.dev_token.functions.mint(person.owner.address, tokens)
    await bank.submit_and_confirm(f"mint:{person.owner.address}", mint)
    if not stake:
        return
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_wallet(person.home, config, person.owner) as wallet:
        await wallet.register(person.operator, person.owner.address, "", bytes(32))
        await wallet.deposit(stake)
        await wallet.enroll(person.operator.address, tickets)
