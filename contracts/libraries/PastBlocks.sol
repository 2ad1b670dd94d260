// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Hashes of blocks that were.
library PastBlocks {
    /// EIP-2935: keeps the hashes of the last 8191 blocks, on chains that have it.
    address internal constant HISTORY = 0x0000F90827F1C53a10cb7A02335B175320002935;

    /// The hash of a past block, or zero when neither BLOCKHASH (256 blocks) nor the history contract knows it. A chain
    /// without that contract answers with nothing; the contract reverts for blocks out of its reach or to come, and
    /// answers with zero for blocks before its own time: all of that is zero here.
    function hashOf(uint256 height) internal view returns (bytes32 hash) {
        hash = blockhash(height);
        if (hash != 0) return hash;
        (bool known, bytes memory answer) = HISTORY.staticcall(abi.encode(height));
        if (known && answer.length == 32) return bytes32(answer);
    }
}
