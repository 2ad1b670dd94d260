// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Randomness that nobody could know or choose when the pin was set.
interface IBeacon {
    error SeedNotReady(uint256 ticket, uint256 height);
    error SeedExpired(uint256 ticket, uint256 height);

    /// Fix a future event whose outcome will be the seed.
    function pin() external returns (uint256 ticket);

    /// The seed of a ticket. Reverts before the event (`SeedNotReady`) and once it can no longer be proved
    /// (`SeedExpired`).
    function seedOf(uint256 ticket) external view returns (bytes32 seed);

    /// Whether the seed can no longer be proved, so that a new pin is needed.
    function expired(uint256 ticket) external view returns (bool);
}
