// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {Doubts} from "./Doubts.sol";
import {COURT_FUND, CourtTerms, Draw, Outcome, RoundStatus, Seat, Terms} from "../contracts/types/Types.sol";

interface Mocks {
    function mockCall(address callee, bytes calldata data, bytes calldata answer) external;
}

/// Shares and reserves where they reach their bounds.
contract AmountsTest is Doubts {
    function known(Terms memory t) private {
        deploy();
        addActors(14);
        post(terms(), 1);
        graduate();
        post(t, 3);
    }

    /// Five attesters are convicted by five seats and a challenger; what was slashed waits in the case's pot.
    function convicted(Terms memory t) private returns (bytes32 caseId, uint32 round) {
        known(t);
        round = closedRound(63, LIE);
        caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expectStep(caseId, Outcome.Fraud);
        finish(round);
    }

    function test_a_provers_share_is_ten_fees_at_most_and_the_rest_is_burnt() public {
        Terms memory t = sampledTerms();
        t.bondPerShard = uint96(10 * BOND);
        (bytes32 caseId, uint32 round) = convicted(t);
        uint256 slashed = 5 * t.bondPerShard;
        eq(ledger.potOf(caseId), slashed / 2, "half of what was slashed");
        Money memory was = money(round);
        checkpoints.distribute(caseId);
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) eq(gained(was, seats[i].owner), 10 * FEE, "a seat");
        eq(gained(was, actors[DOUBTER].owner), 10 * FEE, "the challenger");
        eq(ledger.potOf(COURT_FUND) - was.fund, slashed / 5, "a fifth for the fund");
        eq(token.balanceOf(BURN) - was.burnt, slashed / 2 - slashed / 5 - 60 * FEE, "what is over");
        eq(ledger.potOf(caseId), 0, "INV-STEP-3");
        checkConservation();
    }

    function test_a_slash_too_small_to_share_pays_no_prover() public {
        Terms memory t = terms();
        t.rounds = 5;
        (t.rewardPerShard, t.auditFee, t.bondPerShard) = (1, 1, 2);
        (bytes32 caseId, uint32 round) = convicted(t);
        eq(ledger.potOf(caseId), 5, "a wei of each bond; its other one was burnt");
        Money memory was = money(round);
        checkpoints.distribute(caseId);
        for (uint256 i; i < actors.length; ++i) eq(credit(i), was.credits[i], "three wei are no wei for each of six");
        eq(ledger.potOf(COURT_FUND) - was.fund, 2, "a fifth of ten");
        eq(token.balanceOf(BURN) - was.burnt, 3, "what is over");
        eq(ledger.potOf(caseId), 0, "INV-STEP-3");
        checkConservation();
    }

    /// One slot for a tenth of six, one for probation: the first draw takes both, and rounding up a second time would
    /// take a third.
    function test_what_a_court_puts_back_is_not_sampled_beyond_the_reserve() public {
        Terms memory t = sampledTerms();
        (t.auditRateBps, t.probationSlots) = (1_000, 1);
        known(t);
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 6; ++s) {
            uint256 actor = s == 4 ? 6 : s; // the only one that never passed an audit
            claim(actor, round, s);
            commit(actor, round, s);
        }
        agree(round, 31, LIE);
        expect(round, RoundStatus.Closed);
        draw(round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        yes(sampled & 16 != 0 && sampled & 15 != 0, "the one on probation and one of the others");
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH, LIE)));
        expectStep(caseId, Outcome.Reject);
        Draw memory d = rounds.drawOf(jobId, round);
        yes(!d.drawn, "what came back is drawn for");
        eq(d.taken, 0, "the court found no slot for its seats");
        draw(round);
        d = rounds.drawOf(jobId, round);
        yes(d.drawn && d.sampledMap == sampled, "and there is no slot for it either");
        auditAll(round); // the owner of 5 may sit
        uint256 had = credit(5);
        finish(round);
        eq(credit(5) - had, TOKEN, "it is paid");
        checkConservation();
    }

    function test_nobody_takes_of_a_round_that_is_settled() public {
        known(sampledTerms());
        uint32 round = closedRound(63, TRUTH);
        finish(round);
        vm.prank(address(court));
        eq(rounds.takeReserve(jobId, round, 1), 0, "its reserve went back to the job");
        eq(rounds.drawOf(jobId, round).taken, 0, "nothing was noted");
    }

    /// Terms allow fees of ten rewards at most, and a seat locks forty; a court does not rely on it.
    function test_a_silent_seat_loses_no_more_than_it_locks() public {
        known(terms());
        uint32 round = drawnRound();
        bytes32 caseId = convene(round, 0);
        Seat memory seat = seatsOf(caseId)[0];
        CourtTerms memory t = market.courtTermsOf(jobId);
        t.fee = uint96(SEAT + 1);
        Mocks(address(vm)).mockCall(address(market), abi.encodeCall(market.courtTermsOf, (jobId)), abi.encode(t));
        pass(terms().windows.auditCommit + 1);
        court.advance(caseId);
        eq(STAKE - vault.balanceOf(seat.owner), SEAT, "its lock");
        eq(tickets.ticketOf(seat.ticket).amount, TICKET - SEAT, "out of its ticket");
        eq(ledger.potOf(caseId), SEAT, "for the case");
        eq(ticketsUsed(), 0, "and it locks nothing any more");
    }

    /// Beacons promise tickets of 80 bits; a court does not rely on it.
    function test_a_beacons_ticket_that_does_not_fit_is_refused_and_not_cut() public {
        known(sampledTerms());
        uint32 round = closedRound(63, LIE);
        uint256 ticket = (1 << 80) | (height() + 1);
        Mocks(address(vm)).mockCall(address(beacon), abi.encodeCall(beacon.pin, ()), abi.encode(ticket));
        bytes memory data = stepChallengeOf(round);
        bytes memory error = abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 80, ticket);
        refused(actors[DOUBTER].operator, address(checkpoints), data, error);
    }
}
