"""What a transaction may cost. EIP-1559 only: one fee style, so that a replacement never mixes two."""

from __future__ import annotations

from dataclasses import dataclass

from web3 import AsyncWeb3

from protocol.chain.errors import FeeCapTooLow

GWEI = 10**9
BUMP_NUMERATOR, BUMP_DENOMINATOR = 9, 8  # 12.5 %: nodes ask for at least 10 % more in both fields
HISTORY_BLOCKS = 5


@dataclass(frozen=True)
class Fees:
    """Wei per gas; tip <= max_fee."""

    max_fee: int
    tip: int


@dataclass(frozen=True)
class FeePolicy:
    """The owner's limits and the engine's patience; times in seconds of the wall clock."""

    max_fee_cap: int = 500 * GWEI  # wei per gas, never exceeded
    min_tip: int = GWEI // 100
    base_fee_headroom: int = 2  # base fee may double (6 full blocks) before the transaction waits
    gas_margin: float = 1.25  # the state may move between estimate and block
    replace_after: float = 45.0
    rebroadcast_after: float = 12.0
    poll_seconds: float = 1.0
    confirmations: int = 0  # blocks on top of the one that holds the transaction

    def initial(self, base_fee: int, suggested_tip: int) -> Fees:
        """Fees of a new transaction. Raises FeeCapTooLow when the cap does not even pay the base fee."""
        if base_fee > self.max_fee_cap:
            raise FeeCapTooLow(self.max_fee_cap, base_fee)
        tip = max(self.min_tip, suggested_tip)
        max_fee = min(self.base_fee_headroom * base_fee + tip, self.max_fee_cap)
        return Fees(max_fee, min(tip, max_fee))

    def replacement(self, old: Fees, base_fee: int, suggested_tip: int) -> Fees | None:
        """Fees that a node accepts in place of `old`, both raised by 12.5 % or more; None when the cap forbids it."""
        fresh_tip = max(self.min_tip, suggested_tip)
        tip = max(_bump(old.tip), fresh_tip)
        max_fee = max(_bump(old.max_fee), self.base_fee_headroom * base_fee + tip)
        max_fee = min(max_fee, self.max_fee_cap)
        tip = min(tip, max_fee)
        if max_fee < _bump(old.max_fee) or tip < _bump(old.tip):
            return None
        return Fees(max_fee, tip)


def _bump(fee: int) -> int:
    return -(-fee * BUMP_NUMERATOR // BUMP_DENOMINATOR)


async def market_fees(w3: AsyncWeb3) -> tuple[int, int]:  # type: ignore[type-arg]
    """The next block's base fee and the median tip of the last blocks, in wei per gas."""
    history = await w3.eth.fee_history(HISTORY_BLOCKS, "latest", [50])
    tips = sorted(int(row[0]) for row in history.get("reward") or [] if row)
    return int(history["baseFeePerGas"][-1]), tips[len(tips) // 2] if tips else 0
