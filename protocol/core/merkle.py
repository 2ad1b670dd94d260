"""A Merkle tree by position: leaf i of n has exactly one path, of exactly depth(n) nodes.

Leaves are hashed twice under a type tag before they come here (`trace.py`), so an inner node can never pass
for a leaf; the tree is padded with zero words to a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.core.encoding import keccak

EMPTY = bytes(32)


def depth(leaves: int) -> int:
    """Levels above the leaves: ceil(log2(leaves))."""
    return (leaves - 1).bit_length()


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    if not leaves:
        raise ValueError("a Merkle tree needs a leaf")
    level = list(leaves) + [EMPTY] * ((1 << depth(len(leaves))) - len(leaves))
    levels = [level]
    while len(level) > 1:
        level = [keccak(level[i] + level[i + 1]) for i in range(0, len(level), 2)]
        levels.append(level)
    return levels


def compute_root(leaves: Sequence[bytes]) -> bytes:
    """The root over `leaves`, each 32 bytes."""
    return _levels(leaves)[-1][0]


def compute_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The siblings of leaf `index`, from the bottom up."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"leaf {index} of {len(leaves)}")
    proof = []
    for level in _levels(leaves)[:-1]:
        proof.append(level[index ^ 1])
        index >>= 1
    return proof


def is_proof(root: bytes, leaf: bytes, index: int, leaves: int, proof: Sequence[bytes]) -> bool:
    """Whether `leaf` stands at `index` among `leaves` under `root`. Twin of MerklePosition.sol."""
    if not 0 <= index < leaves or len(proof) != depth(leaves):
        return False
    node = leaf
    for sibling in proof:
        node = keccak(node + sibling) if index & 1 == 0 else keccak(sibling + node)
        index >>= 1
    return node == root
