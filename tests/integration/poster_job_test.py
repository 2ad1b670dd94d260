"""A poster's commands on a real chain: plan, post twice, fund, watch, pause, cancel, refund, close."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from click.testing import Result

from protocol.core.units import TOKEN, parse_tokens
from tests.integration.poster_fixtures import Bench, pack_tiny, poster_bench, write_job

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=("anvil", "eth-tester"))
async def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("poster")
    async with poster_bench(folder, request.param) as made:
        pack_tiny(folder / "blobs")
        yield made


def a_job(bench: Bench, **changes: Any) -> Path:
    _, spec = pack_tiny(bench.folder / "blobs")
    return write_job(bench.folder, spec, **changes)


async def tokens_of(bench: Bench) -> int:
    return await bench.market.token_balance(bench.poster.owner.address)


async def post(bench: Bench, path: Path) -> Result:
    """Nobody is there to work on it."""
    return await bench.run("job", "post", "--anyway", str(path))


async def test_plan_names_the_rules_that_exclude_owners_and_signs_nothing(bench: Bench) -> None:
    path = a_job(bench)
    alone = await bench.run("job", "plan", str(path))
    assert alone.exit_code == 0, alone.output
    assert "no round opens: 0 owners have an enrolled ticket, need 6" in alone.output
    assert "nobody can claim" in alone.output
    await bench.settle_in(1, stake=60 * TOKEN)
    planned = (await bench.run("job", "plan", str(path))).output
    assert "can claim" in planned and "1 with an operator or a ticket" in planned
    nonce = await bench.chain.rpc("eth_getTransactionCount", bench.poster.owner.address, "latest")
    assert int(nonce, 16) == 0


async def test_too_little_balance_leaves_no_job_and_no_transaction(bench: Bench) -> None:
    poor = bench.person("poor")
    refused = await bench.run("job", "post", str(a_job(bench)), home=poor.home)
    assert refused.exit_code == 1
    assert f"job post: {poor.owner.address} has 0 tokens, needs" in refused.stderr
    assert await bench.market.job_ids() == []


async def test_a_market_without_jobs_says_so(bench: Bench) -> None:
    listed = await bench.run("job", "list")
    assert listed.exit_code == 0 and listed.stdout == ""
    assert listed.stderr == "no job was ever posted on this market: post one with `gradmarket job post FILE`\n"


async def test_a_job_that_would_not_start_is_posted_only_when_asked_for(bench: Bench) -> None:
    path, before = a_job(bench, salt="too early"), await tokens_of(bench)
    planned = (await bench.run("job", "plan", str(path))).stdout
    (obstacle,) = [line.split(maxsplit=1)[1] for line in planned.splitlines() if line.startswith("obstacle")]
    refused = await bench.run("job", "post", str(path))
    assert refused.exit_code == 1
    assert refused.stderr == f"gradmarket: job post: {obstacle}; --anyway posts it all the same\n"
    assert await bench.market.job_ids() == [] and await tokens_of(bench) == before
    posted = await post(bench, path)
    assert posted.exit_code == 0, posted.stderr
    assert [job.hex() for job in await bench.market.job_ids()] == [posted.stdout.split()[1]]
    again = await bench.run("job", "post", str(path))
    assert again.exit_code == 0 and "exists already" in again.stdout


async def test_a_job_is_posted_once_and_its_money_adds_up_until_it_is_closed(bench: Bench) -> None:
    before = await tokens_of(bench)
    posted = await post(bench, a_job(bench, salt="whole life"))
    assert posted.exit_code == 0, posted.output + posted.stderr
    job = posted.stdout.split()[1]
    deposit = before - await tokens_of(bench)
    assert deposit == parse_tokens(posted.stdout.split()[4])

    again = await post(bench, a_job(bench, salt="whole life"))
    assert again.exit_code == 0 and "exists already: nothing was taken" in again.stdout and job in again.stdout
    assert before - await tokens_of(bench) == deposit

    other = await bench.run("job", "post", str(a_job(bench, salt="whole life", rounds=7)))
    assert other.exit_code == 1 and "exists with another rounds" in other.stderr and "salt" in other.stderr
    assert before - await tokens_of(bench) == deposit

    funded = await bench.run("job", "fund", job[:8], "2.5")
    assert funded.exit_code == 0, funded.stderr
    record = await watch_once(bench, job)
    assert int(record["funded"]) == int(record["remaining"]) == deposit + parse_tokens("2.5")
    assert record["spent"] == record["reserved"] == record["refunded"] == "0"

    assert record["status"] == "paused" and "1 owners have an enrolled ticket, need 6" in record["obstacles"][0]

    assert "paused (poster)" in (await bench.run("job", "pause", job)).stdout
    assert "paused (poster)" in (await bench.run("job", "list")).stdout
    assert "paused (auditors)" in (await bench.run("job", "resume", job)).stdout
    early = await bench.run("job", "close", job)
    assert early.exit_code == 1 and "cancel it first" in early.stderr

    assert "closable" in (await bench.run("job", "cancel", job)).stdout
    assert (await bench.run("job", "cancel", job)).exit_code == 0
    over = await bench.run("job", "fund", job, "1")
    assert over.exit_code == 1 and "it takes no more tokens" in over.stderr
    part = await bench.run("job", "refund", job, "1")
    assert part.exit_code == 0 and "credited 1 tokens" in part.stdout, part.stderr
    assert int((await watch_once(bench, job))["refunded"]) == TOKEN
    much = await bench.run("job", "refund", job, "1000")
    assert much.exit_code == 1 and "are not reserved, asked for 1000" in much.stderr
    assert (await bench.run("job", "close", job)).exit_code == 0
    assert (await bench.run("job", "close", job)).exit_code == 0
    last = await watch_once(bench, job)
    assert last["status"] == "closed" and int(last["refunded"]) == int(last["funded"]) == deposit + parse_tokens("2.5")
    assert (await bench.run("rewards", "withdraw")).exit_code == 0
    assert await tokens_of(bench) == before


async def watch_once(bench: Bench, job: str) -> dict[str, Any]:
    done = await bench.run("job", "watch", job, "--json", "--once")
    assert done.exit_code == 0, done.output + done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    for record in records:
        parts = [int(record[name]) for name in ("spent", "reserved", "remaining", "refunded")]
        assert sum(parts) == int(record["funded"])
    return dict(records[-1])


async def test_a_job_is_named_by_a_prefix_or_refused_in_one_line(bench: Bench) -> None:
    for text, words in (("zz", "expected the job's id in hex"), ("ffffffffffff", "none of the market's")):
        refused = await bench.run("job", "watch", text, "--once")
        assert refused.exit_code == 1 and words in refused.stderr and refused.stderr.count("\n") == 1


async def test_only_the_poster_gives_orders(bench: Bench) -> None:
    posted = await post(bench, a_job(bench, salt="orders"))
    stranger = bench.person("stranger")
    refused = await bench.run("job", "cancel", posted.stdout.split()[1], home=stranger.home)
    assert refused.exit_code == 1 and f"it was posted by {bench.poster.owner.address}" in refused.stderr


async def test_the_contract_judges_the_terms_before_anything_is_approved(bench: Bench) -> None:
    path = a_job(bench, salt="windows", audit_fee_rewards="11")
    refused = await bench.run("job", "post", str(path))
    assert refused.exit_code in (1, 8) and "udit" in refused.stderr
    token, ledger = bench.market.dev_token, bench.market.deployment.address("RewardLedger")
    assert await bench.market.call(token.functions.allowance(bench.poster.owner.address, ledger)) == 0


async def test_a_fetch_before_the_first_round_says_so(bench: Bench, tmp_path: Path) -> None:
    posted = await post(bench, a_job(bench, salt="orders"))
    job = posted.stdout.split()[1]
    refused = await bench.run("job", "fetch", job, "--out", str(tmp_path / "model"))
    assert refused.exit_code == 1 and "no round has closed yet" in refused.stderr
    assert not (tmp_path / "model").exists()
