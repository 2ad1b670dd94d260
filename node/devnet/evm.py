"""A chain in this process: py-evm with a transaction pool, for machines without anvil.

Block time is the wall clock's. py-evm wants each block later than the one before, which would run ahead by a second
per block; here two blocks may share a second, as on anvil.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlp
from eth.chains.base import MiningChain
from eth.consensus.applier import ConsensusApplier
from eth.consensus.noproof import NoProofConsensus
from eth.db.atomic import AtomicDB
from eth.exceptions import Revert, VMError
from eth.vm.forks.cancun import CancunVM
from eth.vm.spoof import SpoofTransaction
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

from node.devnet.pool import Pool, PoolError
from node.devnet.statefile import StateFile

CHAIN_ID = 31337
GAS_LIMIT = 30_000_000
BALANCE = 10_000 * 10**18  # wei at genesis, as anvil's
NOBODY = b"\0" * 20


class SharedSecondsVM(CancunVM):
    """Cancun, but a block may bear its parent's time."""

    @classmethod
    def validate_header(cls, header: Any, parent_header: Any) -> None:
        if header.timestamp == parent_header.timestamp:
            header = header.copy(timestamp=header.timestamp + 1)
        super().validate_header(header, parent_header)


class _Chain(MiningChain):
    chain_id = CHAIN_ID
    vm_configuration = ConsensusApplier(NoProofConsensus).amend_vm_configuration(((0, SharedSecondsVM),))


class CallFailed(Exception):
    """A call or estimate did not succeed; `data` is what the contract returned when it reverted, else None."""

    def __init__(self, message: str, data: bytes | None) -> None:
        super().__init__(message)
        self.data = data


@dataclass(frozen=True)
class Mined:
    """A block with its receipts; `gas` is what each transaction used."""

    header: Any
    transactions: tuple[Any, ...]
    receipts: tuple[Any, ...]

    def gas(self, index: int) -> int:
        before = self.receipts[index - 1].gas_used if index else 0
        return int(self.receipts[index].gas_used - before)


