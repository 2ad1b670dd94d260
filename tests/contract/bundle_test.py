"""The verification bundle compiles to what is deployed, with the compiler from npm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eth_utils.crypto import keccak

from node.deployment.bundle import CHECKOUT, CONTRACTS, INPUT, NoBuild, write_bundle
from protocol.chain.bindings import Deployment, load_artifact
from protocol.chain.blueprint import Blueprint, draw_up
from protocol.core.presets import load_preset

DEV = load_preset("dev")
COMPILE = """
const solc = require("solc");
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const out = JSON.parse(solc.compile(JSON.stringify(input)));
process.stdout.write(JSON.stringify({version: solc.version(), errors: out.errors || [], contracts: out.contracts}));
"""


@pytest.fixture
def market() -> tuple[Blueprint, Deployment]:
    blueprint = draw_up(31337, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", 0, DEV)
    return blueprint, Deployment(chain_id=31337, block=0, preset="dev", contracts=blueprint.contracts)


def compile_bundle(folder: Path, rows: list[dict[str, str]]) -> dict[str, str]:
    """Creation code by contract, from the files of the bundle alone; only what is asked for is generated."""
    request: dict[str, Any] = json.loads((folder / INPUT).read_text())
    wanted = [row["contract"].rsplit(":", 1) for row in rows]
    request["settings"]["outputSelection"] = {source: {name: ["evm.bytecode.object"]} for source, name in wanted}
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    assert node, "node is missing: pip install -e '.[dev]'"
    done = subprocess.run(
        [node, "-e", COMPILE], input=json.dumps(request), cwd=CHECKOUT / "hardhat", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert [fault for fault in answer["errors"] if fault["severity"] == "error"] == []
    assert rows[0]["compiler"].removeprefix("v") in answer["version"]
    return {name: answer["contracts"][source][name]["evm"]["bytecode"]["object"] for source, name in wanted}


def check_bundle(blueprint: Blueprint, book: Deployment, folder: Path, names: set[str]) -> None:
    rows = [row for row in write_bundle(book, DEV, CHECKOUT, folder) if row["name"] in names]
    assert rows == [row for row in json.loads((folder / CONTRACTS).read_text()) if row["name"] in names]
    compiled = compile_bundle(folder, rows)
    for creation in (creation for creation in blueprint.creations if creation.name in names):
        row = next(row for row in rows if row["name"] == creation.name)
        code = bytes.fromhex(compiled[creation.name] + row["arguments"])
        assert (row["address"], keccak(code)) == (creation.address, keccak(creation.code)), creation.name


def test_a_bundle_compiles_to_the_deployed_bytes(market: tuple[Blueprint, Deployment], tmp_path: Path) -> None:
    check_bundle(*market, tmp_path, {"RewardLedger", "BlockhashBeacon", "DevToken"})


@pytest.mark.slow
def test_every_contract_of_a_bundle_compiles_to_the_deployed_bytes(
    market: tuple[Blueprint, Deployment], tmp_path: Path
) -> None:
    check_bundle(*market, tmp_path, {creation.name for creation in market[0].creations})


def test_a_checkout_without_this_build_is_told_what_to_run(
    market: tuple[Blueprint, Deployment], tmp_path: Path
) -> None:
    _, book = market
    with pytest.raises(NoBuild, match=r"no build of AuditCourt; run `npm ci && npm run -s build` in hardhat/"):
        write_bundle(book, DEV, tmp_path, tmp_path / "out")
    other = tmp_path / "hardhat" / "artifacts" / "contracts" / "AuditCourt.sol"
    other.mkdir(parents=True)
    (other / "AuditCourt.json").write_text(json.dumps({"bytecode": load_artifact("JobMarket").bytecode}))
    with pytest.raises(NoBuild, match="its bytecode is not the one that this program deploys"):
        write_bundle(book, DEV, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
