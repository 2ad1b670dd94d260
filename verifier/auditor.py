"""A seat's work: re-execute blindly, commit the own trace, then compare and reveal.

The record of a case (`audit/<case id>`) is written before anything is sent: the salt and the own root, so that a
restart commits and reveals the same. `root` is over the own trace, or over nothing where the inputs were missing.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any

import structlog

from protocol.chain.errors import Reverted
from protocol.core.audit import Case, Finding, SeatState, steps_to_open
from protocol.core.claim import Claim
from protocol.core.commitment import Opening
from protocol.core.round import Round
from protocol.core.trace import (
    Seat,
    TraceError,
    TraceRow,
    audit_proof,
    audit_root,
    decode_trace,
    encode_trace,
    max_trace_bytes,
    trace_proof,
    trace_root,
)
from protocol.runtime.errors import ChildDied, ChildFailed
from protocol.training.checkpoint import end_state_bytes
from protocol.training.spec import trace_rows
from protocol.transport.errors import BlobTooLarge, Unavailable
from verifier.actions import CommitAudit, OnSeat, Reexecute, RevealAudit
from verifier.errors import BaseUnavailable, InputsUnavailable, JobRefused, TooLarge
from verifier.files import END_STATE, TRACE
from verifier.records import audit_key
from verifier.replay import compare_run, run_claim
from verifier.tools import Tools

FINDINGS = {"match": Finding.MATCH, "reject": Finding.REJECT, "fraud": Finding.FRAUD}

PATIENCE = 0.9  # of the time that is left for a run; the rest is for saying that there was none


class Auditor:
    """Serves the seats of one operator."""

    def __init__(self, tools: Tools) -> None:
        self._tools, self._market, self._compute, self._records = tools, tools.market, tools.compute, tools.records
        self._log = structlog.get_logger("auditor")
        self._troubled: set[str] = set()  # seats whose run failed once on this machine

    async def reexecute(self, action: Reexecute) -> None:
        """Run the claim and record what will be committed.

        Missing or unusable inputs are a finding, not a failure; a run that diverges is none either.
        """
        if await self._records.get(_key(action)) is not None:
            return
        salt, missing, failed, baseless = secrets.token_bytes(32), "", "", ""
        round = await self._market.round(action.job_id, action.round)
        case = round.cases.get(action.shard)
        if case is None or round.claims[action.shard].commitment != action.commitment:
            return  # the chain went back meanwhile: the next turn plans anew
        left, began = case.phase_ends - await self._market.connection.now(), time.monotonic()
        try:
            await run_claim(
                self._tools.inputs(action.job_id),
                self._compute,
                round,
                action.shard,
                self._run(action),
                timeout=max(1.0, PATIENCE * left),
            )
            root = audit_root(await self._rows(action), self._seat(action, salt))
        except BaseUnavailable as error:
            root, baseless = secrets.token_bytes(32), str(error)
        except TooLarge as error:
            root, failed = secrets.token_bytes(32), str(error)
        except (InputsUnavailable, JobRefused) as error:
            root, missing = secrets.token_bytes(32), str(error)
        except (ChildFailed, ChildDied) as error:
            # This machine's own trouble is tried again once, if there is time for it. A seat that still cannot say
            # anything abstains: silence would cost it a part of its lock, and others wait for the compute process.
            final = isinstance(error, ChildFailed) and error.kind == "TrainingFailed"
            is_late = time.monotonic() - began > left / 2
            if not (final or is_late or _key(action) in self._troubled):
                self._troubled.add(_key(action))
                raise
            root, failed = secrets.token_bytes(32), error.message if isinstance(error, ChildFailed) else str(error)
        entry = {
            "job": action.job_id.hex(),
            "round": action.round,
            "seat": action.seat,
            "salt": salt.hex(),
            "root": root.hex(),
            "missing": missing,
            "failed": failed,
            "baseless": baseless,
        }
        await self._records.record(_key(action), entry)

    async def commit(self, action: CommitAudit) -> None:
        record = await self._records.get(_key(action))
        call = self._market.audit_court.functions.commitAudit(
            action.case_id, action.seat, bytes.fromhex(record["root"])
        )
        await self._tools.sender.submit_and_confirm(f"commit-audit:{action.key}", call)
        self._log.info("audit_committed", round=action.round, shard=action.shard, seat=action.seat)

    async def reveal(self, action: RevealAudit) -> None:
        """Find, then show. Returns without a finding while the beacon or the operator may still speak."""
        round = await self._market.round(action.job_id, action.round)
        case, claim = round.cases.get(action.shard), round.claims[action.shard]
        if case is None or not self._is_committed(case, action.seat) or claim.commitment != action.commitment:
            return  # revealed already, or the chain went back to another case or other seats
        record = await self._records.get(_key(action))
        seed = await self._market.beacon_seed(case)
        if seed is None:
            return
        opening = await self._tools.inputs(action.job_id).opening_of(case, round)
        if opening is None:
            return
        found = await self._find(action, record, round, case, claim, opening)
        if found is None:
            return
        finding, step, rows = found
        await self._records.note(f"finding/{_key(action)}", {"finding": finding.name, "step": step})
        await self._send_reveal(action, record, seed, opening, finding, step, rows)

    def _is_committed(self, case: Case, number: int) -> bool:
        seat = case.seats[number] if number < len(case.seats) else None
        return seat is not None and seat.operator == self._tools.sender.address and seat.state == SeatState.COMMITTED

    # -- finding

    async def _find(
        self, action: RevealAudit, record: dict[str, Any], round: Round, case: Case, claim: Claim, opening: Opening
    ) -> tuple[Finding, int, list[TraceRow] | None] | None:
        """The finding, the step it names and the operator's rows; None to wait for the operator's answer."""
        if record["missing"]:
            return Finding.UNAVAILABLE_INPUTS, 0, None
        if record["baseless"]:
            return Finding.UNAVAILABLE_PAYLOAD, 0, None  # what was built on it cannot be paid
        if record["failed"]:
            return Finding.ABSTAIN, 0, None  # the own run diverged: there is no trace to show
        inputs = self._tools.inputs(action.job_id)
        entry = self._tools.operator(claim.operator)
        endpoint = entry.endpoint if entry else ""
        try:
            payload = await inputs.payload(opening, endpoint)
        except (Unavailable, BlobTooLarge):
            return Finding.UNAVAILABLE_PAYLOAD, 0, None
        own = await self._rows(action)
        if trace_root(own) == opening.trace_root:
            rows: list[TraceRow] | None = own
        else:
            rows = await self._opened_rows(action, case, claim, endpoint, opening)
        if rows is None and not await self._is_silent(action, case):
            return None
        judgement = await self._judge(action, round, opening, payload, rows, claim, endpoint)
        self._log.info("claim_judged", round=action.round, shard=action.shard, **judgement)
        return FINDINGS[judgement["finding"]], int(judgement["step"]), rows

    async def _judge(
        self,
        action: RevealAudit,
        round: Round,
        opening: Opening,
        payload: Path,
        rows: list[TraceRow] | None,
        claim: Claim,
        endpoint: str,
    ) -> dict[str, Any]:
        inputs = self._tools.inputs(action.job_id)
        theirs = self._run(action) / "theirs"
        await asyncio.to_thread(theirs.mkdir, parents=True, exist_ok=True)
        trace, end_state = theirs / TRACE, theirs / END_STATE
        if rows is not None:
            await asyncio.to_thread(trace.write_bytes, encode_trace(rows))
        data = await self._ask(action, claim, endpoint, END_STATE, end_state_bytes(await inputs.spec()))
        if data is not None:
            await asyncio.to_thread(end_state.write_bytes, data)
        return await compare_run(
            inputs,
            self._compute,
            round,
            self._run(action),
            opening,
            payload,
            trace if rows is not None else None,
            end_state if data is not None else None,
        )

    async def _opened_rows(
        self, action: RevealAudit, case: Case, claim: Claim, endpoint: str, opening: Opening
    ) -> list[TraceRow] | None:
        """The operator's rows, from itself or from the chain; only those that it committed to."""
        spec = await self._tools.inputs(action.job_id).spec()
        data = await self._ask(action, claim, endpoint, TRACE, max_trace_bytes(trace_rows(spec)))
        try:
            rows = decode_trace(data, trace_rows(spec)) if data is not None else []
        except TraceError:
            rows = []
        if rows and trace_root(rows) == opening.trace_root:
            return rows
        return await self._market.opened_trace(action.case_id) if case.opened else None

    async def _ask(self, action: RevealAudit, claim: Claim, endpoint: str, what: str, limit: int) -> bytes | None:
        if not endpoint:
            return None
        path = f"/claims/{claim.commitment.hex()}/{what}"
        return await self._tools.inputs(action.job_id).call_operator(endpoint, path, limit, self._tools.signer)

    async def _is_silent(self, action: RevealAudit, case: Case) -> bool:
        """Whether the operator had its chance to open its trace; demands it on chain the first time."""
        if case.withheld:
            return True
        if case.opened:
            return False  # the chain has it; a provider that lags will tell
        if case.demanded_at == 0:
            await self._demand(action)
            return False
        terms = self._tools.inputs(action.job_id).terms
        return await self._market.connection.now() > case.demanded_at + terms.windows.demand

    async def _demand(self, action: RevealAudit) -> None:
        call = self._market.audit_court.functions.demandTrace(action.case_id)
        try:
            await self._tools.sender.submit_and_confirm(f"demand-trace:{action.key}", call)
        except Reverted as refusal:
            if refusal.name != "AlreadyDemanded":  # by another seat of the panel, meanwhile
                raise

    # -- showing

    async def _send_reveal(
        self,
        action: RevealAudit,
        record: dict[str, Any],
        seed: bytes,
        opening: Opening,
        finding: Finding,
        step: int,
        theirs: list[TraceRow] | None,
    ) -> None:
        salt = bytes.fromhex(record["salt"])
        shown: tuple[list[Any], list[Any]] = ([], [])
        if finding in FINDINGS.values():
            own, seat = await self._rows(action), self._seat(action, salt)
            steps = steps_to_open(seed, action.case_id, len(own))
            shown[0].extend((_fields(own[s - 1]), audit_proof(own, seat, s)) for s in steps)
            if finding == Finding.MATCH and theirs is not None:
                shown[1].extend((_fields(theirs[s - 1]), trace_proof(theirs, s)) for s in steps)
        parts = (opening.payload_digest, opening.trace_root, opening.state_digest)
        reveal = (finding, step, salt, parts, *shown)
        call = self._market.audit_court.functions.reveal(action.case_id, action.seat, reveal)
        await self._tools.sender.submit_and_confirm(f"reveal-audit:{action.key}", call)
        self._log.info("audit_revealed", round=action.round, shard=action.shard, finding=finding.name, step=step)

    def _run(self, action: OnSeat) -> Path:
        return self._tools.folder / _key(action).removeprefix("audit/")

    async def _rows(self, action: OnSeat) -> list[TraceRow]:
        spec = await self._tools.inputs(action.job_id).spec()
        return decode_trace(await asyncio.to_thread((self._run(action) / TRACE).read_bytes), trace_rows(spec))

    def _seat(self, action: OnSeat, salt: bytes) -> Seat:
        return Seat(action.case_id, action.seat, self._tools.sender.address, salt)


def _key(action: OnSeat) -> str:
    return audit_key(action.case_id, action.seat, action.commitment)


def _fields(row: TraceRow) -> tuple[int, int, int, bytes, bytes]:
    return row.step, row.loss, row.grad_norm, row.sketch, row.state
