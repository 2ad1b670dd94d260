"""Proves the moments of a beacon to the chain: a block's header, or a signature of drand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from protocol.chain.errors import Refused, Reverted
from protocol.chain.headers import header_of
from protocol.chain.market import Market
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sender
from protocol.core.beacon import DRAND, moment_of
from protocol.transport.relays import Relays
from verifier.actions import ProveSeed
from verifier.errors import VerifierError

MOST_GAS = 400_000  # a drand proof takes 175,000 with its transaction; a pairing that fails burns all it is given
TOO_LATE = ("SeedExpired", "NothingToProve", "UnknownTicket")
TOO_EARLY = "SeedNotReady"


class SeedUnavailable(VerifierError):
    """Nobody gave a proof that the chain takes; it is asked for again later."""


class Prover:
    """Sends what the contract accepts in a dry run, and nothing else: it verifies, not this program."""

    def __init__(self, market: Market, sender: Sender, relays: Relays) -> None:
        self._market, self._sender, self._relays = market, sender, relays
        self._log = structlog.get_logger("prover")

    async def prove(self, action: ProveSeed) -> None:
        """Raises SeedUnavailable with a reason per source, Refused when a header cannot be had or encoded."""
        reasons: dict[str, str] = {}
        async for source, proof in self._proofs(moment_of(action.ticket), reasons):
            try:
                receipt = await self._send(action, proof)
            except (Reverted, Refused) as refusal:
                name = refusal.name if isinstance(refusal, Reverted) else ""
                if name in TOO_LATE:
                    self._log.info("move_not_needed", action=action.key, reason=str(refusal))
                    return
                reasons[source] = str(refusal)
                if name == TOO_EARLY:
                    break
                continue
            self._log.info("seed_proved", action=action.key, source=source, gas=receipt.gas_used)
            return
        told = "; ".join(f"{source}: {reason}" for source, reason in reasons.items()) or "beacon.relays names none"
        raise SeedUnavailable(f"no proof of the beacon's moment {moment_of(action.ticket)} ({told})")

    async def _proofs(self, moment: int, reasons: dict[str, str]) -> AsyncIterator[tuple[str, bytes]]:
        if self._market.beacon_kind != DRAND:
            yield "the RPC node", await header_of(self._market.connection, moment)
            return
        async for source, proof in self._relays.proofs(moment, reasons):
            yield source, proof

    async def _send(self, action: ProveSeed, proof: bytes) -> Receipt:
        call = self._market.block_beacon.functions.prove(action.ticket, proof)
        return await self._sender.confirm(await self._sender.submit(action.key, call, most_gas=MOST_GAS))
