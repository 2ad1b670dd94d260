// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {ICheckpointCourt} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {
    Bond,
    CasePhase,
    ClaimStatus,
    COURT_FUND,
    Finding,
    Outcome,
    Preset,
    Seat,
    SeatState
} from "../contracts/types/Types.sol";

/// From three seats to the panel, and from the panel to a larger one: seven seats here, of which five decide.
contract AppealsTest is Doubts {
    uint32 private round;

    function preset() internal view override returns (Preset memory p) {
        p = super.preset();
        (p.appealPanel, p.appealNeeded) = (7, 5);
    }

    function setUp() public {
        settle14(3);
        post(terms(), 3); // everything is sampled
        round = drawnRound();
    }

    function appeal(uint256 actor, bytes32 caseId) private {
        vm.prank(actors[actor].operator);
        court.appeal(caseId);
    }

    function expectPhase(bytes32 caseId, CasePhase phase) private view {
        eq(uint8(caseOf(caseId).phase), uint8(phase), "phase");
    }

    /// One Reject, then a Reject and a third finding: unpaid, unless somebody appeals.
    function rejected(uint16 shard, Finding third) private returns (bytes32 caseId) {
        caseId = convene(round, shard);
        judge(caseId, say(Finding.Reject));
        judge(caseId, say(Finding.Reject, third));
        expectPhase(caseId, CasePhase.Appealable);
    }

    /// Four Frauds of five, and what the fifth seat says.
    function defrauded(uint16 shard, Finding fifth) private returns (bytes32 caseId) {
        caseId = convene(round, shard);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        judge(caseId, say(Finding.Fraud, fifth));
        expectPhase(caseId, CasePhase.Appealable);
        eq(uint8(caseOf(caseId).outcome), uint8(Outcome.Fraud), "fraud, as it looks");
    }

    // ---------------------------------------------------------------- silence

    /// A cheat's friend appeals, so that one honest seat more is needed, and two seats of the panel stay silent.
    function test_a_reject_stands_when_the_panel_that_was_called_is_silent() public {
        bytes32 caseId = rejected(0, Finding.Match);
        appeal(0, caseId);
        silence(court, caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "two of the three who spoke");
        eq(vault.balanceOf(actors[0].owner), STAKE - 7 * FEE, "the appeal is lost");
        checkConservation();
    }

    function test_where_too_few_agree_about_a_checkpoint_a_larger_panel_may() public {
        post(sampledTerms(), 2);
        round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, 3, found(63, TRUTH), found(63, LIE))); // two lazy seats of five
        eq(uint8(stepCase(caseId).phase), uint8(CasePhase.Appealable), "not the last word");
        appealStep(12, caseId);
        judgeStep(caseId, times(2, found(63, TRUTH)));
        expectStep(caseId, Outcome.Fraud);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "replaced");
        eq(vault.balanceOf(actors[12].owner), STAKE, "the appeal's bond returns");
        checkConservation();
    }

    // ---------------------------------------------------------------- the window

    function test_what_nobody_appeals_from_is_final_after_the_last_second() public {
        bytes32 caseId = rejected(0, Finding.Match);
        uint256 ends = caseOf(caseId).phaseEnds;
        eq(ends, clock() + WINDOW, "a challenge window");
        passTo(ends);
        bytes memory data = abi.encodeCall(IPanels.advance, (caseId));
        refused(POSTER, address(court), data, abi.encodeWithSelector(IPanels.PhaseRunning.selector, ends, ends));
        passTo(ends + 1);
        bytes memory error = abi.encodeWithSelector(IPanels.PhaseOver.selector, ends + 1, ends);
        refused(actors[0].operator, address(court), abi.encodeCall(IPanels.appeal, (caseId)), error);
        court.advance(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "unpaid");
        rounds.settle(jobId, round, one(0));
        yes(claimStatus(round, 0) == ClaimStatus.Unpaid, "unpaid");
    }

    function test_an_appeal_is_taken_in_the_last_second() public {
        bytes32 caseId = rejected(0, Finding.Match);
        passTo(caseOf(caseId).phaseEnds);
        uint256 before = locked(0);
        appeal(0, caseId);
        eq(locked(0) - before, 7 * FEE, "seven fees");
        eq(caseOf(caseId).level, 3, "the panel");
        eq(uint8(caseOf(caseId).outcome), uint8(Outcome.None), "open again");
        Bond[] memory bonds = court.bondsOf(caseId);
        eq(bonds.length, 1, "one");
        eq(uint8(bonds[0].against), uint8(Outcome.Reject), "against");
    }

    function test_nothing_is_settled_while_an_appeal_may_come_or_is_judged() public {
        bytes32 caseId = rejected(0, Finding.Match);
        finalise(round);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        refused(POSTER, address(rounds), data, abi.encodeWithSignature("NothingToSettle()"));
        expectPhase(caseId, CasePhase.Appealable); // its end has passed, and nobody has said so yet
        court.advance(caseId);
        rounds.settle(jobId, round, one(0));
    }

    function test_only_operators_with_stake_appeal_once_a_level_and_only_from_what_can_be_appealed() public {
        bytes32 caseId = convene(round, 0);
        bytes memory data = abi.encodeCall(IPanels.appeal, (caseId));
        bytes memory error = abi.encodeWithSelector(
            IPanels.WrongPhase.selector,
            CasePhase.Committing,
            CasePhase.Appealable
        );
        refused(actors[0].operator, address(court), data, error);
        judge(caseId, say(Finding.Match));
        error = abi.encodeWithSelector(IPanels.WrongPhase.selector, CasePhase.Done, CasePhase.Appealable);
        refused(actors[6].operator, address(court), data, error); // a Match of one seat is a verdict

        caseId = rejected(1, Finding.Reject);
        data = abi.encodeCall(IPanels.appeal, (caseId));
        refused(POSTER, address(court), data, IOperatorRegistry.NotAnOperator.selector);
        vm.prank(actors[1].owner);
        vault.withdraw(0);
        error = abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, actors[1].owner, 0, 7 * FEE);
        refused(actors[1].operator, address(court), data, error);
        appeal(6, caseId);
        error = abi.encodeWithSelector(IPanels.WrongPhase.selector, CasePhase.Seating, CasePhase.Appealable);
        refused(actors[7].operator, address(court), data, error);
    }

    // ---------------------------------------------------------------- three seats to the panel

    function test_a_panel_that_finds_work_honest_pays_it_and_returns_the_bond() public {
        bytes32 caseId = rejected(0, Finding.Match);
        appeal(0, caseId);
        Money memory was = money(round);
        judge(caseId, say(Finding.Match, Finding.Match));
        appealWindowPasses(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "three of five");
        eq(locked(0), ENROLLED + BOND, "only the claim's bond is locked");
        eq(vault.balanceOf(actors[0].owner), STAKE, "whole");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i = 2; i < 5; ++i) eq(gained(was, seats[i].owner), FEE, "a Match is paid");
        for (uint256 i; i < 2; ++i) eq(gained(was, seats[i].owner), 0, "a Reject is not");
        eq(was.pot - pot(round), 3 * FEE, "from what was reserved");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        yes(claimStatus(round, 0) == ClaimStatus.Paid, "paid");
        checkConservation();
    }

    function appealWindowPasses(bytes32 caseId) private {
        if (caseOf(caseId).phase != CasePhase.Appealable) return;
        passTo(uint256(caseOf(caseId).phaseEnds) + 1);
        court.advance(caseId);
    }

    /// Reserve, forfeited reward, lost bond: in this order, and what is over goes to the fund.
    function test_an_appeal_that_is_lost_pays_the_larger_panel() public {
        bytes32 caseId = rejected(0, Finding.Reject);
        appeal(0, caseId);
        Money memory was = money(round);
        judge(caseId, say(Finding.Reject, Finding.Reject));
        appealWindowPasses(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "still");
        eq(lost(was, actors[0].owner), 7 * FEE, "the bond");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 5; ++i) eq(gained(was, seats[i].owner), FEE, "a fee");
        eq(was.pot - pot(round), 3 * FEE + TOKEN, "the reserve and the reward");
        eq(ledger.potOf(COURT_FUND) - was.fund, 10 * FEE + TOKEN - 5 * FEE, "what is over");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        checkConservation();
    }

    function test_who_appeals_is_not_drawn_for_the_larger_panel() public {
        bytes32 caseId = rejected(0, Finding.Match);
        appeal(DOUBTER, caseId);
        judge(caseId, say(Finding.Match, Finding.Match));
        expectPhase(caseId, CasePhase.Appealable);
        uint256 second = 1;
        while (isSeated(caseId, second)) ++second;
        appeal(second, caseId);
        seatPanel(court, caseId);
        Seat[] memory seats = seatsOf(caseId);
        eq(seats.length, 7, "the largest panel");
        for (uint256 i; i < 7; ++i) {
            uint256 who = indexOf(seats[i].owner);
            if (who == DOUBTER) yes(i < 3, "it sat before it appealed");
            yes(who != 0 && who != second, "INV-CASE-1");
            for (uint256 j; j < i; ++j) yes(seats[i].owner != seats[j].owner, "distinct owners");
        }
    }

    function isSeated(bytes32 caseId, uint256 actor) private view returns (bool) {
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < seats.length; ++i) if (seats[i].owner == actors[actor].owner) return true;
        return false;
    }

    /// Who looked and was outvoted knows best that something is wrong; its own finding was fixed before.
    function test_a_seat_that_was_outvoted_may_appeal() public {
        bytes32 caseId = rejected(0, Finding.Match);
        appeal(indexOf(seatsOf(caseId)[2].owner), caseId);
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(caseOf(caseId).outcome), uint8(Outcome.Match), "three of five");
    }

    /// Each bond is judged by what it was against: the panel's Reject costs the second one, not the first.
    function test_two_bonds_are_judged_apart() public {
        bytes32 caseId = rejected(0, Finding.Match);
        appeal(0, caseId); // says: not a Reject
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(caseOf(caseId).outcome), uint8(Outcome.Match), "as it looks");
        appeal(DOUBTER, caseId); // says: not a Match
        Money memory was = money(round);
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "a Match: no further level");
        eq(lost(was, actors[0].owner), 0, "was right");
        eq(lost(was, actors[DOUBTER].owner), 14 * FEE, "was wrong");
        for (uint256 i; i < 2; ++i) eq(court.bondsOf(caseId)[i].fees, 7 + 7 * i, "seven, then fourteen");
        checkConservation();
    }

    // ---------------------------------------------------------------- the panel to the largest

    function test_a_fraud_stands_when_the_larger_panel_says_the_same() public {
        bytes32 caseId = defrauded(0, Finding.Match);
        appeal(0, caseId);
        Money memory was = money(round);
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "six of seven");
        eq(lost(was, actors[0].owner), BOND + 14 * FEE, "both bonds");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 7; ++i) {
            // 30 % of the bond among six provers: the accused, who appealed, is none
            uint256 pay = seats[i].finding == Finding.Fraud ? FEE + (BOND * 30) / 100 / 6 : 0;
            eq(gained(was, seats[i].owner), pay, "a fee and a prover's share");
        }
        eq(ledger.potOf(COURT_FUND) - was.fund, BOND / 5, "a fifth of the claim's bond");
        uint256 collected = 3 * FEE + TOKEN + BOND + 14 * FEE + SEAT / 4;
        uint256 spent = 6 * FEE + 6 * ((BOND * 30) / 100 / 6) + BOND / 5;
        // fees stop being collected once there are six of them: the reward is taken before the bonds
        uint256 taken = was.pot - pot(round);
        eq(taken, 3 * FEE + TOKEN, "reserve and reward first");
        eq(token.balanceOf(BURN) - was.burnt, collected - spent, "the rest is burnt");
        checkConservation();
    }

    function test_a_larger_panel_that_finds_otherwise_acquits_and_costs_the_wrong_seats() public {
        bytes32 caseId = defrauded(0, Finding.Match);
        appeal(0, caseId);
        Money memory was = money(round);
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "four of seven convict nobody");
        eq(lost(was, actors[0].owner), 0, "both bonds return");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 4; ++i) eq(lost(was, seats[i].owner), SEAT / 4, "a wrong Fraud");
        for (uint256 i = 4; i < 7; ++i) eq(gained(was, seats[i].owner), FEE, "a Match");
        yes(!isBarred(0), "cleared");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        yes(claimStatus(round, 0) == ClaimStatus.Paid, "and paid");
        checkConservation();
    }

    /// A cheat appeals and hopes that nobody comes: five that spoke are judged by their share.
    function test_a_fraud_stands_when_the_larger_panel_is_silent() public {
        bytes32 caseId = defrauded(0, Finding.Match);
        appeal(0, caseId);
        silence(court, caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "four of the five that spoke");
        eq(vault.balanceOf(actors[0].owner), STAKE - BOND - 14 * FEE, "slashed, and the appeal is lost");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    /// Appeals need owners enough for the larger panel; a cheat enrols them after the close, when they can no longer be
    /// drawn, so that the seats stay empty.
    function test_a_fraud_stands_when_the_larger_panel_cannot_be_filled() public {
        deploy();
        delete actors;
        addActors(6);
        post(terms(), 1);
        round = drawnRound();
        addActors(4); // too late to be drawn
        bytes32 caseId = defrauded(0, Finding.Fraud);
        appeal(0, caseId);
        silence(court, caseId);
        eq(seatsOf(caseId).length, 7, "two seats more");
        for (uint256 i = 5; i < 7; ++i) yes(seatsOf(caseId)[i].state == SeatState.Vacant, "empty");
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "five of the five that spoke");
        eq(vault.balanceOf(actors[0].owner), STAKE - BOND - 14 * FEE, "slashed");
    }

    function test_without_owners_for_a_larger_panel_its_verdict_is_the_last() public {
        deploy();
        delete actors;
        addActors(7);
        post(terms(), 1);
        round = drawnRound();
        bytes32 caseId = convene(round, 0);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "seven owners are not more than seven");
    }

    /// The accused would have its case judged by itself.
    function test_the_accused_that_appeals_is_no_prover_of_its_own_fraud() public {
        bytes32 caseId = rejected(0, Finding.Reject);
        appeal(0, caseId);
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        eq(uint8(caseOf(caseId).outcome), uint8(Outcome.Reject), "two Frauds of five");
        appeal(0, caseId);
        Money memory was = money(round);
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        appealWindowPasses(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "four of seven: no fraud");
        eq(gained(was, actors[0].owner), 0, "nothing");
        eq(lost(was, actors[0].owner), 21 * FEE, "both appeals");
        checkConservation();
    }

    // ---------------------------------------------------------------- checkpoints

    function appealStep(uint256 actor, bytes32 caseId) private {
        vm.prank(actors[actor].operator);
        checkpoints.appeal(caseId);
    }

    function convicted(uint32 doubted, uint256 honest) private returns (bytes32 caseId) {
        caseId = doubt(doubted);
        judgeStep(caseId, times(5, honest, found(63, TRUTH), found(63, LIE)));
        eq(uint8(stepCase(caseId).phase), uint8(CasePhase.Appealable), "phase");
        eq(uint8(stepCase(caseId).outcome), uint8(Outcome.Fraud), "fraud, as it looks");
    }

    function test_a_checkpoint_is_not_replaced_before_the_window_for_an_appeal_ends() public {
        post(sampledTerms(), 2);
        round = closedRound(63, LIE);
        bytes32 caseId = convicted(round, 5);
        eq(rounds.checkpointOf(jobId, 1), LIE, "not yet");
        passTo(uint256(stepCase(caseId).phaseEnds) + 1);
        auditAll(round);
        nothingToSettle(round);
        checkpoints.advance(caseId);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "replaced");
        nothingToSettle(round); // its claims can be doubted again
        finish(round);
        checkpoints.distribute(caseId);
        checkConservation();
    }

    /// Found by attack: the larger panel counted absolute numbers. A liar appealed, the new seats stayed silent or empty,
    /// five equal findings were not fourteen, and the false checkpoint stood at no loss to anybody.
    function test_liars_do_not_get_out_of_a_conviction_by_an_appeal_to_silent_seats() public {
        post(sampledTerms(), 2);
        round = closedRound(63, LIE);
        bytes32 caseId = convicted(round, 4);
        appealStep(0, caseId);
        eq(stepSeats(caseId).length, 7, "the largest panel");
        silence(checkpoints, caseId);
        expectStep(caseId, Outcome.Fraud);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "replaced");
        eq(vault.balanceOf(actors[0].owner), STAKE - 14 * FEE, "the appeal is lost");
        finish(round);
        eq(vault.balanceOf(actors[0].owner), STAKE - 14 * FEE - BOND, "and the bond");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    function test_a_larger_panel_decides_about_a_checkpoint_by_five_equal_findings_of_seven() public {
        post(sampledTerms(), 2);
        round = closedRound(63, LIE);
        bytes32 caseId = convicted(round, 4);
        appealStep(0, caseId);
        judgeStep(caseId, times(2, found(63, LIE)));
        expectStep(caseId, Outcome.Unsampled); // four against three
        eq(rounds.checkpointOf(jobId, 1), LIE, "stands");
        for (uint256 i; i < 14; ++i) eq(vault.balanceOf(actors[i].owner), STAKE, "nobody was wrong");
    }

    /// Found by attack: a liar that appealed from a Reject shared what it was slashed with those who proved it.
    function test_nobody_is_paid_for_proving_its_own_lie() public {
        post(sampledTerms(), 2);
        round = closedRound(31, LIE);
        bytes32 caseId = doubt(round);
        // two of five could not have the attested payloads: it is replaced, and nobody is convicted
        judgeStep(caseId, times(5, 3, found(63, TRUTH, "step of 31"), found(63, TRUTH, 0)));
        eq(uint8(stepCase(caseId).outcome), uint8(Outcome.Reject), "as it looks");
        appealStep(0, caseId);
        judgeStep(caseId, times(2, found(63, TRUTH, "step of 31")));
        expectStep(caseId, Outcome.Fraud);
        finish(round);
        Money memory was = money(round);
        checkpoints.distribute(caseId);
        eq(gained(was, actors[0].owner), 0, "the liar");
        eq(gained(was, actors[DOUBTER].owner), (5 * BOND * 30) / 100 / 6, "the challenger, with five seats");
        checkConservation();
    }

    function test_an_appeal_from_a_wrong_match_brings_the_liars_down() public {
        post(sampledTerms(), 2);
        round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, 4, found(63, LIE), found(63, TRUTH))); // four lazy seats
        eq(uint8(stepCase(caseId).outcome), uint8(Outcome.Match), "as it looks");
        appealStep(12, caseId);
        judgeStep(caseId, times(2, found(63, TRUTH)));
        expectStep(caseId, Outcome.Unsampled); // three of seven: not enough to replace it
        eq(vault.balanceOf(actors[12].owner), STAKE, "but the appeal was not in vain");
        eq(vault.balanceOf(actors[DOUBTER].owner), STAKE, "nor the doubt");
    }
}
