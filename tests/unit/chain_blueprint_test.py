"""What a deployment would create, before there is a chain."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.chain.blueprint import LENS, constructor_arguments, created_at, draw_up
from protocol.chain.deploy import compiler_of
from protocol.chain.errors import DeploymentError
from protocol.chain.preflight import NEEDS
from protocol.core.presets import BeaconChoice, Parameter, load_preset, preset_names

DEV = load_preset("dev")
DEPLOYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # the first account of every anvil
TYPES = Path(__file__).resolve().parents[2] / "contracts" / "types" / "Types.sol"


def test_an_address_is_the_one_that_every_development_chain_gives_its_first_contracts() -> None:
    assert created_at(DEPLOYER, 0) == "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    assert created_at(DEPLOYER, 1) == "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"


def test_contracts_are_created_in_the_order_of_the_address_table_and_know_each_other() -> None:
    blueprint = draw_up(31337, DEPLOYER, 5, DEV)
    body = TYPES.read_text().split("struct Addresses {")[1].split("}")[0]
    assert len(blueprint.creations) == len(re.findall(r"address \w+;", body)) + 1
    assert [creation.nonce for creation in blueprint.creations] == list(range(5, 5 + len(blueprint.creations)))
    assert blueprint.creations[-1].name == LENS
    table = tuple(creation.address for creation in blueprint.creations[:-1])
    given = {creation.name: creation.arguments for creation in blueprint.creations}
    assert given["StakeVault"] == given[LENS] == (table,)
    assert given["JobMarket"] == (table, DEV.as_tuple()) and given["OperatorRegistry"] == ()


def test_a_token_that_is_there_is_not_created() -> None:
    token = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    blueprint = draw_up(31337, DEPLOYER, 1, DEV, token)
    assert blueprint.contracts["Token"] == token and "DevToken" not in blueprint.contracts
    assert blueprint.creations[0].name == "BlockhashBeacon"


def test_the_fingerprint_changes_with_every_byte_that_would_be_deployed() -> None:
    found = {
        draw_up(1, DEPLOYER, nonce, preset).fingerprint
        for nonce in (0, 1)
        for preset in (DEV, replace(DEV, ticket=DEV.ticket + 1), replace(DEV, calibrated=True))
    }
    assert len(found) == 6 and draw_up(1, DEPLOYER, 0, DEV).fingerprint in found


def test_the_compiler_is_the_one_that_the_code_names() -> None:
    assert compiler_of("StakeVault") == "solc 0.8.30"


def test_a_beacon_is_given_its_arguments_by_name_or_the_preset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [{"name": "period", "type": "uint64"}, {"name": "_genesis", "type": "uint256"}]
    monkeypatch.setattr("protocol.chain.blueprint._parameters", lambda name: inputs)
    numbers = {"genesis": Parameter("genesis", 7, "seconds", "why"), "period": Parameter("period", 3, "seconds", "why")}
    beacon = BeaconChoice("DrandBeacon", "why", (), numbers)
    assert constructor_arguments("DrandBeacon", {}, replace(DEV, beacon=beacon)) == (3, 7)
    lacking = replace(DEV, beacon=replace(beacon, arguments={"genesis": numbers["genesis"]}))
    with pytest.raises(DeploymentError, match=r"the constructor of DrandBeacon takes period \(uint64\); .*: genesis"):
        constructor_arguments("DrandBeacon", {}, lacking)


def test_every_need_that_a_preset_names_is_one_that_is_looked_at() -> None:
    assert {need for name in preset_names() for need in load_preset(name).beacon.needs} <= NEEDS
