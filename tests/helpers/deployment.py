"""A deployer with a home of its own, and its command line in this process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from eth_account import Account

from node.cli import main
from node.devnet.chain import DevChain, dev_accounts
from protocol.chain.bindings import Deployment
from protocol.chain.blueprint import draw_up
from protocol.chain.connection import Connection
from protocol.chain.keystore import import_key
from protocol.core.presets import load_preset

PASSWORD = "correct horse"
CONTRACTS = len(draw_up(31337, dev_accounts()[0].address, 0, load_preset("dev")).creations)  # its token included


@dataclass(frozen=True)
class Deployer:
    """A key that nothing else uses: its nonces are the test's."""

    chain: DevChain
    home: Path
    key: bytes

    @property
    def address(self) -> str:
        return str(Account.from_key(self.key).address)

    @property
    def book(self) -> Path:
        return self.home / "deploy" / "31337.json"

    @property
    def begun(self) -> Path:
        return self.home / "deploy" / "31337.begun.json"

    def arguments(self, command: str, *more: str) -> list[str]:
        preset = [] if command == "check" or "--preset" in more else ["--preset", "dev"]
        password = ["--password-file", str(self.home / "password")] if command == "run" else []
        return ["--home", str(self.home), "deploy", command, "--rpc", self.chain.url, *preset, *password, *more]

    async def deploy(self, command: str, *more: str) -> Result:
        """gradmarket deploy COMMAND."""
        return await asyncio.to_thread(CliRunner().invoke, main, self.arguments(command, *more))

    async def check(self, *more: str) -> tuple[bool, dict[str, Any]]:
        """The verdict of `deploy check`, and the comparisons that are not ok, by "subject what"."""
        result = await self.deploy("check", "--json", *more)
        table = json.loads(result.stdout)
        assert result.exit_code == (0 if table["ok"] else 1)
        return table["ok"], {
            f"{row['subject']} {row['what']}": row for row in table["comparisons"] if row["verdict"] != "ok"
        }

    async def used_nonces(self) -> int:
        return int(await self.chain.rpc("eth_getTransactionCount", self.address, "latest"), 16)

    def load(self) -> Deployment:
        return Deployment.load(self.book)


async def make_deployer(chain: DevChain, home: Path, coins: int = 100) -> Deployer:
    """A new key with coins."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = home / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    made = Deployer(chain, home, bytes(Account.create().key))
    import_key(home / "keys" / "deployer.json", made.key, PASSWORD, 2**12)
    await chain.rpc("anvil_setBalance", made.address, hex(coins * 10**18))
    return made


async def create(connection: Connection, deployer: Deployer, code: str) -> str:
    """Create any contract from hex code, outside of what is tested; returns its address."""
    account: Any = Account.from_key(deployer.key)
    fields = {"data": code, "gas": 3_000_000, "nonce": await deployer.used_nonces(), "chainId": 31337}
    fields |= {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9, "value": 0}
    raw = account.sign_transaction(fields).raw_transaction
    tx_hash = await connection.w3.eth.send_raw_transaction(raw)
    receipt: Any = await connection.w3.eth.wait_for_transaction_receipt(tx_hash)
    return str(receipt["contractAddress"])
