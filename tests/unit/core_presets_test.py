"""The presets' numbers follow from their derivations, recomputed here with exact binomials."""

from __future__ import annotations

import re
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest

from protocol.core.presets import PARAMETERS, Preset, load_preset, preset_names
from protocol.core.terms import least_bond

TYPES = Path(__file__).resolve().parents[2] / "contracts" / "types" / "Types.sol"
COLLUDING = Fraction(1, 5)  # share of the tickets that a cheat's friends hold
POWER = Fraction(99, 100)  # an honest seat finds the fraud
DRAWS = 3  # Panels.sol: the first and two redraws
LEVELS = 4  # 1, 3, the slash panel, an appeal
MOST_WINDOW = 30 * 86_400  # TermsLib.sol
HOUR = 3_600

ALL = [load_preset(name) for name in preset_names()]

all_presets = pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
public = pytest.mark.parametrize("preset", [load_preset("testnet"), load_preset("mainnet")], ids=lambda p: p.name)


def chance(seats: int, colluders: int) -> Fraction:
    """Exactly so many colluding owners among so many seats."""
    return comb(seats, colluders) * COLLUDING**colluders * (1 - COLLUDING) ** (seats - colluders)


def chance_of(seats: int, least: int) -> Fraction:
    return sum((chance(seats, count) for count in range(least, seats + 1)), Fraction(0))


def detection(preset: Preset) -> Fraction:
    """A sampled cheat is convicted: colluding seats say Match. One ends the case at the first seat, two of the next two
    end it at three seats, panel - needed + 1 of all prevent `needed` findings of Fraud, and again after an appeal. A
    development network has not the owners that an appeal takes.
    """
    tolerated = preset.slash_panel - preset.slash_needed
    convicted = sum(
        chance(2, early) * chance(preset.slash_panel - 3, late) * _survives_appeal(preset, early + late)
        for early in range(2)
        for late in range(preset.slash_panel - 2)
        if early + late <= tolerated
    )
    return POWER * (1 - COLLUDING) * convicted


def _survives_appeal(preset: Preset, colluders: int) -> Fraction:
    """`appealNeeded` findings of Fraud remain when the other seats of the largest panel have spoken."""
    if preset.name == "dev":
        return Fraction(1)
    left = preset.appeal_panel - preset.appeal_needed - colluders
    return 1 - chance_of(preset.appeal_panel - preset.slash_panel, left + 1)


def last_seat(preset: Preset) -> int:
    """Most seconds from a close to the last seat of its sample: in every level three draws, each after a wait for busy
    tickets and an hour for the beacon and, but for the last, with a commit and a reveal phase; one demand; a day to
    appeal.
    """
    cycle = preset.windows["auditCommit"] + preset.windows["auditReveal"]
    demand = preset.windows["demand"] + preset.windows["auditReveal"]
    return LEVELS * DRAWS * (2 * cycle + HOUR) - cycle + demand + 86_400


def test_the_fields_are_those_of_the_contracts_in_their_order() -> None:
    body = TYPES.read_text().split("struct Preset {")[1].split("}")[0]
    fields = re.findall(r"^\s+(uint\d+|bool) (\w+);", body, re.M)
    assert [name for _, name in fields] == list(PARAMETERS)
    for preset in ALL:
        for (kind, name), value in zip(fields, preset.as_tuple(), strict=True):
            assert type(value) is bool if kind == "bool" else 0 < value < 2 ** int(kind[4:]), (preset.name, name)


@all_presets
def test_every_number_has_a_unit_and_a_reason(preset: Preset) -> None:
    rows = [*preset.reasons, *preset.beacon.arguments.values()]
    assert {row.name for row in rows} >= {*PARAMETERS, *preset.windows, *preset.terms}
    assert all(row.unit and len(row.why) >= 12 for row in rows) and preset.beacon.why


@all_presets
def test_detection_is_what_a_fifth_of_colluding_tickets_leaves(preset: Preset) -> None:
    exact = detection(preset)
    assert 0 <= exact - Fraction(preset.detection_bps, 10_000) < Fraction(1, 100)
    assert f"{float(exact):.4f}" in next(row.why for row in preset.reasons if row.name == "detectionBps")


def test_the_public_panels_detect_more_than_two_cheats_in_three() -> None:
    assert round(float(detection(load_preset("mainnet"))), 6) == 0.688631
    assert (load_preset("testnet").detection_bps, load_preset("mainnet").detection_bps) == (6800, 6800)


