// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {ICheckpointCourt} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {COURT_FUND, Finding, Outcome, Round, RoundStatus, Seat, SeatState} from "../contracts/types/Types.sol";

/// What follows when a panel has recomputed a doubted checkpoint, to the wei. INV-STEP-1 to -3.
contract CheckpointVerdictsTest is Doubts {
    function setUp() public {
        settle14(4);
    }

    // ---------------------------------------------------------------- Match

    function test_a_match_costs_the_challenger_seven_fees_which_pay_the_five_seats() public {
        uint32 round = closedRound(63, TRUTH);
        draw(round);
        bytes32 caseId = doubt(round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expectStep(caseId, Outcome.Match);
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) eq(gained(was, seats[i].owner), FEE, "a fee");
        eq(lost(was, actors[DOUBTER].owner), 7 * FEE, "the bond");
        eq(was.pot, pot(round), "nothing of the job's");
        eq(rounds.drawOf(jobId, round).taken, 0, "no slot");
        eq(ledger.potOf(COURT_FUND) - was.fund, 2 * FEE, "what is over");
        eq(ledger.potOf(caseId), 0, "INV-STEP-3");
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "it stands");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    function test_a_frivolous_doubt_costs_its_doubter_and_nobody_else() public {
        uint32 round = closedRound(63, TRUTH);
        draw(round);
        uint256 escrow = ledger.potOf(jobId);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        finish(round);
        uint256 back = ledger.potOf(jobId) - escrow;
        eq(6 * TOKEN + 18 * FEE - back, 6 * TOKEN + 2 * FEE, "six rewards, two audits");
        eq(STAKE - vault.balanceOf(actors[DOUBTER].owner), 7 * FEE, "the bond");
    }

    function test_seats_without_a_reserve_are_paid_by_the_fund_in_equal_parts() public {
        post(terms(), 2); // everything is sampled: no slot is free
        uint32 round = closedRound(63, TRUTH);
        draw(round);
        bytes32 caseId = doubt(round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, 4, found(63, TRUTH), found(63, LIE)));
        expectStep(caseId, Outcome.Match);
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 4; ++i) eq(gained(was, seats[i].owner), FEE, "from the bond and the wrong seat");
        eq(lost(was, seats[4].owner), SEAT / 4, "the wrong seat");
        eq(pot(round), was.pot, "nothing of what claims are owed");
        eq(ledger.potOf(COURT_FUND) - was.fund, 7 * FEE + SEAT / 4 - 4 * FEE, "what is over");
        checkConservation();
    }

    // ---------------------------------------------------------------- Reject

    /// A lying majority votes an honest owner's bit away: the court gives it back, and the owner its reward.
    function test_another_bitmap_replaces_the_checkpoint_and_slashes_nobody() public {
        uint32 round = closedRound(31, LIE);
        draw(round);
        bytes32 caseId = doubt(5, round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, 4, found(63, TRUTH, LIE), found(31, LIE)));
        expectStep(caseId, Outcome.Reject);
        (Round memory r, ) = rounds.roundOf(jobId, round);
        eq(r.acceptedMap, 63, "all six");
        eq(r.next, TRUTH, "the new digest");
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "in the old one's place");
        eq(r.closedAt, clock(), "its claims can be doubted from now");
        eq(vault.balanceOf(actors[5].owner), was.stakes[5], "the bond returns");
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 4; ++i) eq(gained(was, seats[i].owner), FEE, "a fee");
        eq(gained(was, seats[4].owner), 0, "who confirmed it is not paid");
        eq(lost(was, seats[4].owner), 0, "nor slashed: bitmaps are opinions");
        eq(was.pot - pot(round), 4 * FEE, "from the reserve");
        eq(ledger.potOf(caseId), 0, "empty");
        finish(round);
        for (uint256 i; i < 6; ++i) yes(credit(i) >= was.credits[i] + TOKEN, "each its reward");
        for (uint256 i; i < 6; ++i) eq(vault.balanceOf(actors[i].owner), was.stakes[i], "nobody is slashed");
        checkConservation();
    }

    // ---------------------------------------------------------------- Fraud

    /// Two thirds of the weight agree on a checkpoint that nobody has: it is replaced, and each loses its bonds in that
    /// round, half of them burnt.
    function test_who_attested_to_a_false_digest_is_slashed_at_settlement() public {
        uint32 round = closedRound(63, LIE);
        draw(round);
        bytes32 caseId = doubt(round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expectStep(caseId, Outcome.Fraud);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "replaced");
        for (uint256 i; i < 6; ++i) eq(vault.balanceOf(actors[i].owner), was.stakes[i], "not before settlement");
        auditAll(round);
        notYetSlashed(caseId);
        finalise(round);
        uint256 burnt = token.balanceOf(BURN);
        rounds.settle(jobId, round, range(0, 5));
        notYetSlashed(caseId);
        for (uint256 i; i < 5; ++i) eq(lost(was, actors[i].owner), BOND, "its whole bond");
        eq(token.balanceOf(BURN) - burnt, (5 * BOND) / 2, "half is burnt");
        eq(ledger.potOf(caseId), (5 * BOND) / 2, "half waits for those who proved it");
        uint256 honest = credit(5);
        rounds.settle(jobId, round, one(5));
        eq(credit(5) - honest, TOKEN, "who did not attest to it is paid");
        eq(lost(was, actors[5].owner), 0, "and not slashed");
        share(caseId, round);
        eq(ledger.creditOf(POSTER), 0, "INV-COURT-4");
        checkConservation();
    }

    function notYetSlashed(bytes32 caseId) private {
        bytes memory error = abi.encodeWithSelector(ICheckpointCourt.NotYetSlashed.selector, caseId);
        refused(POSTER, address(checkpoints), abi.encodeCall(checkpoints.distribute, (caseId)), error);
    }

    /// Five bonds of 25: 62.5 in the pot, of which 37.5 go to five seats and the challenger, 25 to the fund.
    function share(bytes32 caseId, uint32 round) private {
        Money memory was = money(round);
        uint256 stake = vault.balanceOf(actors[DOUBTER].owner);
        checkpoints.distribute(caseId);
        uint256 each = (5 * BOND * 30) / 100 / 6;
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) eq(gained(was, seats[i].owner), each, "a seat");
        eq(gained(was, actors[DOUBTER].owner), each, "the challenger");
        eq(stake, STAKE, "whose bond had returned");
        eq(ledger.potOf(COURT_FUND) - was.fund, 5 * (BOND / 5), "a fifth of each bond");
        eq(token.balanceOf(BURN) - was.burnt, (5 * BOND) / 2 - 6 * each - BOND, "dust");
        eq(ledger.potOf(caseId), 0, "INV-STEP-3");
        notYetSlashed(caseId); // once
    }

    function test_the_dust_of_a_share_is_burnt() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        // six provers share; a bond that six does not divide would leave wei in the pot
        judgeStep(caseId, times(5, found(63, TRUTH)));
        draw(round);
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        uint16 shard;
        while ((map >> shard) & 1 == 0) ++shard;
        // one attester's claim is fraud as well: its bond is gone before the checkpoint's court comes
        bytes32 claimCase = convene(round, shard);
        judge(claimCase, say(Finding.Fraud));
        judge(claimCase, say(Finding.Fraud, Finding.Fraud));
        judge(claimCase, say(Finding.Fraud, Finding.Fraud));
        finish(round);
        uint256 bonds = shard < 5 ? 4 : 5;
        eq(ledger.potOf(caseId), (bonds * BOND) / 2, "each claim is slashed once");
        uint256 burnt = token.balanceOf(BURN);
        uint256 had = credit(DOUBTER);
        checkpoints.distribute(caseId);
        uint256 each = ((((bonds * BOND) / 2) * 3) / 5) / 6;
        eq(credit(DOUBTER) - had, each, "rounded down");
        eq(token.balanceOf(BURN) - burnt, (bonds * BOND) / 2 - 6 * each - (bonds * BOND) / 5, "what is over");
        eq(ledger.potOf(caseId), 0, "to the wei");
        checkConservation();
    }

    function test_an_owner_with_several_claims_loses_the_bond_of_each_once() public {
        uint32 round = rounds.open(jobId);
        pass(61);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(0, 5));
        for (uint16 s; s < 5; ++s) commit(0, round, s);
        claim(5, round, 5);
        commit(5, round, 5);
        attest(0, round, 63, LIE); // five of six: alone
        expect(round, RoundStatus.Closed);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        finish(round);
        eq(vault.balanceOf(actors[0].owner), STAKE - 5 * BOND, "five bonds");
        eq(locked(0), ENROLLED, "and nothing else is locked");
        nothingToSettle(round);
        eq(vault.balanceOf(actors[0].owner), STAKE - 5 * BOND, "once");
        checkConservation();
    }

    /// Closed in the second window: only the last word counts.
    function test_an_owner_that_took_its_word_back_in_the_second_window_is_not_slashed() public {
        uint32 round = fullRound();
        for (uint256 i; i < 2; ++i) attest(i, round, 63, LIE); // says so now, and will not later
        for (uint256 i = 2; i < 4; ++i) attest(i, round, 63, TRUTH); // will say otherwise later
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Tallied);
        attest(0, round, 63, TRUTH);
        for (uint256 i = 2; i < 6; ++i) attest(i, round, 63, LIE);
        expect(round, RoundStatus.Closed);
        // the owner of 1 said it in the first window and was silent in the second: its word stands
        refusedDoubt(1, round, abi.encodeWithSelector(ICheckpointCourt.OwnAttestation.selector, actors[1].owner));
        bytes32 caseId = doubt(0, round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expectStep(caseId, Outcome.Fraud);
        finish(round);
        uint8[6] memory bonds = [0, 1, 1, 1, 1, 1];
        for (uint256 i; i < 6; ++i) {
            eq(STAKE - vault.balanceOf(actors[i].owner), bonds[i] * BOND, "the bond of its last word");
        }
    }

    function test_an_honest_claim_of_a_convicted_owner_is_not_paid() public {
        uint32 round = closedRound(63, LIE);
        auditAll(round); // every sampled claim is found to be honest work
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        Money memory was = money(round);
        finish(round);
        for (uint256 i; i < 5; ++i) eq(credit(i), was.credits[i], "no reward for who lied about the checkpoint");
        eq(credit(5) - was.credits[5], TOKEN, "but for who did not");
    }

    /// The digest is false and the bitmap as well: who could check the attested bitmap convicts, another group replaces.
    function test_seats_that_agree_on_both_replace_and_convict() public {
        uint32 round = closedRound(31, LIE);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH, keccak256("step of 31"))));
        expectStep(caseId, Outcome.Fraud);
        (Round memory r, ) = rounds.roundOf(jobId, round);
        eq(r.acceptedMap, 63, "replaced");
        finish(round);
        for (uint256 i; i < 5; ++i) eq(vault.balanceOf(actors[i].owner), STAKE - BOND, "convicted");
    }

    /// Where the payloads of the attested bitmap are gone, nobody can show that its digest is false.
    function test_without_the_attested_payloads_nobody_is_convicted() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, found(31, TRUTH, 0)));
        expectStep(caseId, Outcome.Reject);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "what can be had is built upon");
        finish(round);
        for (uint256 i; i < 6; ++i) eq(vault.balanceOf(actors[i].owner), STAKE, "nobody is slashed");
    }

    function test_three_liars_of_five_convict_nobody() public {
        uint32 round = closedRound(63, TRUTH);
        bytes32 caseId = doubt(round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, 3, found(63, LIE), found(63, TRUTH)));
        expectStep(caseId, Outcome.Unsampled);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "it stands");
        eq(lost(was, actors[DOUBTER].owner), 0, "the bond returns");
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) {
            eq(lost(was, seats[i].owner), 0, "nobody was wrong");
            eq(gained(was, seats[i].owner), 0, "nor right");
        }
        eq(ticketsUsed(), 0, "INV-CASE-3");
        finish(round);
        checkConservation();
    }

    // ---------------------------------------------------------------- nobody judges

    function test_where_all_seats_are_silent_it_stands_and_the_bond_returns() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        silence(checkpoints, caseId);
        expectStep(caseId, Outcome.Unsampled);
        eq(vault.balanceOf(actors[DOUBTER].owner), STAKE, "whole");
        eq(rounds.checkpointOf(jobId, 1), LIE, "stands");
        eq(ledger.potOf(caseId), 0, "what the silent seats lost went to the fund");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        finish(round);
        checkConservation();
    }

    /// All who have tickets attested: nobody may sit. It stands, at nobody's loss.
    function test_seats_that_cannot_be_filled_leave_it_as_it_is() public {
        for (uint256 i = 6; i < 14; ++i) exitAll(actors[i]);
        pass(601);
        post(sampledTerms(), 2);
        enroll(actors[6], 64); // one live owner more, so that a round opens
        bytes32 caseId = doubt(closedRound(63, LIE));
        seatPanel(checkpoints, caseId);
        uint256 seated;
        for (uint256 i; i < 5; ++i) if (stepSeats(caseId)[i].state == SeatState.Seated) ++seated;
        yes(seated <= 2, "only the owners of 5 and 6 may judge");
        silence(checkpoints, caseId);
        expectStep(caseId, Outcome.Unsampled);
        eq(vault.balanceOf(actors[DOUBTER].owner), STAKE, "whole");
    }

    function test_a_step_is_exact_so_that_a_conviction_needs_no_calibration_record() public {
        eq(market.calibrationOf(jobId), 0, "none");
        uint32 round = closedRound(63, LIE);
        judgeStep(doubt(round), times(5, found(63, TRUTH)));
        finish(round);
        eq(vault.balanceOf(actors[0].owner), STAKE - BOND, "slashed");
    }

    function test_only_the_court_replaces_a_checkpoint() public {
        uint32 round = closedRound(63, TRUTH);
        bytes memory data = abi.encodeCall(rounds.replaceCheckpoint, (jobId, round, 63, LIE, true));
        address[3] memory callers = [POSTER, address(court), actors[0].operator];
        for (uint256 i; i < 3; ++i) {
            bytes memory error = abi.encodeWithSelector(IRoundBook.NotACourt.selector, callers[i]);
            refused(callers[i], address(rounds), data, error);
        }
    }
}
