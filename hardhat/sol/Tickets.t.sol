// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {ITicketBook} from "../contracts/interfaces/ITicketBook.sol";
import {CasePhase, Seat, Ticket} from "../contracts/types/Types.sol";

/// Enrolling and leaving: INV-TICKET-1 to -3.
contract TicketsTest is World {
    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 3);
    }

    function refusedCall(address who, bytes memory data, bytes memory error) private {
        refused(who, address(tickets), data, error);
    }

    function release(uint32 ticket) private {
        tickets.release(ticket);
    }

    function test_a_ticket_locks_stake_of_the_operators_owner() public {
        Actor memory a = actors[0];
        eq(vault.lockedOf(a.owner), ENROLLED, "INV-TICKET-1");
        bytes memory error = abi.encodeWithSelector(ITicketBook.NotTheOwner.selector, POSTER, a.owner);
        refusedCall(POSTER, abi.encodeCall(tickets.enroll, (a.operator, 1)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, POSTER);
        refusedCall(POSTER, abi.encodeCall(tickets.enroll, (POSTER, 1)), error);
    }

    function test_up_to_64_tickets_are_enrolled_at_once_and_never_none() public {
        Actor memory a = actors[0];
        bytes memory error = abi.encodeWithSelector(ITicketBook.TicketsOutOfRange.selector, 0, 1, 64);
        refusedCall(a.owner, abi.encodeCall(tickets.enroll, (a.operator, 0)), error);
        error = abi.encodeWithSelector(ITicketBook.TicketsOutOfRange.selector, 65, 1, 64);
        refusedCall(a.owner, abi.encodeCall(tickets.enroll, (a.operator, 65)), error);
        vm.prank(a.owner);
        uint256 gas = gasleft();
        uint32[] memory numbers = tickets.enroll(a.operator, 64);
        yes(gas - gasleft() < 8_000_000, "half of what EIP-7825 allows a transaction");
        eq(numbers.length, 64, "as many");
        for (uint32 i; i < 64; ++i) {
            eq(numbers[i], 7 * TICKETS + i, "one after the other");
            Ticket memory t = tickets.ticketOf(numbers[i]);
            yes(t.owner == a.owner && t.operator == a.operator && t.amount == TICKET, "INV-TICKET-3");
        }
        eq(vault.lockedOf(a.owner), ENROLLED + 64 * TICKET, "INV-TICKET-1");
    }

    /// Found by attack: a ticket of any size was one entry, so that the same stake in many small ones was drawn more
    /// often than in one.
    function testFuzz_a_stake_divided_has_no_more_entries(uint256 lot) public {
        Actor memory whole = addActor();
        Actor memory parted = addActor();
        uint256 count = 1 + (lot % 60);
        uint256 rest = 1 + ((lot >> 8) % (TICKET - 1)); // no entry
        vm.prank(whole.owner);
        vault.withdraw(STAKE - count * TICKET - rest);
        enroll(whole, count);
        vm.prank(parted.owner);
        vault.withdraw(STAKE - count * TICKET - rest);
        Actor memory second = parted;
        second.operator = vm.addr(0xFACE);
        register(second, second.operator, 0xFACE);
        for (uint256 left = count; left > 0; lot = uint256(keccak256(abi.encode(lot)))) {
            uint256 part = 1 + (lot % left);
            enroll((lot >> 128) % 2 == 0 ? parted : second, part);
            left -= part;
        }
        bytes4 error = IStakeVault.StakeTooSmall.selector;
        refused(whole.owner, address(tickets), abi.encodeCall(tickets.enroll, (whole.operator, 1)), error);
        refused(parted.owner, address(tickets), abi.encodeCall(tickets.enroll, (second.operator, 1)), error);
        uint32 length = tickets.ticketCount();
        uint256[2] memory entries;
        for (uint32 i; i < length; ++i) {
            Ticket memory t = tickets.ticketOf(i);
            if (t.owner == whole.owner) ++entries[0];
            if (t.owner == parted.owner) ++entries[1];
        }
        eq(entries[0], count, "INV-TICKET-3");
        eq(entries[1], count, "INV-TICKET-3");
    }

    function test_live_owners_are_counted_and_not_their_tickets() public {
        eq(tickets.liveOwners(), 7, "seven");
        uint32 last = enroll(actors[0], 2);
        eq(tickets.liveOwners(), 7, "still seven");
        vm.startPrank(actors[0].owner);
        for (uint32 i; i < TICKETS; ++i) tickets.exit(i);
        tickets.exit(last - 1);
        eq(tickets.liveOwners(), 7, "one ticket is left");
        tickets.exit(last);
        vm.stopPrank();
        eq(tickets.liveOwners(), 6, "INV-TICKET-2");
    }

    function test_only_its_owner_takes_a_ticket_back_once_and_after_the_exit_time() public {
        address owner = actors[0].owner;
        bytes memory error = abi.encodeWithSelector(ITicketBook.NotTheOwner.selector, POSTER, owner);
        refusedCall(POSTER, abi.encodeCall(tickets.exit, (0)), error);
        refusedCall(
            owner,
            abi.encodeCall(tickets.exit, (7 * TICKETS)),
            abi.encodeWithSelector(ITicketBook.TicketGone.selector, 7 * TICKETS)
        );
        error = abi.encodeWithSelector(ITicketBook.TicketInUse.selector, 0, 0, 0);
        refusedCall(owner, abi.encodeCall(tickets.release, (0)), error);
        vm.prank(owner);
        tickets.exit(0);
        uint256 exitAt = clock() + 600;
        refusedCall(
            owner,
            abi.encodeCall(tickets.exit, (0)),
            abi.encodeWithSelector(ITicketBook.TicketGone.selector, 0)
        );
        passTo(exitAt);
        error = abi.encodeWithSelector(ITicketBook.TicketInUse.selector, 0, 0, exitAt);
        refusedCall(POSTER, abi.encodeCall(tickets.release, (0)), error);
        pass(1);
        vm.prank(POSTER);
        tickets.release(0);
        eq(vault.lockedOf(owner), ENROLLED - TICKET, "free");
        refusedCall(
            POSTER,
            abi.encodeCall(tickets.release, (0)),
            abi.encodeWithSelector(ITicketBook.TicketGone.selector, 0)
        );
    }

    function test_a_ticket_behind_an_open_seat_cannot_leave() public {
        uint32 round = drawnRound();
        bytes32 caseId = convene(round, 0);
        Seat memory s = seatsOf(caseId)[0];
        vm.prank(s.owner);
        tickets.exit(s.ticket);
        pass(601);
        bytes memory data = abi.encodeCall(tickets.release, (s.ticket));
        refused(POSTER, address(tickets), data, ITicketBook.TicketInUse.selector);
        court.advance(caseId);
        release(s.ticket);
        eq((vault.lockedOf(s.owner) + TICKET - ENROLLED) % (25 * TOKEN), 0, "nothing of it but bonds is locked");
    }

    function test_what_leaves_before_a_round_closes_is_not_drawn_for_it() public {
        exitAll(actors[6]);
        pass(601); // exited, not released
        uint32 round = drawnRound();
        for (uint16 s; s < 6; ++s) {
            bytes32 caseId = convene(round, s);
            yes(seatsOf(caseId)[0].owner != actors[6].owner, "gone");
        }
    }

    /// Found by attack: a list that only grows could be thinned out with the same stake again and again, until no draw
    /// finds a live ticket and every claim is paid unaudited.
    function test_a_released_ticket_leaves_its_place_to_the_next() public {
        Actor memory a = addActor();
        for (uint256 i; i < 5; ++i) {
            uint32 ticket = enroll(a, 1);
            eq(ticket, 7 * TICKETS, "the same place");
            vm.prank(a.owner);
            tickets.exit(ticket);
            pass(601);
            release(ticket);
        }
        eq(tickets.ticketCount(), 7 * TICKETS + 1, "the list");
        Ticket memory t = tickets.ticketOf(enroll(a, 1));
        yes(!t.released && t.exitAt == 0 && t.used == 0 && t.amount == TICKET, "a fresh ticket");
    }

    function test_whoever_takes_a_place_after_a_close_is_not_drawn_for_it() public {
        // all but two owners leave and their places are taken after the close
        uint32 round = fullRound();
        for (uint256 i; i < 5; ++i) exitAll(actors[i]);
        pass(58);
        close(round, 63);
        draw(round);
        // exitAt lies after the close: still drawn for it, until released
        pass(600);
        for (uint32 i; i < 5 * TICKETS; ++i) tickets.release(i);
        Actor memory late = addActor();
        enroll(late, 5 * TICKETS);
        eq(tickets.ticketCount(), 7 * TICKETS, "old places");
        for (uint16 s; s < 6; ++s) {
            bytes32 caseId = convene(round, s);
            for (uint256 i; i < 10 && caseOf(caseId).phase == CasePhase.Seating; ++i) court.advance(caseId);
            Seat memory seat = seatsOf(caseId)[0];
            yes(seat.owner == actors[5].owner || seat.owner == actors[6].owner, "only who was there");
        }
    }

    function test_only_the_courts_put_a_ticket_behind_seats_and_no_more_than_it_locks() public {
        bytes memory error = abi.encodeWithSelector(ITicketBook.NotACourt.selector, address(rounds));
        refusedCall(address(rounds), abi.encodeCall(tickets.occupy, (0, 1)), error);
        refusedCall(address(rounds), abi.encodeCall(tickets.vacate, (0, 1)), error);
        refusedCall(address(rounds), abi.encodeCall(tickets.slash, (0, 1, bytes32("pot"))), error);
        vm.prank(address(court));
        tickets.occupy(0, TICKET - 1);
        vm.prank(address(checkpoints));
        tickets.occupy(0, 1);
        error = abi.encodeWithSelector(ITicketBook.TicketInUse.selector, 0, TICKET, 0);
        refusedCall(address(court), abi.encodeCall(tickets.occupy, (0, 1)), error);
        vm.prank(address(court));
        tickets.vacate(0, TICKET - 1);
        vm.prank(address(checkpoints));
        (bool ok, ) = address(tickets).call(abi.encodeCall(tickets.slash, (0, 2, bytes32("pot"))));
        yes(!ok, "what lies behind no seat is not slashed");
        vm.prank(address(checkpoints));
        tickets.slash(0, 1, "pot");
        Ticket memory t = tickets.ticketOf(0);
        yes(t.used == 0 && t.amount == TICKET - 1, "INV-TICKET-1");
        eq(vault.lockedOf(actors[0].owner), ENROLLED - 1, "its lock");
        eq(ledger.potOf("pot"), 1, "where it went");
    }

    function test_a_ticket_that_is_smaller_than_a_seat_is_never_drawn() public {
        shrink(enroll(addActor(), 1));
        uint32 round = drawnRound();
        for (uint16 s; s < 6; ++s) yes(seatsOf(convene(round, s))[0].ticket != 7 * TICKETS, "too small");
    }

    function test_a_ticket_that_was_never_written_is_gone() public {
        uint32 next = tickets.ticketCount();
        bytes memory error = abi.encodeWithSelector(ITicketBook.TicketGone.selector, next);
        refusedCall(POSTER, abi.encodeCall(tickets.ticketOf, (next)), error);
        refusedCall(POSTER, abi.encodeCall(tickets.exit, (next)), error);
        refusedCall(POSTER, abi.encodeCall(tickets.release, (next)), error);
    }
}
