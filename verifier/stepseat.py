"""A seat about a checkpoint: take the outer step alone, commit to the finding, reveal it.

The record of a seat (`records.step_key`) is written before anything is sent, with its salt, so that a restart commits
and reveals the same. Who cannot take the step abstains: silence costs a fee, abstaining nothing.
"""

from __future__ import annotations

import secrets
from typing import Any

import structlog

from protocol.core.audit import Case, CasePhase, SeatState, StepFinding, step_root
from protocol.core.round import Round, bits
from protocol.runtime.errors import ChildFailed
from protocol.training.errors import TrainingError
from protocol.transport.errors import BlobTooLarge, Unavailable
from verifier.actions import CommitStep, OnStepSeat, RecomputeStep, RevealStep
from verifier.errors import VerifierError
from verifier.outer import PayloadReader
from verifier.records import step_key
from verifier.tools import Tools

NOTHING = bytes(32)
CANNOT = (VerifierError, TrainingError, Unavailable, BlobTooLarge, ChildFailed)


class StepSeats:
    """Serves the seats of one operator in cases about checkpoints."""

    def __init__(self, tools: Tools) -> None:
        self._tools, self._records, self._court = tools, tools.records, tools.market.checkpoint_court
        self._payloads = PayloadReader(tools.compute, tools.operator)
        self._log = structlog.get_logger("auditor")

    async def recompute(self, action: RecomputeStep) -> None:
        """Find, and record what will be committed."""
        found = await self._served(action)
        if found is None or await self._records.get(action.record) is not None:
            return
        salt, why = secrets.token_bytes(32), ""
        try:
            bitmap, digest, contested = await self._find(action, found[0])
            finding = StepFinding(False, bitmap, digest, contested, salt)
        except CANNOT as error:
            why = str(error) or type(error).__name__
            finding = StepFinding(True, 0, NOTHING, NOTHING, salt)
        entry = {
            "job": action.job_id.hex(),
            "round": action.round,
            "seat": action.seat,
            "abstain": why,
            "bitmap": f"{finding.bitmap:x}",
            "digest": finding.digest.hex(),
            "contested": finding.contested.hex(),
            "salt": salt.hex(),
        }
        await self._records.record(action.record, entry)
        self._log.info("step_recomputed", round=action.round, seat=action.seat, abstain=why, digest=entry["digest"])

    async def commit(self, action: CommitStep) -> None:
        record = await self._records.get(action.record)
        root = step_root(action.case_id, action.seat, self._tools.sender.address, _finding(record))
        call = self._court.functions.commitAudit(action.case_id, action.seat, root)
        await self._tools.sender.submit_and_confirm(f"commit-step:{action.key}", call)
        self._log.info("step_committed", round=action.round, seat=action.seat)

    async def reveal(self, action: RevealStep) -> None:
        found = await self._served(action)
        if found is None or found[1].seats[action.seat].state != SeatState.COMMITTED:
            return
        finding = _finding(await self._records.get(action.record))
        call = self._court.functions.reveal(action.case_id, action.seat, finding.as_tuple())
        await self._tools.sender.submit_and_confirm(f"reveal-step:{action.key}", call)
        self._log.info("step_revealed", round=action.round, seat=action.seat, bitmap=f"{finding.bitmap:b}")

    async def _served(self, action: OnStepSeat) -> tuple[Round, Case] | None:
        """The round and its case as the chain tells them now; None when the chain went back to something else."""
        round = await self._tools.market.round(action.job_id, action.round)
        if round.doubt is None or round.doubt.phase not in (CasePhase.COMMITTING, CasePhase.REVEALING):
            return None
        return (round, round.doubt) if step_key(action.case_id, action.seat, round) == action.record else None

    async def _find(self, action: RecomputeStep, round: Round) -> tuple[int, bytes, bytes]:
        """Bitmap, digest, and the digest that follows from the attested bitmap.

        The attested bitmap is right while every payload of it can be used: who was late when the others attested could
        be in time for a panel, and a checkpoint must not fall for that. A claim that was voted out can demand an audit.
        """
        inputs = self._tools.inputs(action.job_id)
        base, seconds = await inputs.agreed_base(round), inputs.terms.windows.audit_commit
        attested = await self._payloads.read(inputs, round, bits(round.accepted_map), seconds)
        if attested.bitmap == round.accepted_map:
            digest = bytes.fromhex(await inputs.next_checkpoint(round, attested.usable, base))
            return round.accepted_map, digest, digest
        others = bits(round.committed_map & ~round.accepted_map)
        rest = await self._payloads.read(inputs, round, others, seconds)
        usable = attested.usable | rest.usable
        digest = bytes.fromhex(await inputs.next_checkpoint(round, usable, base))
        return attested.bitmap | rest.bitmap, digest, NOTHING


def _finding(record: dict[str, Any]) -> StepFinding:
    digest, contested, salt = (bytes.fromhex(record[name]) for name in ("digest", "contested", "salt"))
    return StepFinding(bool(record["abstain"]), int(record["bitmap"], 16), digest, contested, salt)
