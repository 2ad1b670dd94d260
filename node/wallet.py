"""A person's key and the market: what owners and posters sign themselves, each command its own short session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from eth_account.signers.local import LocalAccount
from eth_utils.address import is_address, to_checksum_address

from protocol.chain.bindings import Deployment, check_deployed
from protocol.chain.connection import connect
from protocol.chain.keystore import load_key, read_password
from protocol.chain.market import Market
from protocol.chain.signer import sign_registration
from protocol.chain.transactions import Sender
from protocol.core.delegation import Domain
from protocol.core.errors import GradmarketError
from protocol.core.operator import FOREVER, MOST_TICKETS, Scope
from protocol.core.presets import load_preset
from protocol.core.times import utc
from protocol.core.units import format_tokens
from protocol.runtime.errors import ConfigError
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from verifier.station import HomeConfig

CONSENT_SECONDS = 3600  # an operator key's consent to its registration is good for this long


class NotEnough(GradmarketError):
    """Less than a command needs: have and need, before anything is sent."""


class DelegationOver(GradmarketError):
    """A delegation that would end before now."""


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
        token, spender = self.market.token, self.market.deployment.address(contract)
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

    async def register(
        self,
        operator: LocalAccount,
        payout: str,
        endpoint: str,
        determinism_class: bytes,
        scopes: Scope | None = None,
        expiry: int | None = None,
    ) -> None:
        """Name a hot key as an operator of this owner, with its consent. Repeating it changes nothing.

        An empty endpoint or class leaves the one that is known: a running node announces its own. So do scopes and an
        expiry of None; a new key gets all scopes for ever. Raises DelegationOver rather than renew without being told.
        """
        if not is_address(payout):
            raise BadAddress(f"payout {payout!r}: expected an address, 0x and 40 hex digits")
        registry, connection = self.market.operator_registry, self.market.connection
        now, entry = await connection.now(), await self.market.operator(operator.address)
        is_mine = entry.owner == self.address
        wanted = replace(
            entry,
            owner=self.address,
            scopes=scopes or (entry.scopes if is_mine else Scope.ALL),
            expiry=expiry if expiry is not None else entry.expiry if is_mine else FOREVER,
            revoked=False,
            payout=to_checksum_address(payout),
            determinism_class=determinism_class if any(determinism_class) else entry.determinism_class,
            endpoint=endpoint or entry.endpoint,
        )
        if wanted == entry and wanted.is_active(now):
            return
        if wanted.expiry < now:
            raise DelegationOver(
                f"operator {operator.address}: {utc(wanted.expiry)} is over; name a later end with --expires, or never"
            )
        nonce = await self.market.call(registry.functions.nonceOf(operator.address))
        deadline = now + CONSENT_SECONDS
        domain = Domain(connection.chain_id, registry.address)
        signature = sign_registration(operator, domain, self.address, wanted.payout, nonce, deadline)
        call = registry.functions.register(
            operator.address,
            wanted.payout,
            int(wanted.scopes),
            wanted.expiry,
            wanted.endpoint,
            wanted.encryption_key,
            wanted.determinism_class,
            deadline,
            signature,
        )
        await self.sender.submit_and_confirm(f"register:{operator.address}", call)

    async def revoke(self, operator: str) -> None:
        """Stop a key of this owner, or this key itself, from starting anything. Safe to repeat."""
        if not is_address(operator):
            raise BadAddress(f"operator {operator!r}: expected an address, 0x and 40 hex digits")
        call = self.market.operator_registry.functions.revoke(to_checksum_address(operator))
        await self.sender.submit_and_confirm(f"revoke:{operator}", call)

    async def enroll(self, operator: str, count: int) -> None:
        """Lock so many tickets behind an operator's readiness to sit on panels."""
        amount = count * ticket_size(self.market)
        free = await self.market.call(self.market.stake_vault.functions.freeOf(self.address))
        if free < amount:
            raise NotEnough(f"enroll: {format_tokens(free)} tokens of stake are free, need {format_tokens(amount)}")
        for done in range(0, count, MOST_TICKETS):
            call = self.market.ticket_book.functions.enroll(operator, min(MOST_TICKETS, count - done))
            await self.sender.submit_and_confirm("enroll:tickets", call)

    async def exit_tickets(self) -> int:
        """Announce the exit of every ticket, release those that are over; returns how many are still locked."""
        now, book = await self.market.connection.now(), self.market.ticket_book.functions
        held = [ticket for ticket in await self.market.tickets(self.address) if not ticket.released]
        over = [ticket.number for ticket in held if 0 < ticket.exit_at < now and ticket.used == 0]
        steps = {f"exit-ticket:{ticket.number}": book.exit(ticket.number) for ticket in held if ticket.exit_at == 0}
        steps |= {f"release-ticket:{number}": book.release(number) for number in over}
        await asyncio.gather(*(self.sender.submit_and_confirm(key, call) for key, call in steps.items()))
        return len(held) - len(over)


@contextlib.asynccontextmanager
async def open_wallet(
    home: Path, config: HomeConfig, account: LocalAccount, state: Path | None = None
) -> AsyncIterator[Wallet]:
    """A session for one key. Its outbox lies in a folder of its own, so that a running node does not block it; or in
    `state`, for a key that a node may be running with: raises AlreadyRunning while it does.
    """
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_store(state or home / "wallets" / account.address.lower()))
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


def ticket_size(market: Market) -> int:
    """Wei that one ticket locks in this market."""
    return load_preset(market.deployment.preset).ticket


def unlock(config: HomeConfig, which: str) -> LocalAccount:
    """The account of config.keys.<which>."""
    path: Path | None = getattr(config.keys, which)
    if path is None:
        raise ConfigError(f"config.toml: keys.{which} is missing; expected the path of a key file (`wallet new`)")
    return load_key(path, read_password(config.keys.password, f"Password of {path.name}: "))
