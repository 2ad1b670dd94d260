"""Two devices of one owner: it has one voice in each attest window, whichever of them speaks."""

from __future__ import annotations

from pathlib import Path

from node.devnet.people import give_coins
from node.wallet import open_wallet
from protocol.core.round import RoundStatus
from protocol.runtime.config import load_config
from tests.helpers.market import open_nodes, open_world
from verifier.station import HomeConfig


async def test_a_second_operator_speaks_for_its_owner_and_the_first_one_sees_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        owner, twin = world.bench.people[0], world.bench.person("twin")
        await give_coins(world.bench.bank, twin.operator.address)
        config = load_config(owner.home / "config.toml", HomeConfig)
        async with open_wallet(owner.home, config, owner.owner) as purse:
            await purse.register(twin.operator, owner.owner.address, "", bytes(32))
        world.bench.people.append(twin)
        job = await world.post(world.job_terms(shards_per_round=4, probation_slots=4))

        async with open_nodes(world, job, 0, 1, 2, 3) as (first, *others), open_nodes(world, job, 6) as (second,):
            ours = [first, *others]
            await world.run(job, lambda round: all(claim.deadline for claim in round.claims), ours)
            for _ in range(2):
                await second.turn()
            sealed = await world.run(job, lambda round: round.status == RoundStatus.SEALED, ours)
            assert not any(claim.operator == second.me for claim in sealed.claims)
            for _ in range(3):
                await second.turn()
            assert await world.bench.market.attested(job, 0, first.me), "its owner has spoken"
            for _ in range(3):
                await first.turn()
            assert not any(key.startswith("attest") for key in first.failures)
            await world.run(job, lambda round: round.closed_at > 0, others)
        voted = await world.bench.market.round_book.events.Attested().get_logs(from_block=0)
        votes = {log["args"]["operator"]: log["args"]["weight"] for log in voted}
        assert votes[second.me] == 1 and first.me not in votes
