// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ProvenBeacon} from "./ProvenBeacon.sol";
import {BlsG1} from "../libraries/BlsG1.sol";

/// Rounds of drand's network `quicknet` (chain hash 52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971,
/// scheme bls-unchained-g1-rfc9380), verified on the chain. The proof is the round's signature, a point of G1 as
/// `x || y`; the outcome is the very value that drand publishes as `randomness`. Nobody can bias it: a round has one
/// signature. A threshold of drand's members could know it early; they could also stop.
contract DrandBeacon is ProvenBeacon {
    uint256 private constant GENESIS = 1_692_803_367; // the second of round 1
    uint256 private constant PERIOD = 3;
    bytes private constant DOMAIN = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
    /// 83cf0f28…5ece45a, uncompressed as EIP-2537 wants it. It outlives changes of drand's membership.
    bytes private constant KEY =
        hex"000000000000000000000000000000000d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
        hex"0000000000000000000000000000000003cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
        hex"000000000000000000000000000000000e5db2b6bfbb01c867749cadffca88b36c24f3012ba09fc4d3022c5c37dce0f977d3adb5d183c7477c442b1f04515273"
        hex"0000000000000000000000000000000001a714f2edb74119a2f2b0d5a7c75ba902d163700a61bc224ededd8e63aef7be1aaf8e93d7a9718b047ccddb3eb5d68b";
    uint256 private constant SIZE = 96;

    /// Five slots of Ethereum: a block may be published late in its slot, and the newest ones may be made anew.
    uint256 private constant LEAST_MARGIN = 60;
    uint256 private constant LEAST_PATIENCE = 600;
    uint256 private constant MOST = 30 days; // for both: a typing error must not stall a market

    /// Seconds that a pinned round lies after the pin's block time, at least. It is how far the chain's clock may be
    /// behind the world's: by more, and whoever pins may know the seed. 900 bears a clock that is 15 minutes wrong.
    uint256 public immutable margin;
    /// Seconds after a round in which it can be proved. Longer than drand has ever been silent, and than anybody could
    /// keep proofs out of the chain.
    uint256 public immutable patience;

    error MarginOutOfRange(uint256 have, uint256 least, uint256 most);
    error PatienceOutOfRange(uint256 have, uint256 least, uint256 most);
    error WrongSize(uint256 have, uint256 need);
    error WrongSignature(uint256 round);

    /// Reverts with `PrecompileFailed` on a chain without EIP-2537, where nothing could ever be proved.
    constructor(uint256 margin_, uint256 patience_) {
        if (margin_ < LEAST_MARGIN || margin_ > MOST) revert MarginOutOfRange(margin_, LEAST_MARGIN, MOST);
        if (patience_ < LEAST_PATIENCE || patience_ > MOST) {
            revert PatienceOutOfRange(patience_, LEAST_PATIENCE, MOST);
        }
        (margin, patience) = (margin_, patience_);
        BlsG1.hashToCurve("", DOMAIN);
    }

    /// The second in which drand publishes a round, by its own clock. Rounds count from 1.
    function timeOf(uint256 round) public pure returns (uint256 second) {
        return GENESIS + (round - 1) * PERIOD;
    }

    /// The first round after the margin, and not in its last second.
    function _next() internal view override returns (uint256 round) {
        return (block.timestamp + margin - GENESIS) / PERIOD + 2;
    }

    function _clock() internal view override returns (uint256 second) {
        return block.timestamp;
    }

    function _exists(uint256 round) internal pure override returns (bool) {
        return round != 0;
    }

    function _happened(uint256 round) internal view override returns (bool) {
        return block.timestamp >= timeOf(round);
    }

    function _provable(uint256 round) internal view override returns (bool) {
        return block.timestamp <= timeOf(round) + patience;
    }

    function _verified(uint256 round, bytes calldata signature) internal view override returns (bytes32 randomness) {
        if (signature.length != SIZE) revert WrongSize(signature.length, SIZE);
        bytes memory message = abi.encodePacked(sha256(abi.encodePacked(uint64(round))));
        if (!BlsG1.signs(signature, message, DOMAIN, KEY)) revert WrongSignature(round);
        return sha256(BlsG1.compressed(signature));
    }
}
