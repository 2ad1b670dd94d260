"""A person's key and the market: what owners and posters sign themselves, each command its own short session."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from eth_account.signers.local import LocalAccount
from eth_utils.address import is_address, to_checksum_address

from protocol.chain.bindings import Deployment, check_deployed
from protocol.chain.connection import connect
from protocol.chain.keystore import load_key, read_password
from protocol.chain.market import Market
from protocol.chain.signer import sign_registration
from protocol.chain.transactions import Sender
from protocol.core.errors import GradmarketError
from protocol.core.units import format_tokens
from protocol.runtime.errors import ConfigError
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from verifier.station import HomeConfig

CONSENT_SECONDS = 3600  # an operator key's consent to its registration is good for this long


class NotEnough(GradmarketError):
    """Less than a command needs: have and need, before anything is sent."""


class BadAddress(GradmarketError):
    """A text that is no address."""


@dataclass(frozen=True)
class Wallet:
    """An unlocked key with its sender."""

    market: Market
    sender: Sender
    account: LocalAccount

    @property
    def address(self) -> str:
        return self.sender.address

    async def check_tokens(self, need: int, what: str) -> None:
        """Raise NotEnough unless the wallet holds `need` wei of tokens."""
        if need <= 0:
            raise NotEnough(f"{what}: an amount of 0 does nothing; name a positive number of tokens")
        have = await self.market.token_balance(self.address)
        if have < need:
            raise NotEnough(f"{what}: {self.address} has {format_tokens(have)} tokens, needs {format_tokens(need)}")

    async def allow(self, contract: str, amount: int) -> None:
        """Let a vault pull exactly `amount` wei, if it may not yet."""
        token, spender = self.market.dev_token, self.market.deployment.address(contract)
        if await self.market.call(token.functions.allowance(self.address, spender)) < amount:
            call = token.functions.approve(spender, amount)
            await self.sender.submit_and_confirm(f"approve:{contract}:{amount}", call)

    async def deposit(self, amount: int) -> None:
        """Add to the own stake."""
        await self.check_tokens(amount, "stake deposit")
        await self.allow("StakeVault", amount)
        vault = self.market.stake_vault.functions
        await self.sender.submit_and_confirm("deposit:stake", vault.deposit(self.address, amount))

    async def withdraw_stake(self, amount: int) -> None:
        """Take unlocked stake back; 0 for all of it."""
        free = await self.market.call(self.market.stake_vault.functions.freeOf(self.address))
        if free < max(amount, 1):
            locked = await self.market.call(self.market.stake_vault.functions.lockedOf(self.address))
            raise NotEnough(
                f"stake withdraw: {format_tokens(free)} tokens are free, {format_tokens(locked)} are locked, "
                f"asked for {format_tokens(amount) if amount else 'all that is free'}"
            )
        await self.sender.submit_and_confirm("withdraw:stake", self.market.stake_vault.functions.withdraw(amount))

    async def withdraw_rewards(self, account: str, amount: int) -> int:
        """Send an account its credit; 0 for all. Returns the wei sent."""
        ledger = self.market.reward_ledger.functions
        have = int(await self.market.call(ledger.creditOf(account)))
        if have < max(amount, 1):
            raise NotEnough(f"rewards withdraw: {account} has {format_tokens(have)} tokens of credit")
        await self.sender.submit_and_confirm("withdraw:rewards", ledger.withdraw(account, amount))
        return amount or have

    async def register(self, operator: LocalAccount, payout: str, endpoint: str, determinism_class: bytes) -> None:
        """Name a hot key as an operator of this owner, with its consent. Repeating it changes nothing.

        An empty endpoint leaves the one that is known: a running node announces its own.
        """
        if not is_address(payout):
            raise BadAddress(f"payout {payout!r}: expected an address, 0x and 40 hex digits")
        payout = to_checksum_address(payout)
        registry = self.market.operator_registry
        owner, paid_to, retired, *_, known = await self.market.call(registry.functions.operatorOf(operator.address))
        endpoint = endpoint or known
        if owner == self.address and paid_to == payout and not retired and known == endpoint:
            return
        nonce = await self.market.call(registry.functions.nonceOf(operator.address))
        deadline = await self.market.connection.now() + CONSENT_SECONDS
        signature = sign_registration(
            operator, self.market.connection.chain_id, registry.address, self.address, payout, nonce, deadline
        )
        call = registry.functions.register(
            operator.address, payout, endpoint, bytes(32), determinism_class, deadline, signature
        )
        await self.sender.submit_and_confirm(f"register:{operator.address}", call)

    async def enroll(self, operator: str, amount: int) -> None:
        """Lock stake behind an operator's readiness to sit on panels."""
        free = await self.market.call(self.market.stake_vault.functions.freeOf(self.address))
        if free < amount:
            raise NotEnough(f"enroll: {format_tokens(free)} tokens of stake are free, need {format_tokens(amount)}")
        call = self.market.audit_court.functions.enroll(operator, amount)
        await self.sender.submit_and_confirm("enroll:ticket", call)

    async def exit_tickets(self) -> int:
        """Announce the exit of every ticket, release those that are over; returns how many are still locked."""
        now, locked = await self.market.connection.now(), 0
        court = self.market.audit_court.functions
        for ticket in await self.market.tickets(self.address):
            if ticket.released:
                continue
            if ticket.exit_at == 0:
                await self.sender.submit_and_confirm(f"exit-ticket:{ticket.number}", court.exit(ticket.number))
            elif ticket.exit_at < now and ticket.used == 0:
                await self.sender.submit_and_confirm(f"release-ticket:{ticket.number}", court.release(ticket.number))
                continue
            locked += 1
        return locked


@contextlib.asynccontextmanager
async def open_wallet(home: Path, config: HomeConfig, account: LocalAccount) -> AsyncIterator[Wallet]:
    """A session for one key. Its outbox lies in its own folder, so that a running node does not block it."""
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_store(home / "wallets" / account.address.lower()))
        market = await stack.enter_async_context(open_market(config))
        outbox = Outbox(database, market.connection.key, account.address)
        sender = Sender(market.connection, account, outbox, config.chain.fees)
        await sender.resume()
        yield Wallet(market, sender, account)


@contextlib.asynccontextmanager
async def open_market(config: HomeConfig) -> AsyncIterator[Market]:
    """The market of a configuration, for reading."""
    async with await connect(config.chain.rpc, config.chain.id) as connection:
        await connection.check_fresh(config.chain.max_head_age)
        deployment = Deployment.load(config.chain.deployment)
        await check_deployed(connection, deployment)
        yield Market(connection, deployment)


def unlock(config: HomeConfig, which: str) -> LocalAccount:
    """The account of config.keys.<which>."""
    path: Path | None = getattr(config.keys, which)
    if path is None:
        raise ConfigError(f"config.toml: keys.{which} is missing; expected the path of a key file (`wallet new`)")
    return load_key(path, read_password(config.keys.password, f"Password of {path.name}: "))
