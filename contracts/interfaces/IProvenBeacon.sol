// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IBeacon} from "./IBeacon.sol";

/// A beacon whose outcomes must be shown to it before seeds can be read.
interface IProvenBeacon is IBeacon {
    event Proved(uint256 indexed moment, bytes32 outcome);

    error NothingToProve(uint256 ticket);

    /// Store the outcome of a ticket's moment, for this and every other ticket of that moment. Anyone, from the moment
    /// until the ticket expires; the caller cannot choose the outcome, and a second proof changes nothing, so nothing
    /// is won by going first. Reverts with `SeedNotReady`, `SeedExpired`, `UnknownTicket`, with `NothingToProve` for a
    /// last resort, and with an error of the beacon's own for a wrong proof.
    function prove(uint256 ticket, bytes calldata proof) external;

    /// What was proved of a moment (a block's height, or a round of the beacon), or zero.
    function outcomeOf(uint256 moment) external view returns (bytes32);
}
