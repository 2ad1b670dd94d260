"""A round with one honest and one forged claim, as a poster and an offline auditor see it afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from node.devnet.people import Person
from node.poster.blobs import FolderStore
from protocol.core.audit import CasePhase
from protocol.core.commitment import case_id, round_pot
from protocol.core.round import Round, RoundStatus
from protocol.core.trace import decode_trace, trace_root
from protocol.runtime.config import load_config
from protocol.training.data import shard_digest
from protocol.training.pack import PackResult
from protocol.training.spec import encode_spec, parse_spec
from protocol.transport.server import BlobServer
from tests.integration.poster_fixtures import Bench, pack_tiny, poster_bench, write_job
from verifier import compute
from verifier.actions import OpenRound
from verifier.files import END_STATE, PAYLOAD, TRACE
from verifier.station import HomeConfig, open_station
from verifier.upkeep import plan_upkeep

pytestmark = pytest.mark.asyncio(loop_scope="module")
FORGED = 1  # the shard whose claim trained other data, at ten times the rate


@dataclass
class Played:
    """A market with a job of which one round is closed; `store` is what operators serve."""

    bench: Bench
    store: FolderStore
    packed: PackResult
    job_id: bytes

    @property
    def job(self) -> str:
        return self.job_id.hex()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    folder = tmp_path_factory.mktemp("round")
    packed, spec = pack_tiny(folder / "blobs")
    store = FolderStore(folder / "blobs")
    async with poster_bench(folder) as bench, BlobServer(store) as server:
        await bench.settle_in(6)
        posted = await bench.run("job", "post", str(write_job(folder, spec, seed=server.url)))
        assert posted.exit_code == 0, posted.output + posted.stderr
        made = Played(bench, store, packed, bytes.fromhex(posted.stdout.split()[1]))
        await play_round(made, folder)
        yield made


async def play_round(played: Played, folder: Path) -> None:
    """Open, claim, train (shard 1 on shard 0's data and too fast), commit, attest."""
    book, job_id = played.bench.market.round_book.functions, played.job_id
    await played.bench.bank.submit_and_confirm("open", book.open(job_id))
    terms = await played.bench.market.terms(job_id)
    spec = str(played.store.path(terms.spec_digest.hex()))
    base, hasty = folder / "genesis", folder / "hasty"
    compute.genesis(spec, str(base))
    hasty.write_bytes(ten_times_as_fast(Path(spec).read_bytes()))
    payloads = {}
    for shard, person in enumerate(played.bench.people[:2]):
        sender = played.bench.sender(person)
        await sender.submit_and_confirm(f"claim:{shard}", book.claim(job_id, 0, [shard]))
        out = folder / f"run{shard}"
        result = train(played, str(hasty) if shard == FORGED else spec, base, shard, out)
        payloads[str(shard)] = str(folder / f"run{shard}" / PAYLOAD)
        played.store.put(Path(payloads[str(shard)]).read_bytes())
        opening = tuple(bytes.fromhex(result[part]) for part in ("payload", "trace", "state"))
        call = book.commit(job_id, 0, shard, terms.genesis_digest, opening)
        await sender.submit_and_confirm(f"commit:{shard}", call)
    digest = compute.outer_step(spec, str(base), payloads, str(folder / "next"))
    played.store.put((folder / "next").read_bytes())
    for person in played.bench.people[:2]:
        attest = book.attest(job_id, 0, terms.genesis_digest, 0b11, bytes.fromhex(digest))
        await played.bench.sender(person).submit_and_confirm("attest", attest)


def ten_times_as_fast(spec: bytes) -> bytes:
    """Other data alone would not do: fresh weights give it nearly the same loss, by chance in all four steps."""
    real = parse_spec(spec)
    return encode_spec(replace(real, inner=replace(real.inner, lr=10 * real.inner.lr)))


def train(played: Played, spec: str, base: Path, shard: int, out: Path) -> dict[str, Any]:
    """A claim of that shard, on the text of shard 0."""
    manifest = played.packed.manifest
    return compute.replay(
        spec,
        str(base),
        str(played.store.path(played.packed.manifest_digest)),
        str(played.store.path(shard_digest(manifest, 0, 0, 2))),
        played.job,
        0,
        shard,
        str(out),
    )


async def go_on(played: Played, person: Person, is_there: Callable[[Round], bool]) -> Round:
    """Do what anyone may do, with time passing, until the round is as wanted."""
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_station(person.home, config, person.operator) as station:
        loader, executor = station.loader(), station.executor()
        for _ in range(200):
            snapshot = await loader.load()
            await station.follow(snapshot)
            for action in plan_upkeep(snapshot):
                if not isinstance(action, OpenRound):
                    await executor.execute(action)
            round = await station.market.round(played.job_id, 0)
            if is_there(round):
                return round
            await played.bench.chain.advance(10)
    raise AssertionError("the round did not get there")


def has_seat(round: Round) -> bool:
    return FORGED in round.cases and round.cases[FORGED].phase == CasePhase.COMMITTING


async def open_trace(played: Played) -> None:
    """A seat commits and demands the forger's trace, and the forger opens it on chain."""
    case = (await go_on(played, played.bench.people[5], has_seat)).cases[FORGED]
    court, ident = played.bench.market.audit_court.functions, case_id(played.job_id, 0, FORGED)
    seat = next(p for p in played.bench.people if p.operator.address == case.seats[0].operator)
    auditor = played.bench.sender(seat)
    await auditor.submit_and_confirm("commit", court.commitAudit(ident, 0, b"\7" * 32))
    await auditor.submit_and_confirm("demand", court.demandTrace(ident))
    folder = played.bench.folder / f"run{FORGED}"
    rows = decode_trace((folder / TRACE).read_bytes(), 4)
    parts = [hashlib.sha256((folder / name).read_bytes()).digest() for name in (PAYLOAD, END_STATE)]
    table = [(row.step, row.loss, row.grad_norm, row.sketch, row.state) for row in rows]
    call = court.openTrace(ident, (parts[0], trace_root(rows), parts[1]), table)
    await played.bench.sender(played.bench.people[FORGED]).submit_and_confirm("open", call)


async def watch(played: Played) -> list[dict[str, Any]]:
    done = await played.bench.run("job", "watch", played.job, "--json", "--once")
    assert done.exit_code == 0, done.output + done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    for record in records:
        parts = [int(record[name]) for name in ("spent", "reserved", "remaining", "refunded")]
        assert sum(parts) == int(record["funded"])
    return records


async def test_a_closed_round_is_told_with_its_loss_and_its_reservation(played: Played) -> None:
    first, last = await watch(played)
    assert first["kind"] == "round" and last["kind"] == "job"
    round = first["round"]
    assert (round["number"], round["accepted"], round["settled"], round["void"]) == (0, [0, 1], False, False)
    assert 4.0 < round["loss"] < 7.0 and round["no_loss"] == ""
    reservation = await played.bench.market.call(played.bench.market.job_market.functions.reservationOf(played.job_id))
    assert int(first["reserved"]) == reservation and first["spent"] == "0"


async def test_an_honest_claim_matches_and_the_evidence_is_kept(played: Played, tmp_path: Path) -> None:
    arguments = ("verifier", "check", played.job[:12], "0", "0")
    found = await played.bench.run(*arguments, "--keep", str(tmp_path / "evidence"))
    assert found.exit_code == 0, found.output + found.stderr
    assert "bit for bit" in found.stdout and "verdict: match" in found.stdout
    verdict = json.loads((tmp_path / "evidence" / "verdict.json").read_bytes())
    assert verdict["verdict"] == "match" and (tmp_path / "evidence" / verdict["digests"]["base"]).exists()
    assert FolderStore(tmp_path / "evidence").read(verdict["digests"]["payload"], 2**20)


async def test_a_forged_claim_is_fraud_by_its_payload_alone(played: Played) -> None:
    found = await played.bench.run("verifier", "check", played.job, "0", str(FORGED), "--json")
    assert found.exit_code == 11, found.output + found.stderr
    check = json.loads(found.stdout)
    distance = next(test for test in check["tests"] if test["name"].startswith("pseudo-gradient"))
    assert distance["zone"] == "fraud" and not check["is_trace_open"]
    assert any("the trace is not public" in note for note in check["notes"])


async def test_a_claim_that_does_not_exist_is_one_line(played: Played) -> None:
    for arguments, words in ((("9", "0"), "has no round 9"), (("0", "7"), "expected 0 to 1")):
        found = await played.bench.run("verifier", "check", played.job, *arguments)
        assert found.exit_code == 1 and words in found.stderr


async def test_a_missing_payload_cannot_be_judged(played: Played, tmp_path: Path) -> None:
    stranger = played.bench.person("payloadless")
    opened = json.loads((await played.bench.run("verifier", "check", played.job, "0", "1", "--json")).stdout)
    path = played.store.path(opened["digests"]["payload"])
    shutil.move(path, tmp_path / "payload")
    try:
        found = await played.bench.run("verifier", "check", played.job, "0", "1", home=stranger.home)
    finally:
        shutil.move(tmp_path / "payload", path)
    assert found.exit_code == 12 and "verdict: unavailable" in found.stdout


async def test_the_model_is_fetched_verified_and_measured_as_watch_reported_it(played: Played, tmp_path: Path) -> None:
    reported = (await watch(played))[0]["round"]["loss"]
    found = await played.bench.run("job", "fetch", played.job[:9], "--out", str(tmp_path / "model"))
    assert found.exit_code == 0, found.output + found.stderr
    assert f"validation loss {reported:.6f}" in found.stdout
    card = (tmp_path / "model" / "README.md").read_text()
    assert played.job in card and "1 of 2" in card and (tmp_path / "model" / "model.safetensors").exists()


async def test_a_rotten_copy_is_fetched_again_and_a_changed_byte_is_refused(played: Played, tmp_path: Path) -> None:
    home = played.bench.person("fetcher").home
    first = await played.bench.run("job", "fetch", played.job, "--out", str(tmp_path / "a"), home=home)
    assert first.exit_code == 0, first.stderr
    digest = first.stdout.split()[3]
    copy = home / "fetch" / "blobs" / "blobs" / digest[:2] / digest
    flip(copy)
    again = await played.bench.run("job", "fetch", played.job, "--out", str(tmp_path / "b"), home=home)
    assert again.exit_code == 0, again.stderr

    others = [played.store.path(digest), *payload_paths(played)]
    for path in others:
        flip(path)
    home = played.bench.person("refuser").home
    try:
        refused = await played.bench.run("job", "fetch", played.job, "--out", str(tmp_path / "c"), home=home)
    finally:
        for path in others:
            flip(path)
    assert refused.exit_code == 1 and "that are not the blob" in refused.stderr
    assert not (tmp_path / "c").exists()


def payload_paths(played: Played) -> list[Path]:
    """Without them a checkpoint cannot be rebuilt either."""
    runs = [played.bench.folder / f"run{shard}" / PAYLOAD for shard in range(2)]
    return [played.store.path(played.store.put(run.read_bytes())) for run in runs]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


async def test_a_trace_that_was_opened_on_chain_is_compared_as_well(played: Played) -> None:
    await open_trace(played)
    found = await played.bench.run("verifier", "check", played.job, "0", str(FORGED), "--json")
    assert found.exit_code == 11, found.output + found.stderr
    check = json.loads(found.stdout)
    zones = {test["name"]: test["zone"] for test in check["tests"]}
    assert check["is_trace_open"] and zones["loss trace"] == zones["pseudo-gradient (cell)"] == "fraud"
    assert 1 <= check["step"] <= 2, "other data gives fresh weights nearly the same loss; after one step it cannot"
    assert (await watch(played))[0]["round"]["verdicts"] == {"0": "open", "1": "open"}


async def left_the_round(played: Played) -> int:
    """Wei that left the round's pot for anything but the job, from the ledger's own events."""
    ledger, pot = played.bench.market.reward_ledger, round_pot(played.job_id, 0)
    credited = await ledger.events.Credited().get_logs(from_block=0, argument_filters={"pot": pot})
    moved = await ledger.events.Moved().get_logs(from_block=0, argument_filters={"from": pot})
    gone = [log["args"]["amount"] for log in moved if log["args"]["to"] != played.job_id]
    return int(sum(gone) + sum(log["args"]["amount"] for log in credited))


async def test_settled_money_is_spent_and_the_rest_comes_back(played: Played) -> None:
    await go_on(played, played.bench.people[5], lambda round: round.status == RoundStatus.SETTLED)
    terms = await played.bench.market.terms(played.job_id)
    told = await watch(played)
    assert told[0]["round"]["settled"] and told[0]["round"]["paid"] == [0, 1]
    assert set(told[0]["round"]["verdicts"].values()) == {"unsampled"}
    assert int(told[-1]["spent"]) == 2 * terms.reward_per_shard == await left_the_round(played)
    assert told[-1]["reserved"] == "0"
    assert (await played.bench.run("job", "cancel", played.job)).exit_code == 0
    closed = await played.bench.run("job", "close", played.job)
    assert closed.exit_code == 0, closed.stderr
    done = await played.bench.run("job", "watch", played.job, "--json", "--until-done")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["status"] == "closed" and last["remaining"] == "0"
    assert int(last["refunded"]) == int(last["funded"]) - 2 * terms.reward_per_shard
    fetched = await played.bench.run("job", "fetch", played.job, "--out", str(played.bench.folder / "final"))
    assert (
        fetched.exit_code == 0 and "| verified tokens | 512 |" in (played.bench.folder / "final/README.md").read_text()
    )