@all_presets
def test_panels_convict_by_majority_and_a_fifth_of_the_tickets_frames_nobody(preset: Preset) -> None:
    for panel, needed, most in (
        (preset.slash_panel, preset.slash_needed, Fraction(1, 100)),
        (preset.appeal_panel, preset.appeal_needed, Fraction(1, 100_000)),
    ):
        assert panel // 2 < needed <= panel and chance_of(panel, needed) < most
    assert preset.appeal_panel > preset.slash_panel


def test_the_chances_that_the_reasons_name_are_exact() -> None:
    why = {row.name: row.why for row in load_preset("mainnet").reasons}
    assert f"{float(chance_of(7, 5)):.4f}" == "0.0047" and "0.0047" in why["slashPanel"]
    assert f"{float(chance_of(21, 14)):.7f}" == "0.0000045" and "0.0000045" in why["appealPanel"]
    assert f"{float(chance_of(21, 8)):.3f}" == "0.043" and "0.043" in why["appealPanel"]
    assert f"{(1 - 0.68) ** 10:.6f}" == "0.000011" and "0.000011" in why["probationAudits"]
    assert f"{(1 - 0.68 / 10) ** 10:.2f}" == "0.49" and "0.49" in why["probationAudits"]
    assert f"{float(chance_of(5, 4)):.4f}" == "0.0067" and "0.0067" in load_preset("dev").reasons[1].why


@all_presets
def test_the_usual_terms_deter(preset: Preset) -> None:
    reward, rate = 10**18, int(preset.terms["auditRateBps"])
    bond = Fraction(str(preset.terms["bondRewards"])) * reward
    assert bond >= least_bond(reward, rate, preset.detection_bps)
    ratio = Fraction(rate * preset.detection_bps, 10**8) * (reward + bond) / reward
    why = next(row.why for row in preset.reasons if row.name == "bondRewards")
    assert (
        f"{float(ratio):.2f} times" in why and f"{least_bond(reward, rate, preset.detection_bps) / reward:.1f}" in why
    )
    assert 1 <= Fraction(str(preset.terms["auditFeeRewards"])) <= 10


@all_presets
def test_the_usual_windows_are_allowed(preset: Preset) -> None:
    windows = preset.windows
    assert all(preset.min_window <= window <= MOST_WINDOW for window in windows.values())
    assert min(windows["auditReveal"], windows["demand"]) >= preset.min_demand
    assert windows["auditCommit"] >= windows["train"] and windows["round"] >= windows["train"]


@public
def test_on_a_public_chain_silence_decides_nothing_within_a_day(preset: Preset) -> None:
    day = 24 * HOUR
    assert preset.min_demand == day and preset.min_window == HOUR
    for name in ("attest", "challenge", "auditReveal", "demand"):
        assert preset.windows[name] >= day, name
    assert DRAWS * preset.windows["auditCommit"] >= day  # a seat is vacant after three silent ones


@public
def test_nobody_leaves_before_the_last_seat_of_a_sample_is_drawn(preset: Preset) -> None:
    assert preset.ticket_exit > last_seat(preset)
    why = next(row.why for row in preset.reasons if row.name == "ticketExit")
    assert f"at most {last_seat(preset) / 86_400:.1f} " in why


def test_on_the_dev_chain_nobody_leaves_before_the_last_seat_while_all_speak() -> None:
    dev = load_preset("dev")
    windows = dev.windows
    usual = 2 * (windows["auditCommit"] + windows["auditReveal"]) + windows["demand"] + windows["auditReveal"]
    assert usual == 440 and dev.ticket_exit > usual


@public
def test_a_seed_is_there_within_the_hour_that_the_exit_counts_with(preset: Preset) -> None:
    seconds = {"lead": 12, "margin": 1}  # a slot of Ethereum; patience is for when nobody brings the proof
    waits = [row.value * seconds[row.name] for row in preset.beacon.arguments.values() if row.name in seconds]
    assert len(waits) == 1 and 900 <= waits[0] < HOUR


@public
def test_a_public_preset_slashes_only_with_a_calibration_record(preset: Preset) -> None:
    assert preset.calibrated and preset.probation_audits == 10 and preset.abandon_after == 30 * 24 * HOUR
    assert preset.ticket == 40 * 10**18  # 40 rewards of a claim of one token


def test_only_a_chain_without_value_takes_the_dev_preset() -> None:
    assert load_preset("dev").chains == (31337, 1337, 131277322940537)
    assert load_preset("mainnet").chains == ()
    assert 1 not in load_preset("testnet").chains
