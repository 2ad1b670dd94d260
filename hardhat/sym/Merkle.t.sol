// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {MerklePosition} from "../contracts/libraries/MerklePosition.sol";

/// Proofs for trees of one to five leaves; keccak is any function without collisions.
contract MerkleProof {
    uint256 private constant MOST = 5;

    function isProof(
        bytes32 root,
        bytes32 leaf,
        uint256 index,
        uint256 leaves,
        bytes32[] calldata proof
    ) external pure returns (bool) {
        return MerklePosition.verify(root, leaf, index, leaves, proof);
    }

    function rootOf(bytes32[MOST] memory words, uint256 n) private pure returns (bytes32) {
        bytes32[] memory leaves = new bytes32[](n);
        for (uint256 i; i < n; ++i) leaves[i] = words[i];
        return MerklePosition.rootOf(leaves);
    }

    /// The siblings of leaf `index` from the bottom up, written a second time.
    function path(bytes32[MOST] memory words, uint256 n, uint256 index) private pure returns (bytes32[] memory proof) {
        uint256 d;
        while ((1 << d) < n) ++d;
        proof = new bytes32[](d);
        for (uint256 k; k < d; ++k) proof[k] = node(words, n, k, (index >> k) ^ 1);
    }

    function node(bytes32[MOST] memory words, uint256 n, uint256 height, uint256 at) private pure returns (bytes32) {
        if (height == 0) return at < n ? words[at] : bytes32(0);
        return keccak256(abi.encode(node(words, n, height - 1, 2 * at), node(words, n, height - 1, 2 * at + 1)));
    }

    function check_every_leaf_has_its_path(bytes32[5] memory words) external view {
        for (uint256 n = 1; n <= MOST; ++n) {
            for (uint256 i; i < n; ++i) assert(this.isProof(rootOf(words, n), words[i], i, n, path(words, n, i)));
        }
    }

    /// What is accepted at a place is the leaf of that place, under its own siblings. `which` names tree and place.
    function check_no_second_path(
        bytes32[5] memory words,
        bytes32 leaf,
        bytes32[3] memory proof,
        uint8 which
    ) external view {
        for (uint256 n = 1; n <= MOST; ++n) {
            for (uint256 i; i < n; ++i) if (which == 8 * n + i) onePath(words, n, i, leaf, proof);
        }
    }

    function onePath(
        bytes32[MOST] memory words,
        uint256 n,
        uint256 i,
        bytes32 leaf,
        bytes32[3] memory others
    ) private view {
        bytes32[] memory own = path(words, n, i);
        bytes32[] memory proof = new bytes32[](own.length);
        for (uint256 k; k < own.length; ++k) proof[k] = others[k];
        if (!this.isProof(rootOf(words, n), leaf, i, n, proof)) return;
        assert(leaf == words[i]);
        for (uint256 k; k < own.length; ++k) assert(proof[k] == own[k]);
    }

    function check_no_other_length_and_no_place_outside(bytes32 top, bytes32 leaf, uint256 at) external view {
        for (uint256 n = 1; n <= MOST; ++n) {
            for (uint256 length; length <= 4; ++length) {
                bytes32[] memory proof = new bytes32[](length);
                bool fits = (1 << length) >= n && (length == 0 || (1 << (length - 1)) < n);
                if (at >= n || !fits) assert(!this.isProof(top, leaf, at, n, proof));
            }
        }
    }
}
