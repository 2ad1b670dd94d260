"""Looking before deploying: what it would cost, and whether this chain, this key and this token suit the preset."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from eth_utils.address import to_checksum_address
from web3.exceptions import Web3Exception
from web3.types import TxParams

from protocol.chain.bindings import FOREIGN_TOKEN, load_artifact, shipped_errors
from protocol.chain.blueprint import Blueprint
from protocol.chain.connection import Connection
from protocol.chain.errors import Reverted
from protocol.chain.fees import FeePolicy, Fees, market_fees
from protocol.chain.headers import HeaderUnknown, header_of
from protocol.core.presets import Preset
from protocol.core.units import TOKEN

HISTORY_STORAGE = "0x0000F90827F1C53a10cb7A02335B175320002935"  # EIP-2935
G1_ADD = "0x000000000000000000000000000000000000000b"  # EIP-2537: two points in, one out
PAIRING_CHECK = "0x000000000000000000000000000000000000000F"  # pairs in, one word out
LEAST_RANDAO = 2**64  # EIP-4399: below it the field is a difficulty
POINT, PAIR = 128, 384  # bytes; all zero is the point at infinity


@dataclass(frozen=True)
class Check:
    """One thing that must hold before money is spent; `facts` say what was found, and what to do."""

    what: str
    ok: bool
    facts: str


@dataclass(frozen=True)
class Survey:
    """A dry run. Gas by contract; `base_fee` and `tip` in wei per gas as they are now; `gas_margin` is a factor."""

    gas: dict[str, int]
    base_fee: int
    tip: int
    fees: Fees
    gas_margin: float
    checks: tuple[Check, ...]

    @property
    def cost(self) -> int:
        """Wei at the present fee."""
        return sum(self.gas.values()) * (self.base_fee + self.tip)

    @property
    def most(self) -> int:
        """Wei that the key must hold: each transaction's gas limit at the fee that it allows."""
        return sum(math.ceil(gas * self.gas_margin) for gas in self.gas.values()) * self.fees.max_fee

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


async def survey(connection: Connection, blueprint: Blueprint, policy: FeePolicy, chain_was_named: bool) -> Survey:
    """Estimate every creation and check everything. Sends nothing.

    Raises ChainUnavailable, Refused, FeeCapTooLow.
    """
    gas, refusals = await _estimates(connection, blueprint)
    try:
        base_fee, tip = await market_fees(connection.w3)
        deployer = to_checksum_address(blueprint.deployer)
        balance = int(await connection.w3.eth.get_balance(deployer))
        waiting = int(await connection.w3.eth.get_transaction_count(deployer, "pending"))
    except Web3Exception as error:
        raise shipped_errors().explain(error) from error
    fees = policy.initial(base_fee, tip)
    found = Survey(gas, base_fee, fees.tip, fees, policy.gas_margin, ())
    checks = [
        _check_chain(connection.chain_id, blueprint.preset, chain_was_named),
        _check_balance(blueprint.deployer, balance, found.most),
        _check_nonce(blueprint.creations[0].nonce, waiting),
        await check_token(connection, blueprint.contracts.get(FOREIGN_TOKEN)),
        *[await check_need(connection, need) for need in blueprint.preset.beacon.needs],
        *refusals,
    ]
    return Survey(gas, base_fee, fees.tip, fees, policy.gas_margin, tuple(checks))


async def _estimates(connection: Connection, blueprint: Blueprint) -> tuple[dict[str, int], list[Check]]:
    """Gas of each creation; a constructor that refuses its arguments or its chain counts 0 and is a failed check."""
    gas, refusals = {}, []
    for creation in blueprint.creations:
        fields = {"from": blueprint.deployer, "data": "0x" + creation.code.hex()}
        try:
            gas[creation.name] = int(await connection.w3.eth.estimate_gas(cast(TxParams, fields)))
        except Web3Exception as error:
            reason = shipped_errors().explain(error)
            if not isinstance(reason, Reverted):
                raise reason from error
            gas[creation.name] = 0
            refusals.append(Check(creation.name, False, str(reason)))
    return gas, refusals


