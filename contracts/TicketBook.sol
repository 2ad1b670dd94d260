// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ITicketBook, Candidate} from "./interfaces/ITicketBook.sol";
import {IOperatorRegistry} from "./interfaces/IOperatorRegistry.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {Addresses, Preset, SCOPE_AUDIT, Ticket} from "./types/Types.sol";

/// @title TicketBook
/// @notice Who may be drawn to a panel: a list of entries of the same stake. A draw goes over its length at a round's
/// close. A released entry's place is taken by the next ticket, so that nobody can thin the list out with the same stake
/// again and again; whoever came after a close is not drawn for it, in an old place or a new one.
/// Assumes: the courts occupy no more than they vacate or slash.
/// Assumes for liveness: nothing; an owner's exit needs no court once its seats are done.
///
/// INV-TICKET-1: used <= amount, and amount is locked in the vault until the ticket is released.
/// INV-TICKET-2: liveOwners counts the owners with an enrolled ticket.
/// INV-TICKET-3: every ticket locks the same when it is enrolled: entries are proportional to stake.
contract TicketBook is ITicketBook {
    uint256 private constant MOST_AT_ONCE = 64; // tickets enrolled in one transaction

    IStakeVault public immutable vault;
    IOperatorRegistry public immutable registry;
    address private immutable _court;
    address private immutable _checkpoints;
    uint96 private immutable _ticket;
    uint32 private immutable _ticketExit;

    /// @inheritdoc ITicketBook
    uint256 public liveOwners;
    Ticket[] private _tickets;
    mapping(address owner => uint256) private _enrolled;
    uint32[] private _places; // of released tickets

    constructor(Addresses memory a, Preset memory p) {
        vault = IStakeVault(a.vault);
        registry = IOperatorRegistry(a.registry);
        _court = a.court;
        _checkpoints = a.checkpoints;
        _ticket = p.ticket;
        _ticketExit = p.ticketExit;
    }

    modifier onlyCourt() {
        if (msg.sender != _court && msg.sender != _checkpoints) revert NotACourt(msg.sender);
        _;
    }

    /// @inheritdoc ITicketBook
    function enroll(address operator, uint256 count) external returns (uint32[] memory numbers) {
        address owner = registry.ownerFor(operator, SCOPE_AUDIT);
        if (owner != msg.sender) revert NotTheOwner(msg.sender, owner);
        if (count == 0 || count > MOST_AT_ONCE) revert TicketsOutOfRange(count, 1, MOST_AT_ONCE);
        if (_enrolled[owner] == 0) ++liveOwners; // INV-TICKET-2
        _enrolled[owner] += count;
        numbers = new uint32[](count);
        for (uint256 i; i < count; ++i) {
            uint32 ticket = _place();
            numbers[i] = ticket;
            _tickets[ticket] = Ticket(owner, 0, uint40(block.timestamp), false, _ticket, 0, operator); // INV-TICKET-3
            emit Enrolled(ticket, owner, operator, _ticket);
            vault.lock(owner, _lockId(ticket), _ticket); // INV-TICKET-1
        }
    }

    /// @inheritdoc ITicketBook
    function exit(uint32 ticket) external {
        if (ticket >= _tickets.length) revert TicketGone(ticket);
        Ticket storage t = _tickets[ticket];
        if (t.owner != msg.sender) revert NotTheOwner(msg.sender, t.owner);
        if (t.exitAt != 0) revert TicketGone(ticket);
        t.exitAt = uint40(block.timestamp + _ticketExit);
        if (--_enrolled[t.owner] == 0) --liveOwners; // INV-TICKET-2
        emit TicketExiting(ticket, t.exitAt);
    }

    /// @inheritdoc ITicketBook
    function release(uint32 ticket) external {
        if (ticket >= _tickets.length || _tickets[ticket].released) revert TicketGone(ticket);
        Ticket storage t = _tickets[ticket];
        if (t.exitAt == 0 || block.timestamp <= t.exitAt || t.used > 0) revert TicketInUse(ticket, t.used, t.exitAt);
        t.released = true;
        _places.push(ticket);
        emit TicketReleased(ticket, vault.release(_lockId(ticket)));
    }

    /// @inheritdoc ITicketBook
    function occupy(uint32 ticket, uint256 amount) external onlyCourt {
        Ticket storage t = _tickets[ticket];
        uint256 used = t.used + amount;
        if (used > t.amount) revert TicketInUse(ticket, t.used, t.exitAt); // INV-TICKET-1
        t.used = uint96(used);
    }

    /// @inheritdoc ITicketBook
    function vacate(uint32 ticket, uint256 amount) external onlyCourt {
        _tickets[ticket].used -= uint96(amount);
    }

    /// @inheritdoc ITicketBook
    function slash(uint32 ticket, uint256 amount, bytes32 pot) external onlyCourt {
        Ticket storage t = _tickets[ticket];
        t.used -= uint96(amount); // INV-TICKET-1: no more than lies behind seats
        t.amount -= uint96(amount);
        emit TicketSlashed(ticket, msg.sender, pot, amount);
        vault.slash(_lockId(ticket), amount, 0, pot);
    }

    /// @inheritdoc ITicketBook
    function candidate(
        uint256 ticket,
        uint256 time,
        uint256 amount
    ) external view returns (Candidate fit, address owner, address operator) {
        Ticket storage t = _tickets[ticket];
        bool live = !t.released && (t.exitAt == 0 || t.exitAt > time) && t.enrolledAt <= time;
        if (!live || t.amount < amount) return (Candidate.Unfit, t.owner, t.operator);
        return (t.used + amount > t.amount ? Candidate.Busy : Candidate.Free, t.owner, t.operator);
    }

    /// @inheritdoc ITicketBook
    function ticketOf(uint32 ticket) external view returns (Ticket memory) {
        if (ticket >= _tickets.length) revert TicketGone(ticket);
        return _tickets[ticket];
    }

    /// @inheritdoc ITicketBook
    function ticketCount() external view returns (uint32) {
        return uint32(_tickets.length);
    }

    /// The place that was left last, or a new one.
    function _place() private returns (uint32 ticket) {
        uint256 left = _places.length;
        if (left > 0) {
            ticket = _places[left - 1];
            _places.pop();
        } else {
            ticket = uint32(_tickets.length);
            _tickets.push();
        }
    }

    function _lockId(uint32 ticket) private pure returns (bytes32) {
        return keccak256(abi.encode("ticket", ticket));
    }
}
