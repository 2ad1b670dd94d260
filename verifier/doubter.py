"""What an auditor does of its own accord: run an accepted claim again, and take a false one to court."""

from __future__ import annotations

import asyncio
import shutil

import structlog

from protocol.core.terms import TOLERANCE_CLASSES
from verifier.actions import ChallengeClaim, Recheck
from verifier.judge import conclude
from verifier.records import recheck_key
from verifier.replay import compare_run, run_claim
from verifier.tools import Tools

RUNS_BEFORE_DOUBT = 2


class Doubter:
    """Acts on `sampler.plan_sampling`."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._log = structlog.get_logger("doubter")

    async def recheck(self, action: Recheck) -> None:
        """Run an accepted claim that nobody asked about; the finding rests on the payload alone.

        A mismatch is run once more before it is believed: memory errors are more common than cheats.
        """
        inputs = self._tools.inputs(action.job_id)
        round = await self._tools.market.round(action.job_id, action.round)
        claim = round.claims[action.shard]
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

    async def challenge(self, action: ChallengeClaim) -> None:
        call = self._tools.market.audit_court.functions.challenge(action.job_id, action.round, action.shard)
        await self._tools.sender.submit_and_confirm(f"challenge:{action.key}", call)
        self._log.info("claim_challenged", round=action.round, shard=action.shard)
