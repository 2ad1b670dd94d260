"""The transaction engine: sign, store, then send; one sender per key; a transaction is followed by its hash."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any, NewType, cast

from eth_account.signers.local import LocalAccount
from web3.contract.async_contract import AsyncContractConstructor, AsyncContractFunction
from web3.exceptions import Web3Exception
from web3.types import TxParams, Wei

from protocol.chain.bindings import shipped_errors
from protocol.chain.broadcast import Answer, broadcast, classify
from protocol.chain.connection import Connection
from protocol.chain.errors import (
    ChainUnavailable,
    NonceTaken,
    OutOfGas,
    OutOfGasMoney,
    Refused,
    Unconfirmed,
    UnknownTransaction,
)
from protocol.chain.fees import FeePolicy, market_fees
from protocol.chain.journal import Journal, Outbox, Slot
from protocol.chain.receipts import Receipt, find_receipt, why_reverted
from protocol.chain.revert import ErrorTable, rpc_message
from protocol.chain.signer import fee_fields, sign, sign_again

TxHash = NewType("TxHash", str)
Call = AsyncContractFunction | AsyncContractConstructor

NONCE_TRIES = 3
LOST_POLLS = 4  # a provider may lag: this often the nonce must be used and no receipt of ours be there
FIRST_POLL_SECONDS = 0.05


class Sender:
    """Everything that one key sends. Two senders of one key would fight over its nonces: hold the state folder's lock.

    A purpose names what a transaction is for, e.g. "commit:job 3 round 7 shard 12"; its part before the first colon is
    the kind that gas is counted by. While a purpose is pending, submitting it again returns what is on its way.
    """

    def __init__(
        self,
        connection: Connection,
        account: LocalAccount,
        outbox: Outbox,
        policy: FeePolicy | None = None,
        errors: ErrorTable | None = None,
    ) -> None:
        self.address = str(account.address)
        self.policy = policy or FeePolicy()
        self._connection, self._account, self._w3 = connection, account, connection.w3
        self._journal = Journal(outbox)
        self._errors = errors or shipped_errors()
        self._lock = asyncio.Lock()  # around: choose a nonce, sign, store, send
        self._resumed = False

    # -- what callers use

    async def submit(
        self,
        purpose: str,
        call: Call,
        *,
        value: int = 0,
        gas_margin: float | None = None,
        most_gas: int | None = None,
        nonce: int | None = None,
    ) -> TxHash:
        """Send a transaction once and return its hash; it is stored before it is sent.

        `most_gas`: what it may burn at most, for calls that burn all they are given when they fail.
        With `nonce`, with that one only: NonceTaken when something else has used it, or is about to.
        Raises Reverted when the contract would refuse it (no nonce is used), OutOfGasMoney, FeeCapTooLow, Refused;
        ChainUnavailable leaves it stored, if it got that far: submit it again, or resume().
        """
        await self.resume()
        if slot := self._journal.of_purpose(purpose):
            return TxHash(slot.newest.hash)
        gas = math.ceil(await self._estimate(call, value, most_gas) * (gas_margin or self.policy.gas_margin))
        gas = min(gas, most_gas or gas)
        async with self._lock:
            if slot := self._journal.of_purpose(purpose):
                return TxHash(slot.newest.hash)
            used = -1
            for _ in range(NONCE_TRIES if nonce is None else 1):
                slot = await self._sign_and_store(purpose, call, value, gas, nonce)
                used = slot.nonce
                if await self._send_first(slot, value + gas * slot.newest.fees.max_fee):
                    return TxHash(slot.newest.hash)
        raise NonceTaken(self.address, used, purpose)

    async def mined(self, purpose: str) -> Receipt | None:
        """What an earlier process or this one sent for a purpose, if it succeeded and is on the chain."""
        await self.resume()
        tx_hash = await self._journal.confirmed(purpose)
        receipt = await find_receipt(self._w3, tx_hash) if tx_hash else None
        return receipt if receipt and receipt.ok else None

    async def confirm(self, tx_hash: str, timeout: float = 120.0) -> Receipt:
        """Wait until the transaction, or a dearer replacement of it, is mined.

        Raises Reverted with the contract's reason, Unconfirmed or ChainUnavailable after `timeout` seconds (it is still
        followed), NonceTaken when another program used the nonce.
        """
        await self.resume()
        slot = self._journal.of_hash(tx_hash)
        if slot is None:
            receipt = await find_receipt(self._w3, self._journal.winner(tx_hash))
            if receipt is None:
                raise UnknownTransaction(f"{tx_hash} is not in the outbox of {self.address} and not on the chain")
        else:
            receipt = await self._follow(slot, timeout)
        if not receipt.ok:
            raise await why_reverted(self._w3, receipt, self._errors)
        return receipt

    async def submit_and_confirm(self, purpose: str, call: Call, *, value: int = 0, timeout: float = 120.0) -> Receipt:
        """Submit and wait. When the state moved and the gas did not suffice, once more with twice the gas."""
        try:
            return await self.confirm(await self.submit(purpose, call, value=value), timeout)
        except OutOfGas:
            margin = 2 * self.policy.gas_margin
            return await self.confirm(await self.submit(purpose, call, value=value, gas_margin=margin), timeout)

    async def resume(self) -> list[str]:
        """At start: settle what was mined meanwhile, send the rest again byte by byte; returns the pending purposes."""
        if not self._resumed:
            async with self._lock:
                if not self._resumed:
                    await self._journal.load()
                    await self._tend(math.inf)
                    self._resumed = True
        return self._pending()

    async def tend(self) -> list[str]:
        """Once per turn of a service that submits without waiting: settle, send again and replace what is stuck."""
        await self.resume()
        async with self._lock:
            await self._tend(math.inf)
        return self._pending()

    def _pending(self) -> list[str]:
        return [slot.purpose for _, slot in sorted(self._journal.slots.items())]

    # -- sending

    async def _estimate(self, call: Call, value: int, most_gas: int | None) -> int:
        fields: TxParams = {"from": self._account.address, "value": Wei(value)}
        if most_gas:
            fields["gas"] = most_gas
        try:
            return int(await call.estimate_gas(fields))
        except Web3Exception as error:
            if classify(rpc_message(error)) is Answer.NO_MONEY:
                raise await self._no_money(value) from error
            raise self._errors.explain(error) from error

    async def _sign_and_store(self, purpose: str, call: Call, value: int, gas: int, wanted: int | None) -> Slot:
        fees = self.policy.initial(*await market_fees(self._w3))
        count = int(await self._w3.eth.get_transaction_count(self._account.address, "pending"))
        if wanted is not None and (count > wanted or wanted in self._journal.slots):
            raise NonceTaken(self.address, wanted, purpose)
        nonce = self._journal.next_nonce(count) if wanted is None else wanted
        fields = {
            "from": self.address,
            "nonce": nonce,
            "gas": gas,
            "value": value,
            "chainId": self._connection.chain_id,
        }
        built: Any = await call.build_transaction(cast(TxParams, fields | fee_fields(fees)))
        slot = await self._journal.add(nonce, purpose, sign(self._account, built, fees))
        slot.priced_at = slot.sent_at = time.monotonic()
        return slot

    async def _send_first(self, slot: Slot, cost: int) -> bool:
        """Send a new transaction; False when its nonce turned out to be used by another one."""
        try:
            answer = await broadcast(self._w3, slot.newest.raw)
        except Refused:
            await self._journal.settle(slot, None, "dropped")
            raise
        if answer is Answer.ACCEPTED or await find_receipt(self._w3, slot.newest.hash):
            return True
        await self._journal.settle(slot, None, "dropped")
        if answer is Answer.NO_MONEY:
            raise await self._no_money(cost)
        return False

    async def _no_money(self, cost: int) -> OutOfGasMoney:
        have = int(await self._w3.eth.get_balance(self._account.address))
        fees = self.policy.initial(*await market_fees(self._w3))
        need = max(cost, have + fees.max_fee * 21_000)  # a node refused: `have` was not enough
        return OutOfGasMoney(self.address, have, need)

    # -- following

    async def _follow(self, slot: Slot, timeout: float) -> Receipt:
        deadline = time.monotonic() + timeout
        pause = FIRST_POLL_SECONDS
        while True:
            try:
                if receipt := await self._look(slot, patient=pause >= self.policy.poll_seconds):
                    return receipt
            except ChainUnavailable:
                if time.monotonic() >= deadline:
                    raise
            if time.monotonic() >= deadline:
                raise Unconfirmed(slot.newest.hash, slot.purpose, slot.nonce, timeout, slot.trouble)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self.policy.poll_seconds)

    async def _look(self, slot: Slot, patient: bool) -> Receipt | None:
        """The receipt if it is there; else help the transaction along, where some time has passed."""
        receipt = await self._settle_if_mined(slot)
        if receipt is not None:
            return receipt
        if patient and await self._is_lost(slot):
            raise NonceTaken(self.address, slot.nonce, slot.purpose)
        if time.monotonic() - slot.sent_at >= self.policy.rebroadcast_after:
            async with self._lock:
                await self._tend(slot.nonce)
        return None

    async def _is_lost(self, slot: Slot) -> bool:
        """Drop a nonce that the chain has passed without us; several looks, as receipts may come late."""
        slot.lost = slot.lost + 1 if await self._count() > slot.nonce else 0
        if slot.lost < LOST_POLLS or await self._mined(slot) is not None:
            return False
        await self._journal.settle(slot, None, "dropped")
        return True

    async def _count(self) -> int:
        return int(await self._w3.eth.get_transaction_count(self._account.address, "latest"))

    async def _mined(self, slot: Slot) -> Receipt | None:
        """Any hash of the nonce counts: a replaced transaction may be the one that a miner took."""
        for signed in reversed(slot.signed):
            if receipt := await find_receipt(self._w3, signed.hash):
                return receipt
        return None

    async def _settle_if_mined(self, slot: Slot) -> Receipt | None:
        receipt = await self._mined(slot)
        if receipt is None:
            return None
        if self.policy.confirmations:
            depth = await self._connection.block_number() - receipt.block_number
            if depth < self.policy.confirmations:
                return None
        outcome = "confirmed" if receipt.ok else "reverted"
        await self._journal.settle(slot, receipt.hash, outcome, receipt.gas_used, receipt.block_number)
        return receipt

    async def _tend(self, up_to: float) -> None:
        """Lower nonces first: one that is missing blocks all later ones."""
        for nonce, slot in sorted(self._journal.slots.items()):
            if nonce > up_to:
                return
            if await self._mined(slot):
                await self._settle_if_mined(slot)
            elif not await self._is_lost(slot):
                stuck = slot.priced_at and time.monotonic() - slot.priced_at >= self.policy.replace_after
                if stuck and nonce == min(self._journal.slots):
                    await self._replace(slot)
                await self._send_again(slot)

    async def _send_again(self, slot: Slot) -> None:
        """The same bytes. Whatever the node says, the receipts decide; `_follow` notices a nonce that is lost."""
        slot.sent_at = time.monotonic()
        slot.priced_at = slot.priced_at or slot.sent_at
        try:
            answer = await broadcast(self._w3, slot.newest.raw)
            slot.trouble = answer.value if answer in (Answer.NO_MONEY, Answer.UNDERPRICED) else ""
        except Refused as error:
            slot.trouble = str(error)

    async def _replace(self, slot: Slot) -> None:
        """Sign the same call and nonce with higher fees, within the owner's cap."""
        fees = self.policy.replacement(slot.newest.fees, *await market_fees(self._w3))
        slot.priced_at = time.monotonic()
        if fees is None:
            return
        await self._journal.add(slot.nonce, slot.purpose, sign_again(self._account, slot.newest.raw, fees))
