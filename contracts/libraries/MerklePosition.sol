// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Merkle proofs by position: leaf i of n has exactly one path, of exactly ceil(log2 n) nodes.
/// Leaves arrive hashed twice under a type tag, so an inner node cannot pass for one. Twin of protocol/core/merkle.py.
library MerklePosition {
    /// Whether `leaf` stands at `index` among `leaves` under `root`.
    function verify(
        bytes32 root,
        bytes32 leaf,
        uint256 index,
        uint256 leaves,
        bytes32[] calldata proof
    ) internal pure returns (bool) {
        if (index >= leaves || proof.length != depth(leaves)) return false;
        bytes32 node = leaf;
        for (uint256 i; i < proof.length; ++i) {
            node = index & 1 == 0 ? keccak256(abi.encode(node, proof[i])) : keccak256(abi.encode(proof[i], node));
            index >>= 1;
        }
        return node == root;
    }

    /// The root over `leaves`, padded with zero words to a power of two. Overwrites its argument.
    function rootOf(bytes32[] memory leaves) internal pure returns (bytes32) {
        uint256 width = 1 << depth(leaves.length);
        bytes32[] memory level = new bytes32[](width);
        for (uint256 i; i < leaves.length; ++i) level[i] = leaves[i];
        for (; width > 1; width >>= 1) {
            for (uint256 i; i < width; i += 2) level[i >> 1] = keccak256(abi.encode(level[i], level[i + 1]));
        }
        return level[0];
    }

    /// ceil(log2 leaves), 0 for one leaf.
    function depth(uint256 leaves) internal pure returns (uint256 d) {
        while ((1 << d) < leaves) ++d;
    }
}
