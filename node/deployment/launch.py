"""From an order to an address book, over any number of killed processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eth_account.signers.local import LocalAccount

from node.deployment.undertaking import (
    DeploymentBegun,
    Undertaking,
    begun_path,
    check_same,
    put_aside,
)
from protocol.chain.bindings import Deployment
from protocol.chain.blueprint import Blueprint, draw_up
from protocol.chain.connection import Connection
from protocol.chain.deploy import carry_out, next_nonce
from protocol.chain.fees import FeePolicy
from protocol.chain.preflight import Survey, survey
from protocol.chain.transactions import Sender
from protocol.core.errors import GradmarketError
from protocol.core.presets import Preset
from protocol.store.database import open_store
from protocol.store.outbox import Outbox

SETTLE_SECONDS = 120.0  # for what the key still has on its way before a first nonce can be chosen
Say = Callable[[str], None]


class NotReady(GradmarketError):
    """A check before a deployment failed; nothing was sent."""

    def __init__(self, found: Survey) -> None:
        failed = [f"{check.what}: {check.facts}" for check in found.checks if not check.ok]
        super().__init__(f"not ready to deploy: {' · '.join(failed)}")


@dataclass(frozen=True)
class Order:
    """What a person asks for. Without a token the market gets a worthless one."""

    preset: Preset
    token: str | None
    deployer: str
    policy: FeePolicy
    chain_was_named: bool
    book: Path


async def look(connection: Connection, order: Order) -> tuple[Blueprint, Survey]:
    """The dry run from the deployer's next nonce; sends nothing."""
    nonce = await next_nonce(connection, order.deployer)
    blueprint = draw_up(connection.chain_id, order.deployer, nonce, order.preset, order.token)
    return blueprint, await survey(connection, blueprint, order.policy, order.chain_was_named)


async def put_up(
    connection: Connection, account: LocalAccount, home: Path, order: Order, start_over: bool, say: Say
) -> Deployment:
    """Deploy, or go on with what was begun, and write the address book.

    Raises NotReady, DeploymentBegun, DeploymentError, and whatever a transaction can fail with; all but the first two
    leave the deployment to be gone on with.
    """
    path = begun_path(order.book)
    if order.book.exists():
        if path.exists():  # killed between the last two steps below
            path.unlink()
            say("the deployment was finished already")
            return Deployment.load(order.book)
        raise DeploymentBegun(
            f"{order.book} exists: a market was deployed already; look at it with `deploy check`, "
            "or name another file with --book"
        )
    if start_over and path.exists():
        say(f"what was begun is kept as {put_aside(path)}")
    async with open_store(home / "wallets" / account.address.lower()) as database:
        sender = Sender(connection, account, Outbox(database, connection.key, account.address), order.policy)
        begun = Undertaking.load(path)
        if begun is None:
            begun = await _begin(connection, sender, order)
            begun.save(path)
        else:
            say(f"going on with the deployment that began with nonce {begun.nonce}")
            check_same(begun, _undertaking(connection, order, begun.nonce, begun.block), path)
        book = await carry_out(connection, sender, begun.blueprint(), begun.block, say)
        book.save(order.book)
        path.unlink()
        return book


async def _begin(connection: Connection, sender: Sender, order: Order) -> Undertaking:
    """Choose the first nonce once nothing of this key is on its way, and look before anything is sent."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while pending := await sender.tend():
        if time.monotonic() > deadline:
            raise DeploymentBegun(f"{sender.address} still waits for {', '.join(pending)}: try again when it is mined")
        await asyncio.sleep(order.policy.poll_seconds)
    blueprint, found = await look(connection, order)
    if not found.ok:
        raise NotReady(found)
    block = await connection.block_number()
    return _undertaking(connection, order, blueprint.creations[0].nonce, block)


def _undertaking(connection: Connection, order: Order, nonce: int, block: int) -> Undertaking:
    blueprint = draw_up(connection.chain_id, order.deployer, nonce, order.preset, order.token)
    return Undertaking(
        chain=connection.key,
        chain_id=connection.chain_id,
        deployer=order.deployer,
        nonce=nonce,
        block=block,
        preset=order.preset.name,
        token=order.token,
        fingerprint=blueprint.fingerprint,
    )
