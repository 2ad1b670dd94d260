"""attack: none needed, a reorg of a round's close is enough · gain: an honest operator commits what it trained on the
base that was given up, and is slashed · defence: results, outer steps and audits are bound to what they rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from node.operator.actions import CommitClaim, SyncBase, Train
from protocol.core.round import RoundStatus, bits
from tests.helpers.market import open_nodes, open_world
from verifier.records import result_key

TURNS = 30


async def test_a_claim_is_trained_anew_when_its_base_was_given_up(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, open_nodes(world, None, 0, 1) as nodes:
        market, first = world.bench.market, nodes[0]
        job = await world.post(world.job_terms())
        await world.run(job, lambda round: round.status == RoundStatus.SEALED)
        fork = await world.bench.chain.rpc("evm_snapshot")

        async def trained() -> int | None:
            round = await world.round(job, 1)
            keys = {claim.shard: result_key(job, round, claim.shard) for claim in round.claims}
            for shard, key in keys.items():
                if await first.station.intents.get(key):
                    return shard
            return None

        shard = await _turn_until(world, nodes, trained)
        given_up = (await world.round(job, 1)).base
        await world.bench.chain.rpc("evm_revert", fork)

        # The round closes on another bitmap: a legitimate other checkpoint.
        sealed = await world.round(job, 0)
        inputs = first.station.inputs(job)
        openings = await inputs.openings_of(sealed)
        kept = bits(sealed.committed_map)[0]
        other = await inputs.next_checkpoint(sealed, {kept: await inputs.payload(openings[kept])})
        book = market.round_book.functions
        for number, node in enumerate(nodes):
            vote = book.attest(job, 0, sealed.base, 1 << kept, bytes.fromhex(other))
            await world.bench.sender(node.person).submit_and_confirm(f"attest-again:{number}", vote)
        sender = world.bench.sender(first.person)
        await sender.submit_and_confirm("open-again", book.open(job))
        await sender.submit_and_confirm("claim-again", book.claim(job, 1, [shard]))
        assert (await world.round(job, 1)).base != given_up

        await first.worker.execute(SyncBase(job, 1))
        plan = first.service._plan(await first.service._load())
        about = [action for action in plan if isinstance(action, Train | CommitClaim) and action.round == 1]
        assert about == [Train(job, 1, shard)]


async def _turn_until(world: Any, nodes: Any, reached: Any) -> Any:
    for _ in range(TURNS):
        for node in nodes:
            await node.turn()
        if (found := await reached()) is not None:
            return found
        await world.bench.chain.advance(1)
    raise AssertionError([node.failures for node in nodes])
