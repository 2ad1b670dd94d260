"""Probe.sol, compiled by the project's own compiler, and what the tests of the chain client share."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from node.devnet.chain import DevChain, dev_accounts
from protocol.chain.connection import Connection, connect
from protocol.chain.fees import FeePolicy
from protocol.chain.revert import ErrorTable
from protocol.chain.transactions import Sender
from protocol.store.database import Database
from protocol.store.outbox import Outbox

HERE = Path(__file__).parent
HARDHAT = HERE.parents[1] / "hardhat"
COMPILE = """
const solc = require("solc");
const input = {language: "Solidity", sources: {"Probe.sol": {content: require("fs").readFileSync(0, "utf8")}},
  settings: {evmVersion: "cancun", optimizer: {enabled: true}, outputSelection: {"*": {"*": ["abi", "evm.bytecode"]}}}};
process.stdout.write(solc.compile(JSON.stringify(input)));
"""


@functools.cache
def compiled() -> tuple[list[Any], str]:
    """ABI and bytecode of the probe."""
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    assert node, "node is missing: pip install -e '.[dev]'"
    source = (HERE / "Probe.sol").read_text()
    done = subprocess.run([node, "-e", COMPILE], input=source, cwd=HARDHAT, capture_output=True, text=True, check=True)
    contract = json.loads(done.stdout)["contracts"]["Probe.sol"]["Probe"]
    return contract["abi"], "0x" + contract["evm"]["bytecode"]["object"]


def errors() -> ErrorTable:
    return ErrorTable([compiled()[0]])


@dataclass
class Bench:
    """A connection, a store, a sender with some key, and a deployed probe."""

    chain: DevChain
    connection: Connection
    database: Database
    outbox: Outbox
    sender: Sender
    probe: Any

    def sender_of(self, index: int, policy: FeePolicy | None = None) -> Sender:
        account = dev_accounts()[index]
        outbox = Outbox(self.database, self.connection.key, account.address)
        return Sender(self.connection, account, outbox, policy, errors())

    def again(self, policy: FeePolicy | None = None) -> Sender:
        """A sender as after a restart: the same key and journal, nothing in memory."""
        return Sender(self.connection, dev_accounts()[1], self.outbox, policy, errors())

    async def noted(self) -> list[int]:
        """The values of all events, in order."""
        logs = await self.probe.events.Noted().get_logs(from_block=0)
        return [log["args"]["value"] for log in logs]


@asynccontextmanager
async def bench(chain: DevChain, folder: Path, policy: FeePolicy | None = None) -> AsyncIterator[Bench]:
    """Account 0 deploys a fresh probe, account 1 works."""
    abi, bytecode = compiled()
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(folder / "state.sqlite")
    async with await connect([chain.url], 31337) as connection:
        accounts = dev_accounts()
        deployer = Sender(
            connection, accounts[0], Outbox(database, connection.key, accounts[0].address), None, errors()
        )
        factory = connection.w3.eth.contract(abi=abi, bytecode=bytecode)
        receipt = await deployer.submit_and_confirm("deploy:Probe", factory.constructor())
        probe = connection.w3.eth.contract(address=receipt.contract_address, abi=abi)
        outbox = Outbox(database, connection.key, accounts[1].address)
        sender = Sender(connection, accounts[1], outbox, policy, errors())
        yield Bench(chain, connection, database, outbox, sender, probe)
    database.close()
