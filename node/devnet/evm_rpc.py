"""The JSON-RPC methods of the embedded chain."""

from __future__ import annotations

from typing import Any

from eth_utils.conversions import to_bytes, to_hex

from node.devnet import evm_json as shape
from node.devnet.evm import CHAIN_ID, CallFailed, Evm
from node.devnet.pool import PoolError

CLIENT = "gradmarket-devchain/py-evm"
TIP = 10**9  # wei per gas, suggested where blocks are empty
Json = Any


class Rpc:
    """The methods that web3.py, ethers and our own client use, each a method of this class named as on the wire."""

    def __init__(self, evm: Evm) -> None:
        self._evm = evm

    def answer(self, request: Json) -> Json:
        """One JSON-RPC request; a fault of the request is an answer, not an exception."""
        reply: dict[str, Json] = {"jsonrpc": "2.0", "id": request.get("id")}
        method = getattr(self, str(request.get("method")), None)
        if method is None or "_" not in str(request.get("method")) or str(request.get("method")).startswith("_"):
            return reply | {"error": {"code": -32601, "message": f"no method {request.get('method')}"}}
        try:
            return reply | {"result": method(*(request.get("params") or []))}
        except CallFailed as error:
            detail = {"code": 3, "message": str(error)} | ({} if error.data is None else {"data": to_hex(error.data)})
            return reply | {"error": detail}
        except (PoolError, LookupError, ValueError, TypeError) as error:
            return reply | {"error": {"code": -32000, "message": str(error) or type(error).__name__}}

    # -- the chain

    def web3_clientVersion(self) -> str:
        return CLIENT

    def net_version(self) -> str:
        return str(CHAIN_ID)

    def eth_chainId(self) -> str:
        return hex(CHAIN_ID)

    def eth_blockNumber(self) -> str:
        return hex(len(self._evm.blocks) - 1)

    def eth_gasPrice(self) -> str:
        return hex(self._evm.head.base_fee_per_gas + TIP)

    def eth_maxPriorityFeePerGas(self) -> str:
        return hex(TIP)

    def eth_feeHistory(self, count: str | int, newest: str, percentiles: list[float] | None = None) -> Json:
        last = self._number(newest)
        wanted = int(count, 16) if isinstance(count, str) else count
        blocks = self._evm.blocks[max(0, last + 1 - wanted) : last + 1]
        fees = [hex(block.header.base_fee_per_gas) for block in blocks]
        rewards = [[hex(shape.tip(block, p)) for p in percentiles or []] for block in blocks]
        return {
            "oldestBlock": hex(last + 1 - len(blocks)),
            "baseFeePerGas": [*fees, fees[-1]],
            "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
            "reward": rewards,
        }

    def eth_getBlockByNumber(self, block: str, full: bool = False) -> Json:
        try:
            return self._block(self._number(block), full)
        except LookupError:
            return None

    def eth_getBlockByHash(self, block_hash: str, full: bool = False) -> Json:
        number = self._evm.number_of.get(to_bytes(hexstr=block_hash))
        return None if number is None else self._block(number, full)

    # -- accounts and calls

    def eth_getBalance(self, address: str, block: str = "latest") -> str:
        return hex(self._state(block).get_balance(shape.address(address)))

    def eth_getCode(self, address: str, block: str = "latest") -> str:
        return to_hex(self._state(block).get_code(shape.address(address)))

    def eth_getStorageAt(self, address: str, slot: str, block: str = "latest") -> str:
        return "0x" + format(self._state(block).get_storage(shape.address(address), int(slot, 16)), "064x")

    def eth_getTransactionCount(self, address: str, block: str = "latest") -> str:
        count = int(self._state(block).get_nonce(shape.address(address)))
        return hex(self._evm.pool.pending_nonce(shape.address(address), count) if block == "pending" else count)

    def eth_call(self, call: Json, block: Json = "latest") -> str:
        return to_hex(self._evm.call(shape.call_fields(call), self._evm.blocks[self._number(block)].header))

    def eth_estimateGas(self, call: Json, block: Json = "latest") -> str:
        self._number(block)
        return hex(self._evm.estimate(shape.call_fields(call)))

    # -- transactions

    def eth_sendRawTransaction(self, raw: str) -> str:
        tx_hash = self._evm.submit(to_bytes(hexstr=raw))
        self._evm.mine()
        return to_hex(tx_hash)

    def eth_getTransactionByHash(self, tx_hash: str) -> Json:
        key = to_bytes(hexstr=tx_hash)
        if key in self._evm.where:
            number, index = self._evm.where[key]
            return shape.transaction(self._evm.blocks[number].transactions[index], self._evm.blocks[number], index)
        waiting = self._evm.pool.find(key)
        return None if waiting is None else shape.transaction(waiting, None, 0)

    def eth_getTransactionReceipt(self, tx_hash: str) -> Json:
        key = to_bytes(hexstr=tx_hash)
        if key not in self._evm.where:
            return None
        number, index = self._evm.where[key]
        return shape.receipt(self._evm.blocks[number], index)

    def eth_getLogs(self, query: Json) -> Json:
        if "blockHash" in query:
            number = self._evm.number_of[to_bytes(hexstr=query["blockHash"])]
            blocks = [self._evm.blocks[number]]
        else:
            first, last = (self._number(query.get(key, "latest")) for key in ("fromBlock", "toBlock"))
            blocks = self._evm.blocks[first : last + 1]
        return [log for block in blocks for log in shape.logs(block) if shape.is_wanted(log, query)]

    # -- only on a dev chain

    def evm_mine(self) -> str:
        self._evm.mine()
        return "0x0"

    def evm_increaseTime(self, seconds: int | str) -> str:
        self._evm.ahead += int(seconds, 16) if isinstance(seconds, str) else seconds
        return hex(self._evm.ahead)

    # -- parts

    def _number(self, block: Json) -> int:
        """A block parameter of any shape; LookupError when there is no such block."""
        if isinstance(block, dict):
            if "blockHash" in block:
                return self._evm.number_of[to_bytes(hexstr=block["blockHash"])]
            block = block["blockNumber"]
        if block in ("latest", "pending", "safe", "finalized"):
            return len(self._evm.blocks) - 1
        number = 0 if block == "earliest" else int(str(block), 16)
        if number >= len(self._evm.blocks):
            raise LookupError(f"header not found: block {number}")
        return number

    def _state(self, block: Json) -> Json:
        return self._evm.state(self._evm.blocks[self._number(block)].header)

    def _block(self, number: int, full: bool) -> Json:
        return shape.block(self._evm.blocks[number], full)
