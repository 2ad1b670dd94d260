"""What can go wrong between this program and a chain, each as one line with its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protocol.core.errors import GradmarketError


class ChainError(GradmarketError):
    """The root of everything that protocol.chain raises on purpose."""


class ChainUnavailable(ChainError):
    """No RPC endpoint answered: nothing is known about the chain, so nothing may be concluded from it."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        tried = "; ".join(f"{url}: {why}" for url, why in reasons.items())
        super().__init__(f"the chain does not answer ({tried}): check the RPC address and the network, then try again")


class WrongChain(ChainError):
    """An endpoint serves another chain than the one that was asked for."""

    def __init__(self, url: str, have: int, expected: int) -> None:
        self.have, self.expected = have, expected
        super().__init__(f"{url} serves chain id {have}, expected {expected}: correct chain.rpc or chain.id")


class StaleHead(ChainError):
    """The newest block that any endpoint knows is old: a lagging node must not decide what is late."""

    def __init__(self, age: int, limit: int, number: int) -> None:
        self.age, self.limit = age, limit
        super().__init__(
            f"the newest block {number} is {age} s old, at most {limit} s is accepted: "
            "the RPC node lags; name another one in chain.rpc of config.toml"
        )


class DeploymentError(ChainError):
    """An address book or a shipped ABI that cannot be used."""


class Refused(ChainError):
    """An RPC node refused a request for a reason of its own; its words are kept."""


class Reverted(ChainError):
    """A contract said no. `name` and `args` are the Solidity error's: BondTooSmall(have=5, need=13)."""

    def __init__(self, name: str, args: Mapping[str, Any], data: bytes = b"") -> None:
        # Not `self.args`: that is BaseException's own, a tuple.
        self.name, self.arguments, self.data = name, dict(args), data
        super().__init__(f"the contract refused: {describe(name, args)}")


class OutOfGas(Reverted):
    """A mined transaction ran into its gas limit: the state changed after the estimate."""

    def __init__(self, gas_limit: int) -> None:
        super().__init__("OutOfGas", {"gasLimit": gas_limit})


class OutOfGasMoney(ChainError):
    """The key cannot pay for gas."""

    def __init__(self, address: str, have: int, need: int) -> None:
        self.address, self.have, self.need = address, have, need
        super().__init__(f"{address} has {have} wei for gas, needs {need}: send it {need - have} wei or more")


class FeeCapTooLow(ChainError):
    """The chain's base fee is above the most that the owner allows."""

    def __init__(self, cap: int, need: int) -> None:
        self.cap, self.need = cap, need
        super().__init__(f"the chain asks {need} wei per gas, the fee cap is {cap}: wait, or raise max_fee_cap")


class Unconfirmed(ChainError):
    """Not mined in time. It stays in the outbox and is followed by its hash; it is not sent again as something new."""

    def __init__(self, tx_hash: str, purpose: str, nonce: int, seconds: float, trouble: str = "") -> None:
        self.tx_hash, self.purpose, self.nonce = tx_hash, purpose, nonce
        why = f" (the node says: {trouble})" if trouble else ""
        super().__init__(
            f"{purpose}: {tx_hash} (nonce {nonce}) not mined after {seconds:.0f} s{why}; it is still followed"
        )


class NonceTaken(ChainError):
    """A transaction that is not ours used the nonce: the same key works in another program."""

    def __init__(self, address: str, nonce: int, purpose: str) -> None:
        self.address, self.nonce, self.purpose = address, nonce, purpose
        super().__init__(
            f"{purpose}: another transaction used nonce {nonce} of {address}: do not use one key in two programs"
        )


class UnknownTransaction(ChainError):
    """A hash that this sender never stored."""


class KeystoreError(ChainError):
    """A key file or password file that cannot be used."""


class WrongPassword(KeystoreError):
    """The password does not open the key file."""


def describe(name: str, args: Mapping[str, Any]) -> str:
    """Write an error or call as Solidity would: BondTooSmall(have=5, need=13)."""
    return f"{name}({', '.join(f'{key}={_show(value)}' for key, value in args.items())})"


def _show(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_show(item) for item in value) + "]"
    return str(value)
