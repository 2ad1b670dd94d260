"""Commitments whose payload cannot be used: voted out by all alike, nobody is slashed, and the round goes on."""

from __future__ import annotations

import hashlib
import json
import math
import pickle  # noqa: TID251
import struct
from collections.abc import AsyncIterator, Callable

import msgspec
import numpy as np
import pytest
import pytest_asyncio

from protocol.core.claim import ClaimStatus
from protocol.core.round import RoundStatus
from protocol.training.compress import Update, encode_payload, max_payload_bytes
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec
from tests.helpers.market import World, open_nodes, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")
SHARDS = {"shards_per_round": 4, "probation_slots": 4, "rounds": 1}
BAD = 2  # the hostile operator's shard
REST = 0b1011


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("payloads")) as made:
        yield made


async def commit_bad(world: World, job: bytes, payload_digest: bytes) -> None:
    """The last person opens the round, claims a shard and commits to these bytes, whatever they are."""
    sender, book = world.sender(world.bench.people[-1].operator), world.bench.market.round_book.functions
    await sender.submit_and_confirm(f"open:{job.hex()}", book.open(job))
    await sender.submit_and_confirm(f"claim:{job.hex()}", book.claim(job, 0, [BAD]))
    opening = (payload_digest, b"\7" * 32, b"\7" * 32)
    base = (await world.round(job)).base
    await sender.submit_and_confirm(f"commit:{job.hex()}", book.commit(job, 0, BAD, base, opening))


def served(make: Callable[[World], bytes]) -> Callable[[World, bytes], bytes]:
    return lambda world, base: bytes.fromhex(world.store_blob(make(world)))


def a_payload(spec: Spec) -> bytes:
    """Of an update of zeros: as it is, this one would be accepted."""
    zeros = {name: np.zeros(shape, np.float32) for name, shape in parameter_shapes(spec).items()}
    return encode_payload(spec, Update(zeros, {}, {}))


def with_nan(world: World) -> bytes:
    """Right but for its first scale."""
    data = bytearray(a_payload(world.spec))
    header = int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8 : 8 + header])
    start = next(entry["data_offsets"][0] for entry in tensors.values() if entry.get("dtype") == "F32")
    data[8 + header + start : 8 + header + start + 4] = struct.pack("<f", math.nan)
    return bytes(data)


def of_another_model(world: World) -> bytes:
    """The same number of parameters in other shapes."""
    model = msgspec.structs.replace(world.spec.model, heads=1, kv_heads=1, width=16, feed_forward=112)
    return a_payload(msgspec.structs.replace(world.spec, model=model))


PAYLOADS: dict[str, Callable[[World, bytes], bytes]] = {
    "that_nobody_serves": lambda world, base: hashlib.sha256(b"nowhere").digest(),
    "that_is_a_pickle": served(lambda world: pickle.dumps({"weights": [1.0] * 100})),
    "that_is_empty": served(lambda world: b""),
    "whose_scale_is_not_a_number": served(with_nan),
    "with_the_shapes_of_another_model": served(of_another_model),
    "that_is_noise_of_the_right_size": served(lambda world: b"\xa5" * max_payload_bytes(world.spec)),
    "that_is_larger_than_any_payload": served(lambda world: b"\0" * (max_payload_bytes(world.spec) + 1)),
    # Everybody has it in the store already, under this very name:
    "that_is_the_checkpoint_itself": lambda world, base: base,
}


@pytest.mark.parametrize("name", PAYLOADS)
async def test_a_payload_is_voted_out_by_everybody(world: World, name: str) -> None:
    terms = world.job_terms(**SHARDS)
    job = await world.post(terms, salt=1 + list(PAYLOADS).index(name))
    await commit_bad(world, job, PAYLOADS[name](world, terms.genesis_digest))
    async with open_nodes(world, job, 0, 1, 2):
        closed = await world.run(job, lambda round: round.closed_at > 0)
    assert closed.accepted_map == REST and not closed.voided
    assert closed.claims[BAD].status == ClaimStatus.EXCLUDED


async def test_who_is_voted_out_is_unpaid_and_nobody_is_slashed(world: World) -> None:
    market = world.bench.market
    job = await world.post(world.job_terms(windows={"challenge": 10}, **SHARDS), salt=99)
    vault, hostile = market.stake_vault, world.bench.people[-1].owner.address
    locked = await market.call(vault.functions.lockedOf(hostile))
    stake = await market.call(vault.functions.balanceOf(hostile))
    before = await market.connection.block_number()
    await commit_bad(world, job, hashlib.sha256(b"nowhere either").digest())
    async with open_nodes(world, job, 0, 1, 2, 3, 4, 5):
        settled = await world.run(job, lambda round: round.status == RoundStatus.SETTLED)
    statuses = [claim.status for claim in settled.claims]
    assert statuses == [ClaimStatus.PAID, ClaimStatus.PAID, ClaimStatus.UNPAID, ClaimStatus.PAID]
    assert await vault.events.Slashed().get_logs(from_block=before) == []
    assert await market.call(vault.functions.balanceOf(hostile)) == stake
    assert await market.call(vault.functions.lockedOf(hostile)) == locked
