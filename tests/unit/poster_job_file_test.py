"""The job file: what it may say, and the exact terms that follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from node.poster.errors import JobFileError
from node.poster.jobfile import load_job
from node.poster.post import ANY_GENESIS, choose_deposit
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset
from protocol.core.terms import TermsError, check_terms, compute_reservation
from protocol.core.units import TOKEN
from protocol.runtime.errors import ConfigError
from protocol.training.layout import claim_flops, parameter_count
from protocol.training.spec import Tolerances, VerifySpec, encode_spec
from tests.unit.training_fixtures import a_spec

DEV = load_preset("dev")
LINES = {
    "spec": '"spec.json"',
    "blobs": '"blobs"',
    "rounds": "3",
    "shards_per_round": "8",
    "price": '"1000"',
    "seed": '"http://127.0.0.1:7790"',
}


def a_job_file(folder: Path, used: Any = None, /, **lines: str | None) -> Path:
    """`lines` replace TOML values, None leaves a field out."""
    (folder / "spec.json").write_bytes(encode_spec(used or a_spec()))
    path = folder / "job.toml"
    path.write_text("\n".join(f"{name} = {value}" for name, value in {**LINES, **lines}.items() if value is not None))
    return path


def test_a_reward_is_the_claims_flops_times_the_price_rounded_down(tmp_path: Path) -> None:
    spec = a_spec()
    tokens = spec.inner.steps * spec.inner.batch * spec.inner.sequence
    flops = tokens * (6 * parameter_count(spec) + 12 * 2 * 32 * 32)
    assert flops == claim_flops(spec) and tokens == 1280
    terms = load_job(a_job_file(tmp_path)).terms(DEV, ANY_GENESIS)
    assert terms.reward_per_shard == flops * 1000 * TOKEN // 10**15
    assert terms.bond_per_shard == 25 * terms.reward_per_shard
    assert terms.audit_fee == -(-terms.reward_per_shard * 11 // 10)
    tiny = load_job(a_job_file(tmp_path, price='"0.000000000000000007"', audit_fee_rewards='"1"'))
    assert tiny.terms(DEV, ANY_GENESIS).reward_per_shard == 7 * flops // 10**15


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    terms = load_job(a_job_file(tmp_path)).terms(DEV, ANY_GENESIS)
    assert (terms.min_shards, terms.probation_slots, terms.audit_rate_bps) == (4, 2, 1000)
    assert (terms.tolerance_class, terms.loss_tolerance, terms.inner_steps) == (0, 5000, 10)
    assert terms.windows.audit_commit == DEV.windows["auditCommit"] and terms.windows.train == DEV.windows["train"]
    one = load_job(a_job_file(tmp_path, shards_per_round="1")).terms(DEV, ANY_GENESIS)
    assert (one.min_shards, one.probation_slots) == (1, 1)


def test_a_window_is_overridden_alone(tmp_path: Path) -> None:
    terms = load_job(a_job_file(tmp_path, windows="{challenge = 5, audit_reveal = 11}")).terms(DEV, ANY_GENESIS)
    assert (terms.windows.challenge, terms.windows.audit_reveal, terms.windows.round) == (5, 11, 120)


def test_a_spec_that_widens_the_loss_test_widens_it_on_chain(tmp_path: Path) -> None:
    wide = Tolerances(t1_accept=1e-3, t1_reject=1e-2, t2_accept=2e-5, t2_reject=1e-3)
    spec = a_spec(verify=VerifySpec(tolerance_class="fp32", state_every=2, tolerances=wide))
    assert load_job(a_job_file(tmp_path, spec)).terms(DEV, ANY_GENESIS).loss_tolerance == 20_000
    spec = a_spec(verify=VerifySpec(tolerance_class="bf16", state_every=2))
    terms = load_job(a_job_file(tmp_path, spec)).terms(DEV, ANY_GENESIS)
    assert (terms.tolerance_class, terms.loss_tolerance) == (1, 2_000_000)


def test_the_deposit_is_the_whole_job_or_what_the_file_says(tmp_path: Path) -> None:
    job = load_job(a_job_file(tmp_path))
    reservation = compute_reservation(job.terms(DEV, ANY_GENESIS))
    assert choose_deposit(job, reservation) == 3 * reservation
    assert choose_deposit(load_job(a_job_file(tmp_path, deposit='"7.5"')), reservation) == 75 * TOKEN // 10
    with pytest.raises(JobFileError, match=r"job.toml: deposit: have 0, one round reserves .*; deposit at least that"):
        choose_deposit(load_job(a_job_file(tmp_path, deposit="0")), reservation)


def test_salts_are_texts_and_make_other_jobs(tmp_path: Path) -> None:
    first, second = (load_job(a_job_file(tmp_path, salt=salt)).salt for salt in ('"a"', '"b"'))
    assert len(first) == len(second) == 32 and first != second


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        ({"rounds": None}, ConfigError, "missing required field `rounds`"),
        ({"rounds": "0"}, JobFileError, "rounds: expected at least 1, have 0"),
        ({"shards_per_round": "0"}, JobFileError, "shards_per_round: expected at least 1, have 0"),
        ({"rouds": "1"}, ConfigError, "unknown field rouds; did you mean rounds?"),
        ({"price": "0.5"}, ConfigError, "price: Expected `int | str`, got `float`"),
        ({"price": '"half"'}, JobFileError, "price: amount 'half': expected a number of tokens"),
        ({"price": '"-1"'}, JobFileError, "price: amount '-1': expected a positive number"),
        ({"bond_rewards": '"many"'}, JobFileError, "bond_rewards: expected a number of rewards"),
        ({"bond_rewards": '"1"'}, TermsError, "bond_per_shard: have .*, need .*: a smaller bond makes cheating pay"),
        ({"audit_rate_bps": "0"}, TermsError, "audit rate 0: no bond deters"),
        ({"audit_rate_bps": "10001"}, TermsError, "audit_rate_bps: have 10001, expected 0 to 10000"),
        ({"audit_fee_rewards": '"0.9"'}, TermsError, "audit_fee: have"),
        ({"price": '"0.000000000000000000"'}, TermsError, "reward_per_shard: have 0, expected 1 to"),
        ({"min_shards": "5"}, TermsError, "min_shards: have 5, expected 1 to 4"),
        ({"probation_slots": "9"}, TermsError, "probation_slots: have 9, expected 1 to 8"),
        ({"shards_per_round": "257"}, TermsError, "shards_per_round: have 257, expected 1 to 256"),
        ({"windows": "{demand = 1}"}, TermsError, "windows.demand: have 1, expected 10 to"),
        ({"seed": '"ftp://x"'}, JobFileError, "seed: peer URL 'ftp://x': expected http:// or https://"),
        ({"seed": f'"http://{"x" * 300}"'}, JobFileError, "seed: 307 bytes, at most 256 go on chain"),
        ({"spec": '"nowhere.json"'}, JobFileError, "spec: cannot read .*nowhere.json: No such file"),
    ],
)
def test_each_mistake_is_one_line_with_its_field(
    tmp_path: Path, lines: dict[str, str | None], kind: type[GradmarketError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        check_terms(load_job(a_job_file(tmp_path, **lines)).terms(DEV, ANY_GENESIS), DEV)
    assert "\n" not in str(caught.value)


def test_a_spec_in_any_layout_has_one_digest_and_a_broken_one_names_its_field(tmp_path: Path) -> None:
    path = a_job_file(tmp_path)
    digest = load_job(path).spec_digest
    spec = tmp_path / "spec.json"
    spec.write_text(spec.read_text().replace(",", ",\n  "))
    assert load_job(path).spec_digest == digest
    spec.write_text(spec.read_text().replace('"layers":2', '"layers":0'))
    with pytest.raises(JobFileError, match=r"spec.json: spec model.layers: .* have 0"):
        load_job(path)
