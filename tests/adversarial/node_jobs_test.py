"""Jobs that nobody can work on: no claim is taken, the reason is told, and the next job is none the worse for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import pytest_asyncio

from protocol.core.terms import Terms
from protocol.training.checkpoint import encode_checkpoint, genesis_checkpoint
from protocol.training.data import encode_manifest, encode_tokens
from protocol.training.spec import encode_spec
from tests.helpers.market import World, open_nodes, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("jobs")) as made:
        yield made


def with_spec(world: World, change: Callable[[dict[str, Any]], object]) -> Terms:
    """Terms of a spec that was changed after all checks."""
    fields = json.loads(encode_spec(world.spec))
    change(fields)
    return of_spec(world, json.dumps(fields, sort_keys=True, separators=(",", ":")).encode())


def of_spec(world: World, blob: bytes) -> Terms:
    return replace(world.job_terms(), spec_digest=bytes.fromhex(world.store_blob(blob)))


def with_manifest(world: World, **changes: Any) -> Terms:
    """Terms of a spec whose manifest was changed."""
    return of_manifest(world, encode_manifest(msgspec.structs.replace(world.packed.manifest, **changes)))


def of_manifest(world: World, blob: bytes) -> Terms:
    data = msgspec.structs.replace(world.spec.data, manifest=world.store_blob(blob))
    return of_spec(world, encode_spec(msgspec.structs.replace(world.spec, data=data)))


def a_shard(world: World) -> bytes:
    manifest = world.packed.manifest
    return world.store.path(manifest.shards[0]).read_bytes()


def shards_of(world: World, blob: bytes) -> Terms:
    """Every shard is this blob, whatever it is."""
    return with_manifest(world, shards=(world.store_blob(blob),) * 2)


def too_large_tokens(world: World) -> bytes:
    manifest = world.packed.manifest
    return encode_tokens(np.full((manifest.shard_sequences, manifest.sequence + 1), manifest.vocab), manifest.vocab)


HOSTILE: dict[str, tuple[Callable[[World], Terms], str]] = {
    "a spec with an unknown field": (lambda w: with_spec(w, lambda s: s.update(run="rm -rf /")), "unknown field `run`"),
    "a spec of a billion layers": (
        lambda w: with_spec(w, lambda s: s["model"].update(layers=10**9)),
        "model.layers: Expected `int` <= ",
    ),
    "a spec that is no JSON": (lambda w: of_spec(w, b"\x80\x04K\x01."), "spec"),
    "a spec that nobody serves": (lambda w: replace(w.job_terms(), spec_digest=b"\x55" * 32), "nobody serves its spec"),
    "terms of other steps": (
        lambda w: replace(w.job_terms(), inner_steps=5),
        "its terms say rows of a trace 5, its spec 4",
    ),
    "another genesis": (lambda w: replace(w.job_terms(), genesis_digest=b"\x66" * 32), "the terms say genesis 6666"),
    "a manifest that is none": (lambda w: of_manifest(w, b"[]"), "manifest"),
    "a manifest of another vocabulary": (lambda w: with_manifest(w, vocab=299), "manifest vocab: expected the spec's"),
    "a shard that nobody serves": (lambda w: with_manifest(w, shards=("77" * 32,)), "nobody serves its shard"),
    "a shard that is too short": (lambda w: shards_of(w, a_shard(w)[:-2]), "shard"),
    "a shard that is too long": (lambda w: shards_of(w, a_shard(w) + b"\0\0"), "nobody serves its shard"),
    "a shard that is no shard": (lambda w: shards_of(w, b"\xa5" * len(a_shard(w))), "shard"),
    "tokens beyond the vocabulary": (lambda w: shards_of(w, too_large_tokens(w)), "tokens must be in 0…299"),
}


def overflowing(world: World) -> Terms:
    """A first checkpoint of finite numbers whose losses are none."""
    start = genesis_checkpoint(world.spec)
    start.weights["model.norm.weight"][:] = np.float32(3e38)
    digest = world.store_blob(encode_checkpoint(world.spec, start))
    spec = encode_spec(msgspec.structs.replace(world.spec, genesis=digest))
    return replace(of_spec(world, spec), genesis_digest=bytes.fromhex(digest))


async def open_hostile(world: World, name: str) -> bytes:
    salt = 1 + list(HOSTILE).index(name)
    job = await world.post(HOSTILE[name][0](world), salt)
    call = world.bench.market.round_book.functions.open(job)
    await world.bench.bank.submit_and_confirm(f"open:{salt}", call)
    return job


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_is_claimed_in_a_job_that_cannot_be_worked_on(world: World, name: str) -> None:
    job = await open_hostile(world, name)
    async with open_nodes(world, job, 0) as (node,):
        for _ in range(3):
            await node.turn()
        told = " ".join(node.failures.values())
    assert HOSTILE[name][1] in told and "Traceback" not in told
    assert not any(claim.claimed_at for claim in (await world.round(job)).claims)


async def test_a_node_that_meets_all_of_them_still_works_on_an_honest_job(world: World) -> None:
    assert len(await world.bench.market.job_ids()) == len(HOSTILE)
    job = await world.post(world.job_terms(), salt=100)
    async with open_nodes(world, None, 0, 1) as nodes:
        for node in nodes:
            node.impatient = False
        closed = await world.run(job, lambda round: round.closed_at > 0)
    assert closed.accepted_map == 0b11


async def test_a_job_that_gives_no_numbers_is_tried_out_and_never_claimed(world: World) -> None:
    job = await world.post(overflowing(world), salt=200)
    await world.bench.bank.submit_and_confirm("open:200", world.bench.market.round_book.functions.open(job))
    async with open_nodes(world, job, 0) as (node,):
        for _ in range(3):
            await node.turn()
        assert "a trial of this job failed: inner step 1: loss nan" in node.worker.why_broken(job)
    assert not any(claim.claimed_at for claim in (await world.round(job)).claims)


async def test_a_trial_tells_what_a_claim_takes(world: World) -> None:
    job = await world.post(world.job_terms(), salt=201)
    await world.bench.bank.submit_and_confirm("open:201", world.bench.market.round_book.functions.open(job))
    async with open_nodes(world, job, 0) as (node,):
        await node.turn()  # the base
        assert node.worker.train_seconds(job) == 0
        await node.turn()
        assert 0 < node.worker.train_seconds(job) < 10
        silent = node.service.service.seconds_since_progress
        node.station.compute.heard()  # a sign of life of a long call is progress of the service
        assert node.service.service.seconds_since_progress < silent
        assert not any(claim.claimed_at for claim in (await world.round(job)).claims)
        await node.turn()
        assert any(claim.claimed_at for claim in (await world.round(job)).claims)