def _check_chain(chain_id: int, preset: Preset, was_named: bool) -> Check:
    if preset.chains:
        allowed = ", ".join(map(str, preset.chains))
        ok = chain_id in preset.chains
        return Check("chain", ok, f"id {chain_id}" + ("" if ok else f"; preset {preset.name} is for {allowed} only"))
    if was_named:
        return Check("chain", True, f"id {chain_id}, as you named it")
    return Check("chain", False, f"id {chain_id}; preset {preset.name} wants it named: add --chain-id {chain_id}")


def _check_balance(deployer: str, have: int, need: int) -> Check:
    missing = "" if have >= need else f": send {deployer} {need - have} wei or more"
    return Check("balance", have >= need, f"{have} wei, needs at most {need}{missing}")


def _check_nonce(next_mined: int, next_sent: int) -> Check:
    """Addresses follow from nonces: what is on its way would take the first ones."""
    ok = next_sent <= next_mined
    others = "" if ok else f"; {next_sent - next_mined} transactions of the key are on their way: wait for them"
    return Check("nonce", ok, f"{next_mined} is the first one{others}")


async def check_token(connection: Connection, token: str | None) -> Check:
    """Amounts are shown and parsed with 18 decimals everywhere: another token would be off by powers of ten."""
    if token is None:
        return Check("token", True, "a worthless one is created: anyone may mint it")
    address = to_checksum_address(token)
    try:
        if not await connection.w3.eth.get_code(address):
            return Check("token", False, f"no contract at {address} on chain id {connection.chain_id}")
        erc20: Any = connection.w3.eth.contract(address=address, abi=cast(Any, load_artifact("DevToken").abi))
        decimals = int(await erc20.functions.decimals().call())
        await erc20.functions.totalSupply().call()
        await erc20.functions.allowance(address, address).call()
    except (Web3Exception, OverflowError, ValueError):
        return Check("token", False, f"{address} does not answer as an ERC-20 with decimals()")
    if 10**decimals != TOKEN:
        return Check("token", False, f"{address} has {decimals} decimals; this program counts with 18")
    return Check("token", True, f"{address}, {decimals} decimals")


async def check_need(connection: Connection, need: str) -> Check:
    """Whether the chain has what the preset's beacon is built on."""
    try:
        return await _NEEDS[need](connection)
    except Web3Exception as error:
        return Check(f"beacon: {need}", False, f"the RPC node refused to tell: {shipped_errors().explain(error)}")


async def _history(connection: Connection) -> Check:
    code = await connection.w3.eth.get_code(to_checksum_address(HISTORY_STORAGE))
    facts = "past block hashes can be read" if code else f"no code at {HISTORY_STORAGE}: the chain is older than Prague"
    return Check("beacon: EIP-2935", bool(code), facts)


async def _pairings(connection: Connection) -> Check:
    """Ask the precompiles for trivial results; a chain without them answers with nothing."""
    call = connection.w3.eth.call
    added = await call(cast(TxParams, {"to": G1_ADD, "data": "0x" + bytes(2 * POINT).hex()}))
    paired = await call(cast(TxParams, {"to": PAIRING_CHECK, "data": "0x" + bytes(PAIR).hex()}))
    ok = bytes(added) == bytes(POINT) and int.from_bytes(paired) == 1 and len(paired) == 32
    facts = "BLS12-381 is there" if ok else "no BLS12-381 precompiles: the chain is older than Prague, choose another"
    return Check("beacon: EIP-2537", ok, facts)


async def _prevrandao(connection: Connection) -> Check:
    newest = await connection.block_number()
    words = {bytes(await _mix(connection, number)) for number in range(max(0, newest - 2), newest + 1) if number}
    ok = bool(words) and len(words) == min(newest, 3) and all(int.from_bytes(word) >= LEAST_RANDAO for word in words)
    facts = "every block has another one" if ok else "the last blocks do not differ in prevrandao: it is no randomness"
    try:
        await header_of(connection, newest)
    except HeaderUnknown as error:  # nodes could prove nothing
        return Check("beacon: prevrandao", False, str(error))
    return Check("beacon: prevrandao", ok, facts)


async def _mix(connection: Connection, number: int) -> bytes:
    block: Any = await connection.w3.eth.get_block(number)
    return bytes(block["mixHash"])


_NEEDS: dict[str, Callable[[Connection], Awaitable[Check]]] = {
    "eip2935": _history,
    "eip2537": _pairings,
    "prevrandao": _prevrandao,
}
NEEDS = frozenset(_NEEDS)
