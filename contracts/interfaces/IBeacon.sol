// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Randomness that nobody could know or choose when the pin was set. A caller keeps the ticket and nothing else: which
/// moment counts, and how often it was replaced, are written in the ticket itself. Tickets are not bound to a caller;
/// all pins of one block may share one. `at` in errors is the clock by which the ticket is judged: a block's height,
/// or a block time in seconds.
interface IBeacon {
    error SeedNotReady(uint256 ticket, uint256 at);
    error SeedExpired(uint256 ticket, uint256 at);
    error NotExpired(uint256 ticket, uint256 at);
    error UnknownTicket(uint256 ticket);

    /// Fix a future moment whose outcome will be the seed. Anyone, at any time; nothing is stored, and no order of
    /// transactions within a block changes the ticket, which fits 80 bits.
    function pin() external returns (uint256 ticket);

    /// Replace an expired ticket; the third replacement in a chain, and any after it, is the last resort. Anyone, once
    /// `expired`. Reverts with `NotExpired` while the ticket can still be proved, or was. Whoever calls it chooses the
    /// block in which the new moment is fixed, and nothing else.
    function repin(uint256 ticket) external returns (uint256 newTicket);

    /// The seed of a ticket, bound to this contract, the chain and the ticket. Anyone. Reverts before the moment and
    /// before its proof (`SeedNotReady`), once it can no longer be proved (`SeedExpired`), and for numbers that no pin
    /// returns (`UnknownTicket`).
    function seedOf(uint256 ticket) external view returns (bytes32 seed);

    /// Whether the seed can no longer be proved and never was, so that `repin` is due. Once true, it stays true.
    function expired(uint256 ticket) external view returns (bool);
}
