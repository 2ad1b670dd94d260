// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";

/// The hash of the block after the pin. For development chains only: a block producer that also trains could
/// withhold a block whose hash it dislikes.
contract BlockhashBeacon is IBeacon {
    uint256 private constant REACH = 256; // blocks that BLOCKHASH looks back

    /// @inheritdoc IBeacon
    function pin() public view returns (uint256 ticket) {
        return block.number + 1;
    }

    /// @inheritdoc IBeacon
    /// @dev Every pin here already is what a last resort is elsewhere, so replacements need not be counted.
    function repin(uint256 ticket) external view returns (uint256 newTicket) {
        if (!expired(ticket)) revert NotExpired(ticket, block.number);
        return pin();
    }

    /// @inheritdoc IBeacon
    function seedOf(uint256 ticket) external view returns (bytes32 seed) {
        if (block.number <= ticket) revert SeedNotReady(ticket, block.number);
        if (expired(ticket)) revert SeedExpired(ticket, block.number);
        return keccak256(abi.encode(address(this), block.chainid, ticket, blockhash(ticket)));
    }

    /// @inheritdoc IBeacon
    function expired(uint256 ticket) public view returns (bool) {
        return block.number > REACH && block.number - REACH > ticket;
    }
}
