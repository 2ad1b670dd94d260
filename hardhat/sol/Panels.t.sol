// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IAuditCourt, Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IBeacon} from "../contracts/interfaces/IBeacon.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {TermsLib} from "../contracts/libraries/TermsLib.sol";
import {
    Case,
    CasePhase,
    ClaimOpening,
    COURT_FUND,
    Finding,
    Outcome,
    Seat,
    Terms,
    Ticket,
    TraceRow
} from "../contracts/types/Types.sol";

/// Seats: drawn, committed, revealed, silent: INV-CASE-1 to -3.
contract PanelsTest is World {
    uint256 private constant FEE = (TOKEN * 11) / 10;
    uint256 private constant SEAT = 40 * TOKEN;

    uint32 private round;
    bytes32 private caseId;

    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 3);
        round = drawnRound();
        caseId = convene(round, 0);
    }

    function seat(uint256 i) private view returns (Seat memory) {
        return seatsOf(caseId)[i];
    }

    function operator(uint256 i) private view returns (address) {
        return seat(i).operator;
    }

    function expect(CasePhase phase) private view {
        eq(uint8(caseOf(caseId).phase), uint8(phase), "phase");
    }

    function refusedReveal(uint16 i, Reveal memory r, bytes4 error) private {
        refused(operator(i), address(court), abi.encodeCall(court.reveal, (caseId, i, r)), error);
    }

    // ---------------------------------------------------------------- seating

    function test_a_seat_goes_to_a_stranger_and_occupies_forty_rewards_of_its_ticket() public view {
        Seat memory s = seat(0);
        yes(s.owner != actors[0].owner, "INV-CASE-1");
        Ticket memory t = tickets.ticketOf(s.ticket);
        eq(t.owner, s.owner, "its owner's ticket");
        eq(t.used, SEAT, "INV-CASE-3");
        expect(CasePhase.Committing);
    }

    function test_only_sampled_shards_are_convened_and_once() public {
        bytes memory error = abi.encodeWithSelector(IPanels.CaseExists.selector, caseId);
        refused(POSTER, address(court), abi.encodeCall(court.convene, (jobId, round, one(0))), error);
        error = abi.encodeWithSelector(IAuditCourt.NotSampled.selector, jobId, round, 6);
        refused(POSTER, address(court), abi.encodeCall(court.convene, (jobId, round, one(6))), error);
        error = abi.encodeWithSelector(IAuditCourt.NotSampled.selector, jobId, round, 300);
        refused(POSTER, address(court), abi.encodeCall(court.convene, (jobId, round, one(300))), error);
        error = abi.encodeWithSelector(IAuditCourt.NotSampled.selector, jobId, round + 1, 0);
        refused(POSTER, address(court), abi.encodeCall(court.convene, (jobId, round + 1, one(0))), error);
    }

    function test_seats_go_to_owners_in_proportion_to_their_tickets() public {
        // as many tickets again for owner 6: two of seven parts that may judge shard 1
        enroll(actors[6], TICKETS);
        post(terms(), 1);
        uint32 other = drawnRound();
        uint256 times;
        bytes32 seed = rounds.drawOf(jobId, other).seed;
        uint256 drawn;
        for (uint256 i; i < 1_400; ++i) {
            uint256 ticket =
                uint256(keccak256(abi.encode(seed, bytes32(i), uint16(0), uint8(0), uint16(0)))) % (8 * TICKETS);
            if (tickets.ticketOf(uint32(ticket)).owner == actors[1].owner) continue;
            ++drawn;
            if (tickets.ticketOf(uint32(ticket)).owner == actors[6].owner) ++times;
        }
        // expected 2/7, five standard deviations wide
        yes(times * 7 > drawn * 2 - (drawn * 2) / 5 && times * 7 < drawn * 2 + (drawn * 2) / 5, "a fair draw");
    }

    // ---------------------------------------------------------------- commit

    function test_only_the_seat_commits_once_and_before_the_phase_ends() public {
        bytes memory data = abi.encodeCall(court.commitAudit, (caseId, 0, bytes32("root")));
        bytes memory error = abi.encodeWithSelector(IPanels.NotTheSeat.selector, POSTER, operator(0));
        refused(POSTER, address(court), data, error);
        data = abi.encodeCall(court.commitAudit, (caseId, 1, bytes32("root")));
        error = abi.encodeWithSelector(IPanels.NotTheSeat.selector, POSTER, address(0));
        refused(POSTER, address(court), data, error);
        data = abi.encodeCall(court.commitAudit, (caseId, 0, bytes32(0)));
        refused(operator(0), address(court), data, abi.encodeWithSelector(IPanels.ZeroRoot.selector));
        uint256 ends = caseOf(caseId).phaseEnds;
        passTo(ends);
        commitAudit(caseId, 0);
        expect(CasePhase.Revealing);
        data = abi.encodeCall(court.commitAudit, (caseId, 0, bytes32("root")));
        refused(operator(0), address(court), data, IPanels.WrongPhase.selector);
    }

    function test_after_its_last_second_a_silent_seat_pays_a_fee_and_another_owner_is_drawn() public {
        Seat memory silent = seat(0);
        uint256 ends = caseOf(caseId).phaseEnds;
        passTo(ends);
        bytes memory data = abi.encodeCall(court.advance, (caseId));
        bytes memory error = abi.encodeWithSelector(IPanels.PhaseRunning.selector, ends, ends);
        refused(POSTER, address(court), data, error);
        pass(1);
        error = abi.encodeWithSelector(IPanels.PhaseOver.selector, ends + 1, ends);
        data = abi.encodeCall(court.commitAudit, (caseId, 0, bytes32("root")));
        refused(silent.operator, address(court), data, error);
        court.advance(caseId);
        Ticket memory t = tickets.ticketOf(silent.ticket);
        eq(t.amount, TICKET - FEE, "one fee");
        eq(t.used, 0, "INV-CASE-3");
        eq(vault.balanceOf(silent.owner), STAKE - FEE, "slashed");
        eq(ledger.potOf(caseId), FEE, "for the seats of the case");
        expect(CasePhase.Seating);
        seatAll(caseId);
        yes(seat(0).owner != silent.owner, "somebody else");
        eq(seat(0).draws, 2, "the first redraw");
        expect(CasePhase.Committing);
        judge(caseId, say(Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "judged");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        checkConservation();
    }

    function test_a_seat_that_commits_and_never_reveals_pays_too() public {
        commitAudit(caseId, 0);
        Seat memory silent = seat(0);
        passTo(caseOf(caseId).phaseEnds + 1);
        court.advance(caseId);
        eq(tickets.ticketOf(silent.ticket).amount, TICKET - FEE, "one fee");
        expect(CasePhase.Seating);
        eq(seat(0).root, 0, "its root is forgotten");
    }

    function test_three_silent_seats_leave_a_first_level_unsampled_and_paid() public {
        for (uint256 i; i < 3; ++i) {
            seatAll(caseId);
            expect(CasePhase.Committing);
            passTo(caseOf(caseId).phaseEnds + 1);
            court.advance(caseId);
        }
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "as if not drawn");
        eq(ledger.potOf(COURT_FUND), 3 * FEE, "what the silent ones paid");
        eq(ticketsUsed(), 0, "no lock is left");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        eq(credit(0), TOKEN, "paid");
        checkConservation();
    }

    function test_an_abstention_costs_nothing_and_is_drawn_again() public {
        commitAudit(caseId, 0);
        Seat memory first = seat(0);
        reveal(caseId, 0, Finding.Abstain);
        expect(CasePhase.Seating);
        eq(tickets.ticketOf(first.ticket).amount, TICKET, "no penalty");
        eq(tickets.ticketOf(first.ticket).used, 0, "free again");
        seatAll(caseId);
        yes(seat(0).owner != first.owner, "somebody else");
        judge(caseId, say(Finding.Abstain));
        judge(caseId, say(Finding.Abstain));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "after two redraws");
    }

    // ---------------------------------------------------------------- reveal

    function test_the_steps_to_open_are_unknown_when_the_seat_commits() public {
        bytes memory ask = abi.encodeCall(court.stepsOf, (caseId));
        refused(POSTER, address(court), ask, IPanels.WrongPhase.selector);
        commitAudit(caseId, 0);
        refused(POSTER, address(court), ask, IBeacon.SeedNotReady.selector);
        Reveal memory r;
        r.finding = Finding.Reject;
        refusedReveal(0, r, IBeacon.SeedNotReady.selector);
        mine(2);
        court.stepsOf(caseId);
    }

    function test_a_copied_root_opens_for_nobody_else() public {
        Terms memory t = terms();
        bytes32 foreign = auditRoot(caseId, 0, 0);
        judge(caseId, say(Finding.Reject)); // to level two: seats 1 and 2
        seatAll(caseId);
        address thief = operator(1);
        vm.prank(thief);
        court.commitAudit(caseId, 1, foreign);
        commitAudit(caseId, 2);
        mine(2);
        refusedReveal(1, revealOf(caseId, 1, Finding.Match, 0), IAuditCourt.WrongRow.selector);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        refusedReveal(1, r, IAuditCourt.WrongRow.selector);
        eq(t.innerSteps, 3, "all rows were opened");
    }

    function test_an_all_fine_without_the_work_is_refused() public {
        commitAudit(caseId, 0);
        mine(2);
        refusedReveal(0, revealOf(caseId, 0, Finding.None, 0), IPanels.NoFinding.selector);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        r.theirs = r.own;
        refusedReveal(0, r, IAuditCourt.WrongRow.selector);
        r = revealOf(caseId, 0, Finding.Match, 0);
        r.claim.traceRoot = seat(0).root;
        refusedReveal(0, r, IRoundBook.WrongOpening.selector);
        r = revealOf(caseId, 0, Finding.Match, 0);
        r.own[0].row.loss += 1;
        refusedReveal(0, r, IAuditCourt.WrongRow.selector);
        r = revealOf(caseId, 0, Finding.Match, 0);
        (r.own[0], r.own[1]) = (r.own[1], r.own[0]);
        refusedReveal(0, r, IAuditCourt.WrongRow.selector);
        r = revealOf(caseId, 0, Finding.Match, 0);
        r.own[0].proof = new bytes32[](3);
        refusedReveal(0, r, IAuditCourt.WrongRow.selector);
        r = revealOf(caseId, 0, Finding.Reject, 0);
        r.own = revealOf(caseId, 0, Finding.Abstain, 0).own;
        refusedReveal(0, r, IAuditCourt.WrongRowCount.selector);
        r = revealOf(caseId, 0, Finding.Match, 0);
        r.finding = Finding.Fraud; // shows rows of the operator, which only a Match does
        refusedReveal(0, r, IAuditCourt.WrongRowCount.selector);
    }

    function test_a_match_whose_losses_are_out_of_tolerance_is_refused() public {
        // a loss of 2 to 3 may differ by 5e-6 of it: 10,000 to 15,000 units of 1e-9
        bytes32 root = auditRoot(caseId, 0, 20_000);
        address auditor = operator(0);
        vm.prank(auditor);
        court.commitAudit(caseId, 0, root);
        mine(2);
        refusedReveal(0, revealOf(caseId, 0, Finding.Match, 20_000), IAuditCourt.LossOutOfTolerance.selector);
        Reveal memory r = revealOf(caseId, 0, Finding.Fraud, 20_000);
        vm.prank(auditor);
        court.reveal(caseId, 0, r);
        eq(uint8(seat(0).finding), uint8(Finding.Fraud), "which it may call a fraud");
    }

    function test_a_match_within_the_tolerance_is_taken() public {
        bytes32 root = auditRoot(caseId, 0, 9_000);
        address auditor = operator(0);
        vm.prank(auditor);
        court.commitAudit(caseId, 0, root);
        mine(2);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 9_000);
        vm.prank(auditor);
        court.reveal(caseId, 0, r);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "judged");
        Case memory c = caseOf(caseId);
        refused(
            auditor,
            address(court),
            abi.encodeCall(court.reveal, (caseId, 0, r)),
            abi.encodeWithSelector(IPanels.WrongPhase.selector, c.phase, CasePhase.Revealing)
        );
        refused(POSTER, address(court), abi.encodeCall(court.advance, (caseId)), IPanels.NoSuchCase.selector);
    }

    function test_a_reveal_is_taken_until_the_last_second() public {
        commitAudit(caseId, 0);
        uint256 ends = caseOf(caseId).phaseEnds;
        passTo(ends);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        pass(1);
        bytes memory error = abi.encodeWithSelector(IPanels.PhaseOver.selector, ends + 1, ends);
        refused(operator(0), address(court), abi.encodeCall(court.reveal, (caseId, 0, r)), error);
    }

    function test_a_beacon_that_was_missed_is_pinned_again_and_the_reveal_goes_on() public {
        commitAudit(caseId, 0);
        mine(259);
        Reveal memory r;
        r.finding = Finding.Reject;
        refusedReveal(0, r, IBeacon.SeedExpired.selector);
        court.advance(caseId);
        mine(2);
        court.advance(caseId); // stores the seed: it can no longer be missed
        mine(300);
        reveal(caseId, 0, Finding.Match);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "judged");
    }

    function test_a_draw_whose_seed_was_missed_is_pinned_again_and_the_seats_are_drawn() public {
        judge(caseId, say(Finding.Reject)); // two more seats wait for a seed
        uint256 missed = caseOf(caseId).beaconTicket;
        mine(259);
        court.advance(caseId);
        expect(CasePhase.Seating);
        eq(caseOf(caseId).beaconTicket, height() + 1, "the next block instead");
        yes(caseOf(caseId).beaconTicket != missed && caseOf(caseId).seed == 0, "another one, unknown");
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "judged");
    }

    // ---------------------------------------------------------------- demand

    function rows() private view returns (ClaimOpening memory, TraceRow[] memory) {
        return (openingOf(round, 0), rowsOf(round, 0, 0));
    }

    function test_a_demand_is_made_once_by_a_committed_seat_and_gives_time() public {
        refused(operator(0), address(court), abi.encodeCall(court.demandTrace, (caseId)), IPanels.WrongPhase.selector);
        commitAudit(caseId, 0);
        refused(POSTER, address(court), abi.encodeCall(court.demandTrace, (caseId)), IPanels.NotTheSeat.selector);
        address auditor = operator(0);
        pass(60);
        vm.prank(auditor);
        court.demandTrace(caseId);
        eq(caseOf(caseId).phaseEnds, clock() + 20 + 60, "the answer first, then time to use it");
        bytes memory error = abi.encodeWithSelector(IAuditCourt.AlreadyDemanded.selector, caseId);
        refused(auditor, address(court), abi.encodeCall(court.demandTrace, (caseId)), error);
    }

    function test_a_demand_is_answered_with_the_whole_committed_trace() public {
        (ClaimOpening memory o, TraceRow[] memory list) = rows();
        bytes memory data = abi.encodeCall(court.openTrace, (caseId, o, list));
        refused(POSTER, address(court), data, abi.encodeWithSelector(IAuditCourt.NotADemand.selector, caseId));
        commitAudit(caseId, 0);
        address auditor = operator(0);
        vm.prank(auditor);
        court.demandTrace(caseId);
        bytes memory error = abi.encodeWithSelector(IAuditCourt.WrongRowCount.selector, 2, 3);
        TraceRow[] memory few = new TraceRow[](2);
        refused(POSTER, address(court), abi.encodeCall(court.openTrace, (caseId, o, few)), error);
        (, list) = rows();
        list[1].loss += 1;
        refused(
            POSTER,
            address(court),
            abi.encodeCall(court.openTrace, (caseId, o, list)),
            IAuditCourt.WrongRoot.selector
        );
        o.stateDigest = 0;
        (, list) = rows();
        refused(
            POSTER,
            address(court),
            abi.encodeCall(court.openTrace, (caseId, o, list)),
            IRoundBook.WrongOpening.selector
        );
        (o, list) = rows();
        pass(20);
        court.openTrace(caseId, o, list);
        yes(caseOf(caseId).opened, "in the last second");
        refused(POSTER, address(court), data, abi.encodeWithSelector(IAuditCourt.NotADemand.selector, caseId));
    }

    function test_a_demand_that_is_not_answered_is_on_record() public {
        commitAudit(caseId, 0);
        address auditor = operator(0);
        vm.prank(auditor);
        court.demandTrace(caseId);
        (ClaimOpening memory o, TraceRow[] memory list) = rows();
        pass(21);
        bytes memory data = abi.encodeCall(court.openTrace, (caseId, o, list));
        refused(POSTER, address(court), data, abi.encodeWithSelector(IPanels.PhaseOver.selector, clock(), clock() - 1));
        pass(61);
        court.advance(caseId);
        yes(caseOf(caseId).withheld, "withheld");
    }

    function test_the_longest_trace_fits_one_transaction() public {
        Terms memory t = terms();
        t.innerSteps = TermsLib.MOST_INNER_STEPS;
        post(t, 1);
        // one shard is enough, so that the test need not hash six such traces
        uint32 other = rounds.open(jobId);
        claim(0, other, 0);
        (ClaimOpening memory o, bytes32 base) = (openingOf(other, 0), baseOf(other));
        vm.prank(actors[0].operator);
        rounds.commit(jobId, other, 0, base, o);
        for (uint16 s = 1; s < 3; ++s) {
            claim(s, other, s);
            vm.prank(actors[s].operator);
            rounds.commit(jobId, other, s, base, ClaimOpening("payload", "root", "state"));
        }
        pass(121);
        rounds.advance(jobId, other);
        close(other, 7);
        draw(other);
        bytes32 long = convene(other, 0);
        address auditor = seatsOf(long)[0].operator;
        vm.startPrank(auditor);
        court.commitAudit(long, 0, bytes32("root"));
        court.demandTrace(long);
        vm.stopPrank();
        bytes memory data = abi.encodeCall(court.openTrace, (long, o, rowsOf(other, 0, 0)));
        uint256 gas = gasleft();
        (bool done, ) = address(court).call(data);
        gas -= gasleft();
        for (uint256 i; i < data.length; ++i) gas += data[i] == 0 ? 4 : 16;
        yes(done, "opened");
        yes(gas < 8_000_000, "half of what EIP-7825 allows a transaction");
    }

    // ---------------------------------------------------------------- waiting for tickets

    /// Five seats in all for six cases: one finds no free ticket.
    function crowded() private {
        deploy();
        delete actors;
        minted = 0;
        for (uint256 i; i < 5; ++i) enroll(addActor(), 1);
        shrink(enroll(addActor(), 1));
        post(terms(), 1);
        round = drawnRound();
        uint256 waiting;
        for (uint16 s; s < 6; ++s) {
            bytes32 id = convene(round, s);
            if (caseOf(id).phase != CasePhase.Seating) continue;
            (caseId, waiting) = (id, waiting + 1);
        }
        yes(waiting > 0, "a case waits");
        exhaust();
    }

    /// Call on as long as that changes something.
    function exhaust() private {
        bytes memory data = abi.encodeCall(court.advance, (caseId));
        for (uint256 i; i < 10 && caseOf(caseId).phase == CasePhase.Seating; ++i) {
            (bool done, ) = address(court).call(data);
            bytes memory error = abi.encodeWithSelector(
                IPanels.NoFreeTicket.selector,
                caseId,
                caseOf(caseId).phaseEnds
            );
            if (!done) return refused(POSTER, address(court), data, error);
        }
    }

    /// Found by attack: a case convened while every ticket sat elsewhere ended unsampled at once, and so paid.
    function test_a_seat_waits_for_a_busy_ticket_instead_of_staying_vacant() public {
        crowded();
        expect(CasePhase.Seating);
        for (uint16 s; s < 6; ++s) {
            bytes32 id = court.caseIdOf(jobId, round, s);
            if (caseOf(id).phase == CasePhase.Committing) judge(id, say(Finding.Match));
        }
        exhaust();
        expect(CasePhase.Committing);
        judge(caseId, say(Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "audited after all");
    }

    function test_a_seat_waits_no_longer_than_another_case_may_take() public {
        crowded();
        passTo(caseOf(caseId).phaseEnds);
        exhaust();
        expect(CasePhase.Seating);
        pass(1);
        exhaust();
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "no case waits for ever");
    }
}
