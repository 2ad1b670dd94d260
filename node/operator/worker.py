"""Executes an operator's actions. A result is stored before it is committed, and committed as it was stored."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from node.operator.actions import (
    Attest,
    ClaimShards,
    CommitClaim,
    ComputeNext,
    NodeAction,
    OnClaim,
    OpenTrace,
    SyncBase,
    Train,
)
from protocol.chain.errors import Reverted
from protocol.chain.transactions import Call
from protocol.core.commitment import Opening, case_id, commitment
from protocol.core.round import Round, bits
from protocol.core.trace import decode_trace, max_trace_bytes
from protocol.runtime.errors import ChildDied, ChildFailed
from protocol.training.data import load_shard
from protocol.training.spec import trace_rows
from protocol.transport.blobs import BlobStore
from protocol.transport.errors import Unavailable
from verifier.actions import OnJob
from verifier.files import END_STATE, PAYLOAD, TRACE
from verifier.inputs import JobInputs
from verifier.outer import PayloadReader
from verifier.records import base_key, next_key, result_key
from verifier.replay import run_claim
from verifier.station import Station

TRIAL_SECONDS = 600.0  # at most, of a device that others need too
FAILURES_TO_STOP = 3  # trainings in a row that failed on this device
RACES = frozenset({"ShardTaken", "WrongRoundStatus", "ProbationSlotsFull", "AlreadyAttested"})


class Worker:
    """One operator's hands. `private`: traces and end states, for seated auditors only."""

    def __init__(self, station: Station) -> None:
        self._station, self._market, self._sender = station, station.market, station.sender
        self._log = structlog.get_logger("operator")
        self._payloads = PayloadReader(station.compute, lambda address: station.operators.get(address))
        self.private = BlobStore(station.home / "private")
        self._train_seconds: dict[bytes, float] = {}  # the last training of each job
        self._failures: dict[bytes, list[str]] = {}  # trainings in a row that failed, by job
        self._unfit: dict[bytes, str] = {}  # jobs whose trial failed on this device

    async def execute(self, action: NodeAction) -> None:
        match action:
            case SyncBase():
                await self._sync(action)
            case ClaimShards():
                await self._claim(action)
            case Train():
                await self._train(action)
            case CommitClaim():
                await self._commit(action)
            case ComputeNext():
                await self._compute_next(action)
            case Attest():
                await self._attest(action)
            case OpenTrace():
                await self._open_trace(action)

    def train_seconds(self, job_id: bytes) -> float:
        """What a claim of this job is expected to take; 0 before its trial."""
        return self._train_seconds.get(job_id, 0.0)

    def why_broken(self, job_id: bytes) -> str:
        """Why this device must not take new claims of a job; a successful training ends a row of failures."""
        if job_id in self._unfit:
            return f"a trial of this job failed: {self._unfit[job_id]}"
        failures = self._failures.get(job_id, [])
        if len(failures) < FAILURES_TO_STOP:
            return ""
        return f"{len(failures)} trainings of this job failed in a row, last: {failures[-1]}"

    async def _claim(self, action: ClaimShards) -> None:
        inputs = self._inputs(action)
        for shard in action.shards:  # a claim whose inputs cannot be had or read would lapse
            path = await inputs.shard(action.round, shard)
            load_shard(await asyncio.to_thread(path.read_bytes), await inputs.manifest())
        if action.job_id not in self._train_seconds:
            await self._try(action, inputs, path)
            return  # the next turn plans with what a claim takes here, or with why none is taken
        call = self._market.round_book.functions.claim(action.job_id, action.round, list(action.shards))
        if await self._race(f"claim:{action.key}", call):
            self._log.info("shards_claimed", round=action.round, shards=list(action.shards))

    async def _try(self, action: ClaimShards, inputs: JobInputs, data: Path) -> None:
        """Two steps before the first claim of a job: a model that does not fit or gives no numbers costs nothing."""
        base = await inputs.base(await self._market.round(action.job_id, action.round))
        try:
            seconds = await self._station.compute.call(
                "trial",
                timeout=min(TRIAL_SECONDS, float(inputs.terms.windows.train)),
                spec=await inputs.spec_path(),
                base=str(base),
                manifest=await inputs.manifest_path(),
                data=str(data),
            )
        except ChildDied as error:  # of its memory, or by somebody's hand: it may try again, three times in all
            self._failures.setdefault(action.job_id, []).append(str(error))
            raise
        except ChildFailed as error:
            self._unfit[action.job_id] = error.message
            self._log.warning("trial_failed", job=action.job_id.hex(), reason=error.message)
            return
        self._train_seconds[action.job_id] = float(seconds)
        self._log.info("trial_done", job=action.job_id.hex(), claim_seconds=round(float(seconds), 1))

    async def _attest(self, action: Attest) -> None:
        round = await self._market.round(action.job_id, action.round)
        step = await self._station.intents.get(next_key(action.job_id, round))
        if step != {"bitmap": f"{action.bitmap:x}", "digest": action.next}:
            return  # the chain went back to another base or other claims: the next turn plans anew
        call = self._market.round_book.functions.attest(
            action.job_id, action.round, round.base, action.bitmap, bytes.fromhex(action.next)
        )
        if await self._race(f"attest:{action.key}", call):
            self._log.info("attested", round=action.round, bitmap=f"{action.bitmap:b}", next=action.next)

    async def _race(self, purpose: str, call: Call) -> bool:
        """Send what others may make needless: a shard taken meanwhile, a round closed by earlier votes."""
        try:
            await self._sender.submit_and_confirm(purpose, call)
        except Reverted as refusal:
            if refusal.name not in RACES:
                raise
            self._log.info("too_late", purpose=purpose, reason=str(refusal))
            return False
        return True

    # -- training

    async def _sync(self, action: SyncBase) -> None:
        """Compute the base of the round; where it does not follow from the payloads, nothing is built on it."""
        round = await self._market.round(action.job_id, action.round)
        inputs = self._inputs(action)
        now = await self._market.connection.now()
        job = await self._market.job(action.job_id)
        await self._check_base(inputs, round, job.final_rounds(inputs.terms.windows.challenge, now))
        await inputs.base(round)
        await self._station.intents.note(base_key(action.job_id, round), True)
        self._log.info("base_ready", round=action.round, digest=round.base.hex())

    async def _check_base(self, inputs: JobInputs, round: Round, final: int) -> None:
        """Take every step again that leads to a round's base and can be challenged, oldest first: the word of attesters
        is not enough, for they could withhold a payload to hide a false step. `final`: rounds past every challenge.

        Raises JobRefused for a false step, Unavailable where a payload cannot be had.
        """
        if await self._station.intents.get(base_key(inputs.job_id, round)):
            return
        source = await inputs.round_that_ends_in(round.base, round.number)
        if source is None or source.number < final:
            return
        own = await self._station.intents.get(next_key(inputs.job_id, source))
        if own and own["digest"] == source.next.hex():
            return  # taken from a base that this operator knew
        await self._check_base(inputs, source, final)
        await inputs.exact_end(source)

    async def _train(self, action: Train) -> None:
        round = await self._market.round(action.job_id, action.round)
        if await self._station.intents.get(result_key(action.job_id, round, action.shard)) is not None:
            return  # a claim with a stored result is never trained again
        folder = self._station.home / "claims" / f"{action.job_id.hex()[:16]}-{action.round}-{action.shard}"
        self._log.info("training_started", round=action.round, shard=action.shard)
        started = time.monotonic()
        try:
            left = round.claims[action.shard].deadline - await self._market.connection.now()
            result = await run_claim(
                self._inputs(action),
                self._station.compute,
                round,
                action.shard,
                folder,
                method="train",
                timeout=max(1.0, left),  # afterwards the claim is lost, and the device is for others
            )
        except (ChildFailed, ChildDied) as error:
            self._failures.setdefault(action.job_id, []).append(str(error))
            raise
        self._failures.pop(action.job_id, None)
        self._train_seconds[action.job_id] = time.monotonic() - started
        await self._keep(result_key(action.job_id, round, action.shard), folder, result)
        self._log.info("training_done", round=action.round, shard=action.shard, **result)

    async def _keep(self, key: str, folder: Path, result: Mapping[str, Any]) -> None:
        """Payload to the public store, trace and end state to the private one, then the record: in that order."""
        await asyncio.to_thread(self._station.blobs.put_file, folder / PAYLOAD, kind="payload")
        trace = await asyncio.to_thread(self.private.put_file, folder / TRACE, kind="trace")
        await asyncio.to_thread(self.private.put_file, folder / END_STATE, kind="end-state")
        await self._station.intents.record(key, {**result, "trace_blob": trace})
        await asyncio.to_thread(shutil.rmtree, folder)

    async def _commit(self, action: CommitClaim) -> None:
        round = await self._market.round(action.job_id, action.round)
        key = result_key(action.job_id, round, action.shard)
        result = await self._station.intents.get(key)
        if result is None:
            return  # the chain went back to another base meanwhile: the next turn plans anew
        opening = Opening(*(bytes.fromhex(result[name]) for name in ("payload", "trace", "state")))
        made = self._commitment(action, round, opening)
        where = {"job": action.job_id.hex(), "round": action.round, "shard": action.shard, "result": key}
        await self._station.intents.note(f"commitment/{made.hex()}", where)
        parts = (opening.payload_digest, opening.trace_root, opening.state_digest)
        call = self._market.round_book.functions.commit(action.job_id, action.round, action.shard, round.base, parts)
        await self._sender.submit_and_confirm(f"commit:{action.key}", call)
        self._log.info("commitment_posted", round=action.round, shard=action.shard, commitment=made.hex())

    def _commitment(self, action: OnClaim, round: Round, opening: Opening) -> bytes:
        return commitment(
            self._market.connection.chain_id,
            self._market.deployment.address("RoundBook"),
            action.job_id,
            action.round,
            action.shard,
            self._sender.address,
            round.base,
            opening.payload_digest,
            opening.trace_root,
            opening.state_digest,
        )

    # -- the outer step

    async def _compute_next(self, action: ComputeNext) -> None:
        inputs = self._inputs(action)
        round = await self._market.round(action.job_id, action.round)
        wanted = round.committed_map if action.bitmap is None else action.bitmap
        payloads = await self._payloads.read(inputs, round, bits(wanted), inputs.terms.windows.attest)
        if action.bitmap is not None and payloads.bitmap != wanted:
            raise Unavailable(f"round {action.round}", {"payloads": "not all of the tallied ones can be had and used"})
        digest, bitmap = await inputs.next_checkpoint(round, payloads.usable), payloads.bitmap
        await self._station.intents.note(next_key(action.job_id, round), {"bitmap": f"{bitmap:x}", "digest": digest})
        self._log.info("outer_step_done", round=action.round, bitmap=f"{bitmap:b}", next=digest)

    # -- audits of own claims

    async def _open_trace(self, action: OpenTrace) -> None:
        round = await self._market.round(action.job_id, action.round)
        result = await self._station.intents.get(result_key(action.job_id, round, action.shard))
        if result is None:
            return  # the chain went back to another base meanwhile: this claim's trace is another one
        inputs = self._inputs(action)
        steps = trace_rows(await inputs.spec())
        rows = decode_trace(self.private.read(result["trace_blob"], max_trace_bytes(steps)), steps)
        parts = tuple(bytes.fromhex(result[name]) for name in ("payload", "trace", "state"))
        table = [(row.step, row.loss, row.grad_norm, row.sketch, row.state) for row in rows]
        call = self._market.audit_court.functions.openTrace(
            case_id(action.job_id, action.round, action.shard), parts, table
        )
        await self._sender.submit_and_confirm(f"open-trace:{action.key}", call)

    def _inputs(self, action: OnJob) -> JobInputs:
        return self._station.inputs(action.job_id)
