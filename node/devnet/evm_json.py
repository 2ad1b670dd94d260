"""Blocks, transactions, receipts and logs in the shapes of Ethereum's JSON-RPC."""

from __future__ import annotations

from typing import Any

from eth_utils.conversions import to_bytes, to_hex

from node.devnet.evm import Mined, contract_address

Json = Any


def address(text: str) -> bytes:
    return to_bytes(hexstr=text)


def call_fields(call: Json) -> dict[str, Any]:
    """The fields of eth_call and eth_estimateGas that matter here; fees do not."""
    fields: dict[str, Any] = {key: to_bytes(hexstr=call[key]) for key in ("from", "to") if call.get(key)}
    fields |= {key: int(str(call[key]), 16) for key in ("value", "gas") if call.get(key)}
    data = call.get("input") or call.get("data")
    return fields | ({"data": to_bytes(hexstr=data)} if data else {})


def block(mined: Mined, full: bool) -> Json:
    header = mined.header
    if full:
        transactions: list[Json] = [transaction(one, mined, index) for index, one in enumerate(mined.transactions)]
    else:
        transactions = [to_hex(one.hash) for one in mined.transactions]
    return {
        "number": hex(header.block_number),
        "hash": to_hex(header.hash),
        "parentHash": to_hex(header.parent_hash),
        "timestamp": hex(header.timestamp),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "miner": to_hex(header.coinbase),
        "mixHash": to_hex(header.mix_hash),
        "difficulty": "0x0",
        "extraData": to_hex(header.extra_data),
        "nonce": to_hex(header.nonce),
        "logsBloom": "0x" + format(header.bloom, "0512x"),
        "stateRoot": to_hex(header.state_root),
        "transactionsRoot": to_hex(header.transaction_root),
        "receiptsRoot": to_hex(header.receipt_root),
        "sha3Uncles": to_hex(header.uncles_hash),
        "uncles": [],
        "transactions": transactions,
    }


def transaction(one: Any, mined: Mined | None, index: int) -> Json:
    """`mined` is None while the transaction waits in the pool."""
    return {
        "hash": to_hex(one.hash),
        "type": hex(getattr(one, "type_id", None) or 0),
        "chainId": None if one.chain_id is None else hex(one.chain_id),
        "nonce": hex(one.nonce),
        "from": to_hex(one.sender),
        "to": to_hex(one.to) if one.to else None,
        "value": hex(one.value),
        "gas": hex(one.gas),
        "gasPrice": hex(one.max_fee_per_gas if mined is None else _price(one, mined)),
        "maxFeePerGas": hex(one.max_fee_per_gas),
        "maxPriorityFeePerGas": hex(one.max_priority_fee_per_gas),
        "input": to_hex(one.data),
        "accessList": [],
        "v": hex(one.y_parity),
        "r": hex(one.r),
        "s": hex(one.s),
        "blockHash": None if mined is None else to_hex(mined.header.hash),
        "blockNumber": None if mined is None else hex(mined.header.block_number),
        "transactionIndex": None if mined is None else hex(index),
    }


def receipt(mined: Mined, index: int) -> Json:
    one, result = mined.transactions[index], mined.receipts[index]
    created = None if one.to else to_hex(contract_address(bytes(one.sender), one.nonce))
    return {
        "transactionHash": to_hex(one.hash),
        "transactionIndex": hex(index),
        "blockHash": to_hex(mined.header.hash),
        "blockNumber": hex(mined.header.block_number),
        "from": to_hex(one.sender),
        "to": to_hex(one.to) if one.to else None,
        "contractAddress": created,
        "type": hex(getattr(one, "type_id", None) or 0),
        "status": "0x1" if result.state_root == b"\x01" else "0x0",  # since Byzantium the field holds the status
        "gasUsed": hex(mined.gas(index)),
        "cumulativeGasUsed": hex(result.gas_used),
        "effectiveGasPrice": hex(_price(one, mined)),
        "logsBloom": "0x" + format(result.bloom, "0512x"),
        "logs": [log for log in logs(mined) if log["transactionIndex"] == hex(index)],
    }


def logs(mined: Mined) -> list[Json]:
    """Every log of a block, numbered through the block."""
    found: list[Json] = []
    for index, (one, result) in enumerate(zip(mined.transactions, mined.receipts, strict=True)):
        for log in result.logs:
            found.append(
                {
                    "address": to_hex(log.address),
                    "topics": ["0x" + format(topic, "064x") for topic in log.topics],
                    "data": to_hex(log.data),
                    "blockNumber": hex(mined.header.block_number),
                    "blockHash": to_hex(mined.header.hash),
                    "transactionHash": to_hex(one.hash),
                    "transactionIndex": hex(index),
                    "logIndex": hex(len(found)),
                    "removed": False,
                }
            )
    return found


def is_wanted(log: Json, query: Json) -> bool:
    """Does a log fit the addresses and topics of eth_getLogs?"""
    addresses = _alternatives(query.get("address"))
    if addresses and log["address"] not in addresses:
        return False
    wanted = query.get("topics") or []
    if len(wanted) > len(log["topics"]):
        return False
    pairs = zip(log["topics"], map(_alternatives, wanted), strict=False)
    return all(not options or topic in options for topic, options in pairs)


def tip(mined: Mined, percentile: float) -> int:
    """What a transaction of a block paid above the base fee, in wei per gas; 0 for an empty block."""
    base = mined.header.base_fee_per_gas
    tips = sorted(_price(one, mined) - base for one in mined.transactions)
    return tips[min(len(tips) - 1, int(len(tips) * percentile / 100))] if tips else 0


def _price(one: Any, mined: Mined) -> int:
    base = int(mined.header.base_fee_per_gas)
    return min(int(one.max_fee_per_gas), base + int(one.max_priority_fee_per_gas))


def _alternatives(value: Json) -> list[str]:
    if value is None:
        return []
    return [item.lower() for item in ([value] if isinstance(value, str) else value)]
