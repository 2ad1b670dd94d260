// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Ticket} from "../types/Types.sol";

/// What a drawn entry of the list is good for.
enum Candidate {
    Unfit, // not enrolled at that time, or too small after a loss
    Busy, // its lock lies behind other seats
    Free
}

/// Tickets: who may be drawn to a panel.
interface ITicketBook {
    event Enrolled(uint32 indexed ticket, address indexed owner, address indexed operator, uint256 amount);
    event TicketExiting(uint32 indexed ticket, uint256 exitAt);
    event TicketReleased(uint32 indexed ticket, uint256 amount);
    event TicketSlashed(uint32 indexed ticket, address indexed court, bytes32 indexed pot, uint256 amount);

    error NotTheOwner(address caller, address owner);
    error NotACourt(address caller);
    error TicketsOutOfRange(uint256 have, uint256 least, uint256 most);
    error TicketGone(uint32 ticket);
    error TicketInUse(uint32 ticket, uint256 used, uint256 exitAt);

    /// Lock `count` tickets of the caller's stake, 64 at most, behind an operator's readiness to sit on panels. The
    /// operator's owner only. Each ticket locks the preset's `ticket` and is one entry of the draw, so that seats go by
    /// stake, however it is divided. Drawn for rounds that close from now on; nobody can enrol into a draw whose seed is
    /// known.
    function enroll(address operator, uint256 count) external returns (uint32[] memory numbers);

    /// Stop being drawn for rounds that close later than the preset's exit time from now. The owner only.
    function exit(uint32 ticket) external;

    /// Free the lock of a ticket whose exit time has passed and whose seats are done. Anyone.
    function release(uint32 ticket) external;

    /// Put `amount` wei of a ticket's lock behind a seat. The courts only.
    function occupy(uint32 ticket, uint256 amount) external;

    /// Give `amount` wei of a ticket's lock back to it. The courts only.
    function vacate(uint32 ticket, uint256 amount) external;

    /// Take `amount` wei that lie behind a seat into a pot of the ledger. The courts only.
    function slash(uint32 ticket, uint256 amount, bytes32 pot) external;

    /// Whether an entry was enrolled at `time` and has `amount` wei to put behind a seat; its owner and its operator.
    function candidate(
        uint256 ticket,
        uint256 time,
        uint256 amount
    ) external view returns (Candidate fit, address owner, address operator);

    /// One entry of the list; reverts beyond its end. A released entry is overwritten by the next ticket.
    function ticketOf(uint32 ticket) external view returns (Ticket memory);

    /// The length of the list: enrolled, exiting and released entries.
    function ticketCount() external view returns (uint32);

    /// Owners with at least one enrolled ticket.
    function liveOwners() external view returns (uint256);
}
