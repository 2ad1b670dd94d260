// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IAuditCourt} from "../interfaces/IAuditCourt.sol";
import {IOperatorRegistry} from "../interfaces/IOperatorRegistry.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {Addresses, Preset, Ticket} from "../types/Types.sol";

/// Who may be drawn: a list of entries. A draw goes over its length at a round's close. A released entry's place is
/// taken by the next ticket, so that nobody can thin the list out with the same stake again and again; whoever came
/// after a close is not drawn for it, in an old place or a new one.
///
/// INV-TICKET-1: used <= amount, and amount is locked in the vault until the ticket is released.
/// INV-TICKET-2: liveOwners counts the owners with an enrolled ticket.
abstract contract Tickets is IAuditCourt {
    uint256 internal constant SEAT_LOCK_REWARDS = 40; // a seat occupies this many rewards of a ticket's lock

    IStakeVault public immutable vault;
    IOperatorRegistry public immutable registry;
    uint96 internal immutable _minTicket;
    uint32 internal immutable _ticketExit;

    /// @inheritdoc IAuditCourt
    uint256 public liveOwners;
    Ticket[] internal _tickets;
    mapping(address owner => uint256) private _enrolled;
    mapping(uint256 ticket => uint256 time) private _enrolledAt;
    uint32[] private _places; // of released tickets

    constructor(Addresses memory a, Preset memory p) {
        vault = IStakeVault(a.vault);
        registry = IOperatorRegistry(a.registry);
        _minTicket = p.minTicket;
        _ticketExit = p.ticketExit;
    }

    /// @inheritdoc IAuditCourt
    function enroll(address operator, uint256 amount) external returns (uint32 ticket) {
        address owner = registry.activeOwnerOf(operator);
        if (owner != msg.sender) revert NotTheOwner(msg.sender, owner);
        if (amount < _minTicket) revert TicketTooSmall(amount, _minTicket);
        uint256 places = _places.length;
        if (places > 0) {
            ticket = _places[places - 1];
            _places.pop();
        } else {
            ticket = uint32(_tickets.length);
            _tickets.push();
        }
        _tickets[ticket] = Ticket(owner, 0, false, operator, uint96(amount), 0);
        _enrolledAt[ticket] = block.timestamp;
        if (_enrolled[owner]++ == 0) ++liveOwners; // INV-TICKET-2
        emit Enrolled(ticket, owner, operator, amount);
        vault.lock(owner, _ticketLock(ticket), amount); // INV-TICKET-1: also refuses what does not fit 96 bits
    }

    /// @inheritdoc IAuditCourt
    function exit(uint32 ticket) external {
        if (ticket >= _tickets.length) revert TicketGone(ticket);
        Ticket storage t = _tickets[ticket];
        if (t.owner != msg.sender) revert NotTheOwner(msg.sender, t.owner);
        if (t.exitAt != 0) revert TicketGone(ticket);
        t.exitAt = uint40(block.timestamp + _ticketExit);
        if (--_enrolled[t.owner] == 0) --liveOwners; // INV-TICKET-2
        emit TicketExiting(ticket, t.exitAt);
    }

    /// @inheritdoc IAuditCourt
    function release(uint32 ticket) external {
        if (ticket >= _tickets.length || _tickets[ticket].released) revert TicketGone(ticket);
        Ticket storage t = _tickets[ticket];
        if (t.exitAt == 0 || block.timestamp <= t.exitAt || t.used > 0) revert TicketInUse(ticket, t.used, t.exitAt);
        t.released = true;
        _places.push(ticket);
        emit TicketReleased(ticket, vault.release(_ticketLock(ticket)));
    }

    /// @inheritdoc IAuditCourt
    function ticketOf(uint32 ticket) external view returns (Ticket memory) {
        return _tickets[ticket];
    }

    /// @inheritdoc IAuditCourt
    function ticketCount() public view returns (uint32) {
        return uint32(_tickets.length);
    }

    /// Whether a ticket was enrolled when the round closed, and locks enough for a seat.
    function _isEligible(uint256 ticket, uint256 closedAt, uint256 seatLock) internal view returns (bool) {
        Ticket storage t = _tickets[ticket];
        bool live = !t.released && (t.exitAt == 0 || t.exitAt > closedAt) && _enrolledAt[ticket] <= closedAt;
        return live && t.amount >= seatLock;
    }

    function _ticketLock(uint32 ticket) internal pure returns (bytes32) {
        return keccak256(abi.encode("ticket", ticket));
    }
}
