"""Executes the actions of upkeep and panels, one side effect each."""

from __future__ import annotations

import structlog

from protocol.chain.errors import Reverted
from protocol.chain.transactions import Call
from protocol.core.commitment import checkpoint_case_id
from verifier.actions import (
    Action,
    AdvanceCase,
    AdvanceDoubt,
    AdvanceRound,
    Appeal,
    ChallengeClaim,
    ChallengeStep,
    CloseJob,
    CommitAudit,
    CommitStep,
    Convene,
    DemandAudit,
    Distribute,
    DrawSample,
    OnJob,
    OpenRound,
    ProveSeed,
    Recheck,
    RecheckStep,
    RecomputeStep,
    Reexecute,
    RevealAudit,
    RevealStep,
    Settle,
)
from verifier.auditor import Auditor
from verifier.doubter import Doubter
from verifier.prover import Prover
from verifier.stepseat import StepSeats
from verifier.tools import Tools

LONG = (Reexecute, RevealAudit, RecomputeStep, Recheck, RecheckStep, ProveSeed)  # run beside the turns of the loop


class Executor:
    """One operator's hands."""

    def __init__(self, tools: Tools) -> None:
        self._market, self._sender, self._orders = tools.market, tools.sender, tools.orders
        self._auditor, self._steps, self._doubter = Auditor(tools), StepSeats(tools), Doubter(tools)
        self._prover = Prover(tools.market, tools.sender, tools.relays)
        self._log = structlog.get_logger("upkeep")

    async def execute(self, action: Action) -> None:
        match action:
            case Reexecute():
                await self._auditor.reexecute(action)
            case CommitAudit():
                await self._auditor.commit(action)
            case RevealAudit():
                await self._auditor.reveal(action)
            case RecomputeStep():
                await self._steps.recompute(action)
            case CommitStep():
                await self._steps.commit(action)
            case RevealStep():
                await self._steps.reveal(action)
            case RecheckStep():
                await self._doubter.recheck_step(action)
            case ChallengeStep():
                await self._doubter.challenge_step(action)
            case Appeal() | DemandAudit():
                await self._orders.carry_out(action, self._market, self._sender)
            case ProveSeed():
                await self._prover.prove(action)
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
        checkpoints = self._market.checkpoint_court.functions
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
            case AdvanceDoubt():
                call = checkpoints.advance(checkpoint_case_id(action.job_id, action.round))
            case Distribute():
                call = checkpoints.distribute(checkpoint_case_id(action.job_id, action.round))
            case _:
                raise TypeError(action)
        return call
