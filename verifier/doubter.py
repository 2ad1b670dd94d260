"""What an auditor does of its own accord: run a claim or an outer step again, and take a false one to court."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import structlog

from protocol.chain.errors import Reverted
from protocol.chain.transactions import Call
from protocol.core.round import bits
from protocol.core.terms import TOLERANCE_CLASSES
from protocol.transport.errors import Unavailable
from verifier.actions import ChallengeClaim, ChallengeStep, OnRound, Recheck, RecheckStep
from verifier.judge import conclude
from verifier.outer import PayloadReader
from verifier.records import recheck_key, step_check_key
from verifier.replay import compare_run, run_claim
from verifier.tools import Tools

RUNS_BEFORE_DOUBT = 2
OVERTAKEN = frozenset({"CaseExists", "OtherCommitment", "OtherCheckpoint"})


class Doubter:
    """Acts on `sampler.plan_sampling` and `sampler.plan_steps`."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._payloads = PayloadReader(tools.compute, tools.operator)
        self._log = structlog.get_logger("doubter")

    async def recheck(self, action: Recheck) -> None:
        """Run an accepted claim that nobody asked about; the finding rests on the payload alone.

        A mismatch is run once more before it is believed: memory errors are more common than cheats.
        """
        inputs = self._tools.inputs(action.job_id)
        round = await self._tools.market.round(action.job_id, action.round)
        claim = round.claims[action.shard]
        if claim.commitment != action.commitment:
            return  # the chain went back to another claim meanwhile
        opening = (await inputs.openings_of(round)).get(action.shard)
        if opening is None:
            return
        entry = self._tools.operator(claim.operator)
        payload = await inputs.payload(opening, entry.endpoint if entry else None)
        folder = self._tools.folder / f"own-{action.commitment.hex()}"
        for _ in range(RUNS_BEFORE_DOUBT):
            await run_claim(inputs, self._tools.compute, round, action.shard, folder)
            judgement = await compare_run(inputs, self._tools.compute, round, folder, opening, payload)
            if judgement["finding"] != "fraud":
                break
        # Nobody demanded this trace, so that it is closed accuses nobody: the rule of the offline check.
        is_bf16 = TOLERANCE_CLASSES[inputs.terms.tolerance_class] == "bf16"
        verdict, _ = conclude(
            judgement["finding"], judgement["tests"], is_open=False, is_withheld=False, is_equal=False, is_bf16=is_bf16
        )
        judgement["finding"] = verdict.name.lower()
        await self._tools.records.record(recheck_key(action.commitment), judgement)
        self._log.info("claim_rechecked", round=action.round, shard=action.shard, **judgement)
        await asyncio.to_thread(shutil.rmtree, folder)

    async def recheck_step(self, action: RecheckStep) -> None:
        """Take the outer step of a closed round from its own base and bitmap. A payload that cannot be had leaves the
        question open: the action fails and is tried again."""
        inputs = self._tools.inputs(action.job_id)
        round = await self._tools.market.round(action.job_id, action.round)
        shards, seconds = bits(round.accepted_map), inputs.terms.windows.challenge
        payloads = await self._payloads.read(inputs, round, shards, seconds)
        found: dict[str, Any] = {"finding": "false", "digest": "", "bad": sorted(payloads.bad)}
        if not payloads.bad:
            if len(payloads.usable) < len(shards):
                raise Unavailable(f"round {round.number}", {"payloads": "not all of the accepted ones can be had"})
            base = await inputs.agreed_base(round)
            for _ in range(RUNS_BEFORE_DOUBT):
                found["digest"] = await inputs.next_checkpoint(round, payloads.usable, base)
                found["finding"] = "match" if found["digest"] == round.next.hex() else "false"
                if found["finding"] == "match":
                    break
        await self._tools.records.record(step_check_key(action.job_id, round), found)
        self._log.info("checkpoint_rechecked", round=action.round, attested=round.next.hex(), **found)

    async def challenge_step(self, action: ChallengeStep) -> None:
        round = await self._tools.market.round(action.job_id, action.round)
        found = await self._tools.records.get(step_check_key(action.job_id, round))
        if found is None or found["finding"] != "false":
            return  # the chain went back to another checkpoint meanwhile: what was found is not about this one
        call = self._tools.market.checkpoint_court.functions.challenge(
            action.job_id, action.round, round.base, round.accepted_map, round.next
        )
        await self._challenge(action, call)

    async def challenge(self, action: ChallengeClaim) -> None:
        round = await self._tools.market.round(action.job_id, action.round)
        if round.claims[action.shard].commitment != action.commitment:
            return  # the chain went back to another claim meanwhile
        call = self._tools.market.audit_court.functions.challenge(
            action.job_id, action.round, action.shard, action.commitment
        )
        await self._challenge(action, call)

    async def _challenge(self, action: OnRound, call: Call) -> None:
        """Once: of several who doubt the same, one is the first. A challenge names what it doubts, so that one that is
        mined on another branch, where the work is another, is refused and costs no bond.
        """
        try:
            await self._tools.sender.submit_and_confirm(f"challenge:{action.key}", call)
        except Reverted as refusal:
            if refusal.name not in OVERTAKEN:
                raise
            self._log.info("not_challenged", action=action.key, reason=str(refusal))
            return
        self._log.info("challenged", action=action.key)
