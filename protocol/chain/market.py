"""The contracts of one market, read into the types of protocol.core and called through a Sender."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.contract import AsyncContract
from web3.exceptions import ContractCustomError, Web3Exception

from protocol.chain.bindings import FOREIGN_TOKEN, Deployment, contract, shipped_errors
from protocol.chain.connection import Connection
from protocol.core.audit import Case, CaseKind, CasePhase, Finding, Outcome, PanelSeat, SeatState
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.job import MOST_ROUNDS, Job, JobStatus, PauseReason, Progress
from protocol.core.operator import Operator, Owner, Scope, Ticket
from protocol.core.round import Draw, Round, RoundStatus
from protocol.core.terms import Terms
from protocol.core.trace import TraceRow

PAGE = 100  # operators or tickets read at once


class Market:
    """Readings are values of protocol.core; `calls` to send are built from the contracts by name."""

    def __init__(self, connection: Connection, deployment: Deployment) -> None:
        self.connection, self.deployment = connection, deployment
        self._contracts: dict[str, AsyncContract] = {}

    def __getattr__(self, name: str) -> AsyncContract:
        """The contract of that name in snake case: market.round_book is RoundBook."""
        title = "".join(part.capitalize() for part in name.split("_"))
        if name.startswith("_") or title not in self.deployment.contracts:
            raise AttributeError(name)
        if name not in self._contracts:
            self._contracts[name] = contract(self.connection, self.deployment, title)
        return self._contracts[name]

    async def call(self, function: Any) -> Any:
        """A view's value. Raises Reverted with the contract's reason."""
        try:
            return await function.call()
        except Web3Exception as error:
            raise shipped_errors().explain(error) from error

    # -- jobs and rounds

    async def job_ids(self, first: int = 0) -> list[bytes]:
        """All jobs ever posted, oldest first, from number `first` on."""
        count = await self.call(self.job_market.functions.jobCount())
        return [await self.call(self.job_market.functions.jobAt(i)) for i in range(first, count)]

    async def terms(self, job_id: bytes) -> Terms:
        return Terms.from_tuple(await self.call(self.job_market.functions.termsOf(job_id)))

    async def poster(self, job_id: bytes) -> str:
        return str(await self.call(self.job_market.functions.posterOf(job_id)))

    async def seed(self, job_id: bytes) -> str:
        """The address that the poster named for spec, genesis and data."""
        return str(await self.call(self.job_market.functions.seedOf(job_id)))

    async def job(self, job_id: bytes, first_round: int = 0) -> Job:
        """The job with its unsettled rounds from `first_round` on: the 15 oldest, and the newest."""
        view = await self.call(self.market_lens.functions.jobView(job_id, first_round, MOST_ROUNDS))
        status, reason, escrow, funded, refunded, progress, numbers = view
        return Job(
            job_id=job_id,
            status=JobStatus(status),
            reason=PauseReason(reason),
            escrow=escrow,
            funded=funded,
            refunded=refunded,
            progress=Progress(*progress),
            rounds=tuple([await self.round(job_id, number) for number in numbers]),
        )

    async def round(self, job_id: bytes, number: int) -> Round:
        return _round(await self.call(self.market_lens.functions.roundView(job_id, number)))

    async def checkpoint(self, job_id: bytes, number: int) -> str:
        """The agreed sha256 of a checkpoint, hex."""
        return bytes(await self.call(self.round_book.functions.checkpointOf(job_id, number))).hex()

    async def attested(self, job_id: bytes, round: int, operator: str) -> bool:
        """Whether the operator's owner attested in the present window, through whichever of its operators."""
        _, attested = await self.call(self.round_book.functions.weightOf(job_id, round, operator))
        return bool(attested)

    async def held(self, job_id: bytes, round: int, owner: str) -> int:
        """Claims of an owner in a round, lapsed ones left out."""
        return int(await self.call(self.round_book.functions.heldBy(job_id, round, owner)))

    # -- people

    async def operators(self) -> list[Operator]:
        found: list[Operator] = []
        while True:
            page = await self.call(self.market_lens.functions.operators(len(found), PAGE))
            found += [_operator(address, entry) for address, entry in page]
            if len(page) < PAGE:
                return found

    async def operator(self, address: str) -> Operator:
        """The entry of a key; that of nobody for a key that was never registered."""
        return _operator(address, await self.call(self.operator_registry.functions.operatorOf(address)))

    async def owner(self, job_id: bytes, operator: str) -> Owner:
        return Owner(*await self.call(self.market_lens.functions.ownerView(job_id, operator)))

    async def tickets(self, owner: str | None = None) -> list[Ticket]:
        found: list[Ticket] = []
        while True:
            page = await self.call(self.market_lens.functions.tickets(len(found), PAGE))
            found += [Ticket(number, *entry) for number, entry in enumerate(page, len(found))]
            if len(page) < PAGE:
                return [ticket for ticket in found if owner is None or ticket.owner == owner]

    async def beacon_seed(self, case: Case) -> bytes | None:
        """The seed that a case has pinned; None while the beacon is silent or once it is too late."""
        if any(case.seed):
            return case.seed
        try:
            return bytes(await self.block_beacon.functions.seedOf(case.beacon_ticket).call())
        except ContractCustomError:
            return None

    async def opened_trace(self, case_id: bytes) -> list[TraceRow] | None:
        """The rows that an operator opened on chain; None when it did not."""
        event: Any = self.audit_court.events.TraceOpened()
        logs = await event.get_logs(from_block=self.deployment.block, argument_filters={"caseId": case_id})
        return [_trace_row(row) for row in logs[-1]["args"]["rows"]] if logs else None

    @property
    def block_beacon(self) -> AsyncContract:
        """The beacon, whichever kind the deployment chose: only the interface is used."""
        return contract(self.connection, self.deployment, self.beacon_kind)

    @property
    def beacon_kind(self) -> str:
        """The name of the beacon's contract."""
        return next((name for name in self.deployment.contracts if name.endswith("Beacon")), "BlockhashBeacon")

    @property
    def token(self) -> AsyncContract:
        """The market's ERC-20: the one of a development chain, or one that was there before."""
        name = "DevToken" if "DevToken" in self.deployment.contracts else FOREIGN_TOKEN
        return contract(self.connection, self.deployment, name, "DevToken")

    # -- money

    async def token_balance(self, account: str) -> int:
        return int(await self.call(self.token.functions.balanceOf(account)))

    async def gas_balance(self, account: str) -> int:
        try:
            return int(await self.connection.w3.eth.get_balance(AsyncWeb3.to_checksum_address(account)))
        except Web3Exception as error:
            raise shipped_errors().explain(error) from error

    async def pots(self, keys: Iterable[bytes]) -> list[int]:
        return [int(await self.call(self.reward_ledger.functions.potOf(key))) for key in keys]


