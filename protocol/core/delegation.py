"""What owners and operators sign so that a key may act (EIP-712; twin of OperatorRegistry.sol)."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.core.encoding import abi_encode, keccak, typehash
from protocol.core.operator import Scope

DOMAIN_TYPEHASH = typehash("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
REGISTRATION_TYPEHASH = typehash(
    "Registration(address owner,address operator,address payout,uint256 nonce,uint256 deadline)"
)
DELEGATION_TYPEHASH = typehash(
    "Delegation(address owner,address operator,address payout,uint8 scopes,uint64 expiry,"
    "uint256 nonce,uint256 deadline)"
)
REVOCATION_TYPEHASH = typehash("Revocation(address owner,address operator,uint256 nonce,uint256 deadline)")


@dataclass(frozen=True)
class Domain:
    """The registry that a signature is for: it counts on no other chain and in no other deployment."""

    chain_id: int
    registry: str

    def digest(self, struct: bytes) -> bytes:
        """The 32 bytes to sign for a struct's hash."""
        names = (keccak(b"gradmarket"), keccak(b"1"))
        types = ("bytes32", "bytes32", "bytes32", "uint256", "address")
        domain = keccak(abi_encode(types, (DOMAIN_TYPEHASH, *names, self.chain_id, self.registry)))
        return keccak(b"\x19\x01" + domain + struct)


@dataclass(frozen=True)
class Delegation:
    """What an owner gives a key; `expiry` is a block time, the last second in which the key acts."""

    owner: str
    operator: str
    payout: str
    scopes: Scope
    expiry: int


def registration_digest(domain: Domain, owner: str, operator: str, payout: str, nonce: int, deadline: int) -> bytes:
    """What an operator's key signs to consent."""
    types = ("bytes32", "address", "address", "address", "uint256", "uint256")
    values = (REGISTRATION_TYPEHASH, owner, operator, payout, nonce, deadline)
    return domain.digest(keccak(abi_encode(types, values)))


def delegation_digest(domain: Domain, d: Delegation, nonce: int, deadline: int) -> bytes:
    """What an owner signs to delegate."""
    types = ("bytes32", "address", "address", "address", "uint8", "uint64", "uint256", "uint256")
    values = (DELEGATION_TYPEHASH, d.owner, d.operator, d.payout, int(d.scopes), d.expiry, nonce, deadline)
    return domain.digest(keccak(abi_encode(types, values)))


def revocation_digest(domain: Domain, owner: str, operator: str, nonce: int, deadline: int) -> bytes:
    """What an owner signs to revoke."""
    types = ("bytes32", "address", "address", "uint256", "uint256")
    return domain.digest(keccak(abi_encode(types, (REVOCATION_TYPEHASH, owner, operator, nonce, deadline))))
