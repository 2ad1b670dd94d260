"""Executes the actions of upkeep and panels, one side effect each."""

from __future__ import annotations

import structlog

from protocol.chain.errors import Reverted
from protocol.chain.transactions import Call
from verifier.actions import (
    Action,
    AdvanceCase,
    AdvanceRound,
    ChallengeClaim,
    CloseJob,
    CommitAudit,
    Convene,
    DrawSample,
    OnJob,
    OpenRound,
    Recheck,
    Reexecute,
    RevealAudit,
    Settle,
)
from verifier.auditor import Auditor
from verifier.doubter import Doubter
from verifier.tools import Tools

LONG = (Reexecute, RevealAudit, Recheck)  # run beside the turns of the loop


class Executor:
    """One operator's hands."""

    def __init__(self, tools: Tools) -> None:
        self._market, self._sender = tools.market, tools.sender
        self._auditor, self._doubter = Auditor(tools), Doubter(tools)
        self._log = structlog.get_logger("upkeep")

    async def execute(self, action: Action) -> None:
        match action:
            case Reexecute():
                await self._auditor.reexecute(action)
            case CommitAudit():
                await self._auditor.commit(action)
            case RevealAudit():
                await self._auditor.reveal(action)
            case Recheck():
                await self._doubter.recheck(action)
            case ChallengeClaim():
                await self._doubter.challenge(action)
            case _:
                await self._move(action, self._call(action))

    async def _move(self, action: OnJob, call: Call) -> None:
        """Send what anyone may send. Somebody else may have been faster: the contract then refuses."""
        try:
            receipt = await self._sender.submit_and_confirm(f"{action.name}:{action.key}", call)
        except Reverted as refusal:
            self._log.info("move_not_needed", action=action.key, reason=str(refusal))
            return
        self._log.info("move_made", action=action.key, gas=receipt.gas_used)

    def _call(self, action: Action) -> Call:
        rounds, court = self._market.round_book.functions, self._market.audit_court.functions
        call: Call
        match action:
            case OpenRound():
                call = rounds.open(action.job_id)
            case CloseJob():
                call = self._market.job_market.functions.close(action.job_id)
            case AdvanceRound():
                call = rounds.advance(action.job_id, action.round)
            case DrawSample():
                call = rounds.draw(action.job_id, action.round)
            case Convene():
                call = court.convene(action.job_id, action.round, list(action.shards))
            case Settle():
                call = rounds.settle(action.job_id, action.round, list(action.shards))
            case AdvanceCase():
                call = court.advance(action.case_id)
            case _:
                raise TypeError(action)
        return call