def _operator(address: str, entry: Any) -> Operator:
    owner, scopes, *rest = entry
    return Operator(address, owner, Scope(scopes), *rest)


def _round(view: Any) -> Round:
    number, state, status, claims, statuses, sample, cases, (_, entry, seats) = view
    doubt = _case(entry, seats)
    fields: list[Any] = [
        number,
        RoundStatus(status),
        *state,
        tuple(_claim(shard, *pair) for shard, pair in enumerate(zip(claims, statuses, strict=True))),
        Draw(*sample),
        {shard: _case(entry, seats) for shard, entry, seats in cases},
        doubt if doubt.phase != CasePhase.NONE else None,
    ]
    return Round(*fields)


def _claim(shard: int, entry: Any, status: int) -> Claim:
    operator, claimed_at, deadline, settled, owner, commitment = entry
    return Claim(
        shard, ClaimStatus(status), operator, claimed_at, deadline, ClaimStatus(settled), owner, bytes(commitment)
    )


def _case(entry: Any, seats: Any) -> Case:
    fields: list[Any] = [*entry, tuple(_seat(seat) for seat in seats)]
    fields[4:7] = CasePhase(fields[4]), Outcome(fields[5]), CaseKind(fields[6])
    return Case(*fields)


def _seat(entry: Any) -> PanelSeat:
    owner, ticket, draws, state, finding, step, operator, locked, root = entry
    return PanelSeat(owner, ticket, draws, SeatState(state), Finding(finding), step, operator, locked, bytes(root))


def _trace_row(entry: Any) -> TraceRow:
    """A struct inside an event comes by name, and web3 leaves its bytes as hex text."""
    sketch, state = (bytes(HexBytes(entry[name])) for name in ("sketch", "state"))
    return TraceRow(entry["step"], entry["loss"], entry["gradNorm"], sketch, state)
