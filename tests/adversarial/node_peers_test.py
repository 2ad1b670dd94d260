"""Who gets the private artefacts of a claim: seated auditors once all seats committed; everybody else one answer."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from eth_account import Account

from protocol.chain.signer import sign_digest
from protocol.core.audit import CasePhase, SeatState
from protocol.core.commitment import Opening
from protocol.core.round import Round
from protocol.core.trace import decode_trace, trace_root
from protocol.transport.errors import PeerFailed
from protocol.transport.signing import RequestSigner
from tests.helpers.market import Node, World, open_nodes, open_world
from verifier.files import END_STATE, PAYLOAD, TRACE

pytestmark = pytest.mark.asyncio(loop_scope="module")
REFUSED = "answers 404: no such artefact, or not for you now"
NOWHERE = "00" * 32


@dataclass
class Scene:
    """One claim that is audited: who made it, who judges it, and somebody else who is registered as well."""

    world: World
    job: bytes
    operator: Node
    auditor: Node
    bystander: Node
    shard: int
    opening: Opening
    commitment: str

    async def ask(self, signer: RequestSigner | None, what: str = TRACE, commitment: str | None = None) -> bytes | str:
        """The bytes, or the refusal in words."""
        path = f"/claims/{commitment or self.commitment}/{what}"
        client = self.bystander.station.client
        try:
            return await client.call(self.operator.server.url, path, max_bytes=2**20, signer=signer)
        except PeerFailed as refusal:
            return str(refusal)

    async def answers(self) -> dict[str, bytes | str]:
        """What each kind of caller is told, about this trace and about one that does not exist."""
        callers = {"nobody": None, "bystander": self.bystander.station.signer, "auditor": self.auditor.station.signer}
        found = {name: await self.ask(signer) for name, signer in callers.items()}
        return found | {f"{name}, of nothing": await self.ask(s, commitment=NOWHERE) for name, s in callers.items()}

    async def until(self, phase: CasePhase) -> None:
        def is_there(round: Round) -> bool:
            return self.shard in round.cases and round.cases[self.shard].phase == phase

        await self.world.run(self.job, is_there, [self.auditor])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with contextlib.AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(tmp_path_factory.mktemp("peers")))
        job = await world.post(world.job_terms())
        nodes = await stack.enter_async_context(open_nodes(world, job, 0, 1, 2, 3, 4, 5))
        round = await world.run(job, lambda round: any(is_seated(round, shard) for shard in round.cases))
        shard = next(shard for shard in round.cases if is_seated(round, shard))
        by_address = {node.me: node for node in nodes}
        operator, auditor = by_address[round.claims[shard].operator], by_address[round.cases[shard].seats[0].operator]
        bystander = next(node for node in nodes if node not in (operator, auditor))
        opening = (await operator.station.inputs(job).openings_of(round))[shard]
        commitment = round.claims[shard].commitment.hex()
        yield Scene(world, job, operator, auditor, bystander, shard, opening, commitment)


def is_seated(round: Round, shard: int) -> bool:
    case = round.cases[shard]
    return case.phase == CasePhase.COMMITTING and case.seats[0].state == SeatState.SEATED


async def test_before_the_reveal_everybody_is_told_the_same_even_the_seated_auditor(scene: Scene) -> None:
    assert set((await scene.answers()).values()) == {REFUSED}


async def test_once_all_seats_have_committed_the_seated_auditor_and_nobody_else_gets_it(scene: Scene) -> None:
    await scene.until(CasePhase.REVEALING)
    answers = await scene.answers()
    given = answers.pop("auditor")
    assert isinstance(given, bytes) and trace_root(decode_trace(given, 4)) == scene.opening.trace_root
    assert set(answers.values()) == {REFUSED}


async def test_the_end_state_is_the_committed_one_and_under_the_same_rule(scene: Scene) -> None:
    given = await scene.ask(scene.auditor.station.signer, END_STATE)
    assert isinstance(given, bytes) and hashlib.sha256(given).digest() == scene.opening.state_digest
    assert await scene.ask(scene.bystander.station.signer, END_STATE) == REFUSED


@pytest.mark.parametrize("what", [PAYLOAD, "config.toml", "..%2f..%2fpassword", "trace"])
async def test_nothing_but_the_two_artefacts_is_served_there(scene: Scene, what: str) -> None:
    assert await scene.ask(scene.auditor.station.signer, what) == REFUSED


@pytest.mark.parametrize("commitment", ["AB" * 32, "0" * 63, "%00", "result"])
async def test_a_commitment_that_is_none_is_answered_like_one_of_somebody_else(scene: Scene, commitment: str) -> None:
    assert await scene.ask(scene.auditor.station.signer, commitment=commitment) == REFUSED


async def test_a_signature_that_does_not_hold_is_refused_before_anything_is_looked_up(scene: Scene) -> None:
    stranger = Account.create()
    unknown = RequestSigner(stranger.address, lambda digest: sign_digest(stranger, digest))
    forged = RequestSigner(scene.auditor.me, lambda digest: sign_digest(stranger, digest))
    for signer, words in ((unknown, "is not known here"), (forged, "is not by")):
        answers = [str(await scene.ask(signer, commitment=given)) for given in (None, NOWHERE)]
        assert answers[0] == answers[1] and answers[0].startswith("answers 401:") and words in answers[0]


async def test_private_artefacts_are_not_among_the_public_blobs(scene: Scene) -> None:
    (result,) = (await scene.operator.station.intents.under(f"result/{scene.job.hex()}/0/{scene.shard}/")).values()
    for digest in (result["trace_blob"], result["state"]):
        assert scene.operator.worker.private.has(digest) and not scene.operator.station.blobs.has(digest)
