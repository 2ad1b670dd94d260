// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {MerklePosition} from "../contracts/libraries/MerklePosition.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";
import {RowOpening, TraceRow} from "../contracts/types/Types.sol";

/// Traces of the tests: every step has its own loss, and every deviation its own trace.
library Traces {
    /// The trace of `steps` steps that belongs to `seed`, with every loss raised by `deviation` (units of 1e-9).
    function rows(bytes32 seed, uint256 steps, uint64 deviation) internal pure returns (TraceRow[] memory list) {
        list = new TraceRow[](steps);
        for (uint32 i; i < steps; ++i) {
            bytes32 sketch = keccak256(abi.encode(seed, i));
            uint64 loss = uint64(2e9 + (uint256(sketch) % 1e9)) + deviation;
            list[i] = TraceRow(i + 1, loss, uint64(uint256(sketch) >> 200), sketch, bytes32(0));
        }
    }

    function leaves(TraceRow[] memory list) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](list.length);
        for (uint256 i; i < list.length; ++i) hashes[i] = TraceLib.rowHash(list[i]);
    }

    function auditLeaves(
        TraceRow[] memory list,
        bytes32 caseId,
        uint16 seat,
        address auditor,
        bytes32 salt
    ) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](list.length);
        for (uint256 i; i < list.length; ++i) hashes[i] = TraceLib.auditRowHash(list[i], caseId, seat, auditor, salt);
    }

    /// The root over leaves, which stay as they are.
    function root(bytes32[] memory hashes) internal pure returns (bytes32) {
        bytes32[] memory copy = new bytes32[](hashes.length);
        for (uint256 i; i < hashes.length; ++i) copy[i] = hashes[i];
        return MerklePosition.rootOf(copy);
    }

    /// The siblings of leaf `index`, from the bottom up.
    function proof(bytes32[] memory hashes, uint256 index) internal pure returns (bytes32[] memory path) {
        uint256 depth = MerklePosition.depth(hashes.length);
        bytes32[] memory level = new bytes32[](1 << depth);
        for (uint256 i; i < hashes.length; ++i) level[i] = hashes[i];
        path = new bytes32[](depth);
        uint256 width = 1 << depth;
        for (uint256 d; d < depth; ++d) {
            path[d] = level[index ^ 1];
            for (uint256 i; i < width; i += 2) level[i >> 1] = keccak256(abi.encode(level[i], level[i + 1]));
            width >>= 1;
            index >>= 1;
        }
    }

    /// The rows of some steps with their paths.
    function open(
        TraceRow[] memory list,
        bytes32[] memory hashes,
        uint32[3] memory steps
    ) internal pure returns (RowOpening[] memory openings) {
        openings = new RowOpening[](3);
        for (uint256 i; i < 3; ++i) openings[i] = RowOpening(list[steps[i] - 1], proof(hashes, steps[i] - 1));
    }
}