class Evm:
    """Blocks, state and pool. `clock` gives wall seconds; `ahead` seconds are added to it, see `advance`."""

    def __init__(self, funded: list[bytes], path: Path | None, clock: Callable[[], float] = time.time) -> None:
        self._clock, self.ahead = clock, 0
        self._file = StateFile(path)
        self.pool = Pool()
        self.blocks: list[Mined] = []
        self.where: dict[bytes, tuple[int, int]] = {}  # transaction hash -> block number, index
        self.number_of: dict[bytes, int] = {}  # block hash -> number
        database = AtomicDB(self._file)
        self._chain: Any  # py-evm's own types are narrower than what it takes
        if len(self._file):
            self._chain = _Chain(database)
        else:
            self._chain = _Chain.from_genesis(database, self._genesis(), _accounts(funded))
            self._file.commit()
        for number in range(self._chain.header.block_number):
            self._remember(self._chain.get_canonical_block_by_number(number))

    def _genesis(self) -> dict[str, Any]:
        return {"difficulty": 0, "gas_limit": GAS_LIMIT, "timestamp": int(self._clock()), "nonce": b"\0" * 8}

    @property
    def head(self) -> Any:
        return self.blocks[-1].header

    def time(self) -> int:
        """The time that the next block will bear."""
        return max(int(self._clock()) + self.ahead, int(self.head.timestamp))

    # -- blocks

    def mine(self) -> None:
        """Put what is ready in the pool into a block; an empty block when nothing is."""
        header = self._chain.header = self._next_header()
        for transaction in self.pool.ready(self.nonce, int(header.base_fee_per_gas)):
            if transaction.gas + self._chain.header.gas_used > GAS_LIMIT:
                continue  # the next block has room
            try:
                self._chain.apply_transaction(transaction)
            except ValidationError:
                self.pool.remove(transaction)  # its money was spent by an earlier one
        block = self._chain.mine_block()
        self._remember(block)
        self._file.commit()
        for transaction in block.transactions:
            self.pool.remove(transaction)

    def _next_header(self) -> Any:
        header = self._chain.create_header_from_parent(self.head, gas_limit=GAS_LIMIT, timestamp=self.time())
        # prevrandao: nobody knows it before the block, as a contract that draws by it expects.
        return header.copy(mix_hash=secrets.token_bytes(32))

    def _remember(self, block: Any) -> None:
        receipts = tuple(block.get_receipts(self._chain.chaindb))
        self.number_of[bytes(block.header.hash)] = len(self.blocks)
        for index, transaction in enumerate(block.transactions):
            self.where[bytes(transaction.hash)] = (len(self.blocks), index)
        self.blocks.append(Mined(block.header, tuple(block.transactions), receipts))

    # -- state

    def state(self, header: Any | None = None) -> Any:
        """The state after a block, the newest by default."""
        return self._chain.get_vm(at_header=header or self.head).state

    def nonce(self, address: bytes) -> int:
        return int(self.state().get_nonce(address))

    def call(self, fields: dict[str, Any], header: Any) -> bytes:
        """The result of a call on the state after a block, seen at that block's time. Raises CallFailed."""
        computation = self._run(fields, int(fields.get("gas") or GAS_LIMIT), header)
        return bytes(computation.output)

    def estimate(self, fields: dict[str, Any]) -> int:
        """Gas that suffices in a block mined now. Raises CallFailed."""
        header = self._next_header()
        computation = self._run(fields, GAS_LIMIT, header)
        used = GAS_LIMIT - int(computation.get_gas_remaining())  # before refunds: they come only at the end
        low, high = used, used + used // 63 + 2_400  # a call keeps 1/64 back, and 2300 for a transfer's receiver
        if self._suffices(fields, low, header):
            return low
        while not self._suffices(fields, high, header):
            high = min(2 * high, GAS_LIMIT)
        return high

    def _suffices(self, fields: dict[str, Any], gas: int, header: Any) -> bool:
        if gas >= GAS_LIMIT:
            return True
        try:
            self._run(fields, gas, header)
        except CallFailed:
            return False
        return True

    def _run(self, fields: dict[str, Any], gas: int, header: Any) -> Any:
        """Execute without fee and without a trace."""
        vm = self._chain.get_vm(at_header=header)
        free = header.copy(base_fee_per_gas=0)
        state = vm.build_state(self._chain.chaindb.db, free, vm.chain_context, vm.previous_hashes)
        sender = fields.get("from", NOBODY)
        unsigned = vm.get_transaction_builder().create_unsigned_transaction(
            nonce=state.get_nonce(sender),
            gas_price=0,
            gas=gas,
            to=fields.get("to", b""),
            value=fields.get("value", 0),
            data=fields.get("data", b""),
        )
        try:
            computation = state.apply_transaction(SpoofTransaction(unsigned, from_=sender))
        except ValidationError as error:
            raise CallFailed(_plain(error), None) from None
        if computation.is_error:
            raise _failed(computation.error)
        return computation

    # -- transactions

    def submit(self, raw: bytes) -> bytes:
        """Check a signed transaction as a node does and put it into the pool. Raises PoolError in geth's words."""
        try:
            transaction = self._chain.get_vm().get_transaction_builder().decode(raw)
            transaction.validate()
            sender = bytes(transaction.sender)
        except (rlp.DecodingError, ValidationError, ValueError, TypeError) as error:
            raise PoolError(f"invalid transaction: {error}") from None
        if bytes(transaction.hash) in self.where:
            raise PoolError("already known")
        if transaction.chain_id != CHAIN_ID:
            raise PoolError(f"invalid chain id for signer: have {transaction.chain_id} want {CHAIN_ID}")
        if transaction.gas > GAS_LIMIT or transaction.gas < transaction.intrinsic_gas:
            raise PoolError("exceeds block gas limit" if transaction.gas > GAS_LIMIT else "intrinsic gas too low")
        cost = transaction.value + transaction.gas * transaction.max_fee_per_gas
        have = self.state().get_balance(sender)
        if have < cost:
            raise PoolError(f"insufficient funds for gas * price + value: have {have} want {cost}")
        self.pool.add(transaction, self.nonce(sender))
        return bytes(transaction.hash)

    def close(self) -> None:
        self._file.close()


def contract_address(sender: bytes, nonce: int) -> bytes:
    return bytes(keccak(rlp.encode([sender, nonce]))[12:])


def _accounts(funded: list[bytes]) -> Any:
    return {address: {"balance": BALANCE, "nonce": 0, "code": b"", "storage": {}} for address in funded}


def _failed(error: VMError) -> CallFailed:
    if isinstance(error, Revert):
        return CallFailed("execution reverted", bytes(error.args[0]) if error.args else b"")
    return CallFailed(f"execution failed: {type(error).__name__}: {error}", None)


def _plain(error: ValidationError) -> str:
    text = " ".join(str(error).split())
    return f"insufficient funds for transfer: {text}" if "balance" in text or "afford" in text else text
