"""The whole market with real processes on a real chain, in its short form, and what it left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from protocol.core.audit import CaseKind

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of `gradmarket demo --quick` for all tests of this module."""
    return demo(tmp_path_factory.mktemp("runs"), "--quick")


def demo(runs: Path, *arguments: str) -> Path:
    """Run it to its end; its folder."""
    command = [sys.executable, "-m", "node.cli", "demo", "--runs", str(runs), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (folder,) = runs.iterdir()
    (folder / "output.txt").write_text(done.stdout)
    return folder


def events(run: Path, name: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [record["args"] for record in records if record["event"] == name]


def names(run: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((run / "names.json").read_text())
    return found


def test_every_round_closes_with_one_checkpoint_that_its_attesters_computed_alone(run: Path) -> None:
    closed = events(run, "RoundClosed")
    assert [args["round"] for args in closed] == [0, 1, 2]
    for args in closed:
        votes = [vote for vote in events(run, "Attested") if vote["round"] == args["round"]]
        agreeing = sum(v["weight"] for v in votes if (v["bitmap"], v["next"]) == (args["acceptedMap"], args["next"]))
        assert 3 * agreeing > 2 * 6


def test_each_shard_of_each_round_is_committed_once(run: Path) -> None:
    committed = [(args["round"], args["shard"]) for args in events(run, "Committed")]
    assert sorted(committed) == [(round, shard) for round in range(3) for shard in range(6)]


def test_the_cheat_and_nobody_else_is_slashed(run: Path) -> None:
    slashed = {names(run)[args["owner"]] for args in events(run, "Slashed")}
    assert slashed == {"mallory"}


def test_every_shard_of_the_cheat_that_was_judged_is_fraud_and_unpaid(run: Path) -> None:
    who = names(run)
    cheated = {(a["round"], a["shard"]) for a in events(run, "Committed") if who[a["operator"]] == "mallory"}
    paid = {(a["round"], a["shard"]) for a in events(run, "ClaimSettled") if a["reward"]}
    verdicts = events(run, "VerdictReached")
    assert sum(who[args["accused"]] == "mallory" and args["outcome"] == 3 for args in verdicts) >= 1
    assert all(args["outcome"] == 1 for args in verdicts if who[args["accused"]] != "mallory")
    assert not cheated & paid, "the cheat was on probation, so all its claims were sampled"


def test_the_operator_that_was_killed_lost_no_claim(run: Path) -> None:
    assert "is killed with SIGKILL" in (run / "output.txt").read_text()
    assert events(run, "Lapsed") == []


def test_the_books_balance_again_from_the_saved_chain(run: Path) -> None:
    command = [sys.executable, "-m", "node.cli", "demo", "prove", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "the books balance" in done.stdout


def test_the_money_is_where_it_belongs(run: Path) -> None:
    books = json.loads((run / "accounts.json").read_text())
    assert books["still_credited"] == "0"
    assert books["in_pots"] == books["court_fund"]
    poster = next(a for a in books["accounts"].values() if a["name"] == "poster")
    assert 0 < int(poster["refunded"]) < int(poster["funded"])


def test_the_model_loads_in_transformers_and_its_loss_fell(run: Path) -> None:
    losses = [loss for _, loss in json.loads((run / "loss.json").read_text())["this market"]]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)
    assert (run / "sample.txt").read_text().startswith("ROMEO:")
    assert (run / "model" / "model.safetensors").exists()


@pytest.mark.slow
def test_a_payload_that_nobody_serves_is_unpaid_and_not_slashed(tmp_path: Path) -> None:
    run = demo(tmp_path, "--quick", "--cheat", "withhold")
    who = names(run)
    withheld = {(a["round"], a["shard"]) for a in events(run, "Committed") if who[a["operator"]] == "mallory"}
    settled = {(a["round"], a["shard"]): a["reward"] for a in events(run, "ClaimSettled")}
    assert withheld
    assert all(settled[claim] == 0 for claim in withheld)
    assert events(run, "Slashed") == []
    for args in events(run, "RoundClosed"):
        assert not any(args["acceptedMap"] >> shard & 1 for round, shard in withheld if round == args["round"])


@pytest.mark.slow
def test_a_sleeper_is_found_by_an_auditor_of_its_own_accord(tmp_path: Path) -> None:
    """It works honestly until probation is over; the court then samples one claim in six, the auditor all others."""
    run = demo(
        tmp_path, "--cheat", "sleeper", "--sample", "1", "--audit-rate-bps", "1000", "--challenge-seconds", "120"
    )
    who = names(run)
    forged = {(a["round"], a["shard"]) for a in events(run, "Committed") if who[a["operator"]] == "mallory"}
    forged = {(round, shard) for round, shard in forged if round >= 3}
    judged = {(a["round"], a["shard"]): a for a in events(run, "CaseOpened")}
    assert forged and forged <= judged.keys()
    assert any(judged[claim]["kind"] == CaseKind.CHALLENGED for claim in forged), (
        "the court alone found them all: run it again"
    )
    assert {who[args["owner"]] for args in events(run, "Slashed")} == {"mallory"}
    honest = [a for a in events(run, "VerdictReached") if who[a["accused"]] != "mallory"]
    assert all(args["outcome"] == 1 for args in honest)


@pytest.mark.slow
def test_the_market_runs_on_the_embedded_chain(tmp_path: Path) -> None:
    """A user with pip alone has no anvil."""
    run = demo(tmp_path, "--quick", "--backend", "eth-tester")
    assert len(events(run, "RoundClosed")) == 3
    assert {names(run)[args["owner"]] for args in events(run, "Slashed")} == {"mallory"}
