// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {CasePhase, Finding, Outcome, Seat, Ticket} from "../contracts/types/Types.sol";

/// Enrolling and leaving: INV-TICKET-1 and -2.
contract TicketsTest is World {
    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 3);
    }

    function refusedCall(address who, bytes memory data, bytes memory error) private {
        refused(who, address(court), data, error);
    }

    function release(uint32 ticket) private {
        court.release(ticket);
    }

    function test_a_ticket_locks_stake_of_the_operators_owner() public {
        Actor memory a = actors[0];
        eq(vault.lockedOf(a.owner), TICKET, "INV-TICKET-1");
        bytes memory error = abi.encodeWithSelector(IAuditCourt.NotTheOwner.selector, POSTER, a.owner);
        refusedCall(POSTER, abi.encodeCall(court.enroll, (a.operator, TOKEN)), error);
        error = abi.encodeWithSelector(IAuditCourt.TicketTooSmall.selector, TOKEN - 1, TOKEN);
        refusedCall(a.owner, abi.encodeCall(court.enroll, (a.operator, TOKEN - 1)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, POSTER);
        refusedCall(POSTER, abi.encodeCall(court.enroll, (POSTER, TOKEN)), error);
    }

    function test_live_owners_are_counted_and_not_their_tickets() public {
        eq(court.liveOwners(), 7, "seven");
        uint32 second = enroll(actors[0], TOKEN);
        eq(court.liveOwners(), 7, "still seven");
        vm.startPrank(actors[0].owner);
        court.exit(0);
        eq(court.liveOwners(), 7, "one ticket is left");
        court.exit(second);
        vm.stopPrank();
        eq(court.liveOwners(), 6, "INV-TICKET-2");
    }

    function test_only_its_owner_takes_a_ticket_back_once_and_after_the_exit_time() public {
        address owner = actors[0].owner;
        bytes memory error = abi.encodeWithSelector(IAuditCourt.NotTheOwner.selector, POSTER, owner);
        refusedCall(POSTER, abi.encodeCall(court.exit, (0)), error);
        refusedCall(
            owner,
            abi.encodeCall(court.exit, (99)),
            abi.encodeWithSelector(IAuditCourt.TicketGone.selector, 99)
        );
        error = abi.encodeWithSelector(IAuditCourt.TicketInUse.selector, 0, 0, 0);
        refusedCall(owner, abi.encodeCall(court.release, (0)), error);
        vm.prank(owner);
        court.exit(0);
        uint256 exitAt = clock() + 600;
        refusedCall(owner, abi.encodeCall(court.exit, (0)), abi.encodeWithSelector(IAuditCourt.TicketGone.selector, 0));
        passTo(exitAt);
        error = abi.encodeWithSelector(IAuditCourt.TicketInUse.selector, 0, 0, exitAt);
        refusedCall(POSTER, abi.encodeCall(court.release, (0)), error);
        pass(1);
        vm.prank(POSTER);
        court.release(0);
        eq(vault.lockedOf(owner), 0, "free");
        refusedCall(
            POSTER,
            abi.encodeCall(court.release, (0)),
            abi.encodeWithSelector(IAuditCourt.TicketGone.selector, 0)
        );
    }

    function test_a_ticket_behind_an_open_seat_cannot_leave() public {
        uint32 round = drawnRound();
        bytes32 caseId = convene(round, 0);
        Seat memory s = seatsOf(caseId)[0];
        vm.prank(s.owner);
        court.exit(s.ticket);
        pass(601);
        bytes memory data = abi.encodeCall(court.release, (s.ticket));
        refused(POSTER, address(court), data, IAuditCourt.TicketInUse.selector);
        court.advance(caseId);
        release(s.ticket);
        eq(vault.lockedOf(s.owner) % (25 * TOKEN), 0, "nothing but bonds is locked");
    }

    function test_what_leaves_before_a_round_closes_is_not_drawn_for_it() public {
        vm.prank(actors[6].owner);
        court.exit(6);
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
            uint32 ticket = enroll(a, TOKEN);
            eq(ticket, 7, "the same place");
            vm.prank(a.owner);
            court.exit(ticket);
            pass(601);
            release(ticket);
        }
        eq(court.ticketCount(), 8, "the list");
        Ticket memory t = court.ticketOf(enroll(a, 2 * TOKEN));
        yes(!t.released && t.exitAt == 0 && t.used == 0 && t.amount == 2 * TOKEN, "a fresh ticket");
    }

    function test_whoever_takes_a_place_after_a_close_is_not_drawn_for_it() public {
        // all but two tickets leave and their places are taken after the close
        uint32 round = fullRound();
        for (uint32 i; i < 5; ++i) {
            vm.prank(actors[i].owner);
            court.exit(i);
        }
        pass(58);
        close(round, 63);
        draw(round);
        // exitAt lies after the close: still drawn for it, until released
        pass(600);
        for (uint32 i; i < 5; ++i) court.release(i);
        Actor memory late = addActor();
        for (uint32 i; i < 5; ++i) enroll(late, TICKET);
        eq(court.ticketCount(), 7, "old places");
        for (uint16 s; s < 6; ++s) {
            bytes32 caseId = convene(round, s);
            for (uint256 i; i < 10 && caseOf(caseId).phase == CasePhase.Seating; ++i) court.advance(caseId);
            Seat memory seat = seatsOf(caseId)[0];
            yes(seat.owner == actors[5].owner || seat.owner == actors[6].owner, "only who was there");
        }
    }

    function test_a_ticket_that_is_smaller_than_a_seat_is_never_drawn() public {
        enroll(addActor(), 39 * TOKEN);
        uint32 round = drawnRound();
        for (uint16 s; s < 6; ++s) yes(seatsOf(convene(round, s))[0].ticket != 7, "too small");
    }
}
