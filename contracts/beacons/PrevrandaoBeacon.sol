// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ProvenBeacon} from "./ProvenBeacon.sol";
import {HeaderRlp} from "../libraries/HeaderRlp.sol";
import {PastBlocks} from "../libraries/PastBlocks.sol";

/// The RANDAO value of a block that is fixed when the pin is set, a number of blocks ahead. The proof is that block's
/// header in RLP: its hash must be the one that the chain remembers. For Ethereum and chains that make blocks as it
/// does. Proposers just before the block can each withhold theirs: one bit each, at the price of the block.
contract PrevrandaoBeacon is ProvenBeacon {
    /// Four spans of 32 slots (EIP-4399, tips for application developers): the proposers of the moment are drawn from
    /// randomness that does not exist yet at the pin.
    uint256 private constant LEAST_LEAD = 128;
    uint256 private constant MOST_LEAD = 43_200; // a day of two-second blocks: a typing error must not stall a market

    /// Blocks from a pin to the block that it names.
    uint256 public immutable lead;

    error LeadOutOfRange(uint256 have, uint256 least, uint256 most);
    error WrongHeader(bytes32 have, bytes32 need);

    /// 164 on Ethereum: what may be left of the pin's own 32 slots, four times 32 more, and four slots for an honest
    /// proposer to come between whoever knows that much by then. Reverts with `NoRandomness` on a chain whose blocks
    /// carry a difficulty or a constant, which are below 2^64 (EIP-4399).
    constructor(uint256 lead_) {
        if (lead_ < LEAST_LEAD || lead_ > MOST_LEAD) revert LeadOutOfRange(lead_, LEAST_LEAD, MOST_LEAD);
        if (block.prevrandao < 1 << 64) revert HeaderRlp.NoRandomness(block.number);
        lead = lead_;
    }

    function _next() internal view override returns (uint256 height) {
        return block.number + lead;
    }

    function _clock() internal view override returns (uint256 height) {
        return block.number;
    }

    function _exists(uint256 height) internal pure override returns (bool) {
        return height != 0;
    }

    function _happened(uint256 height) internal view override returns (bool) {
        return block.number > height;
    }

    function _provable(uint256 height) internal view override returns (bool) {
        return PastBlocks.hashOf(height) != 0;
    }

    function _verified(uint256 height, bytes calldata header) internal view override returns (bytes32 randao) {
        bytes32 need = PastBlocks.hashOf(height);
        bytes32 have = keccak256(header);
        if (have != need) revert WrongHeader(have, need);
        return HeaderRlp.randaoOf(header, height);
    }
}
