// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {DevToken} from "../contracts/dev/DevToken.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {
    CasePhase,
    ClaimStatus,
    COURT_FUND,
    Finding,
    Outcome,
    Preset,
    Seat,
    SeatState,
    Terms
} from "../contracts/types/Types.sol";

/// The ladder 1, 3, 5 with every combination of findings, and who pays for it: INV-COURT-1 to -4.
contract LadderTest is World {
    uint256 private constant FEE = (TOKEN * 11) / 10;
    uint256 private constant BOND = 25 * TOKEN;
    uint256 private constant SEAT = 40 * TOKEN;
    Finding[4] private spoken = [Finding.Match, Finding.Reject, Finding.Fraud, Finding.UnavailableInputs];

    uint32 private round;

    struct Before {
        uint256 pot;
        uint256 fund;
        uint256 burnt;
        uint256 stake;
        uint256[] credits;
        uint256[] stakes;
    }

    function setUp() public {
        deploy();
        addActors(8);
        post(terms(), 3);
        round = drawnRound();
    }

    // ---------------------------------------------------------------- the rules, written again

    function distance(Finding f, Outcome o) private pure returns (uint256) {
        if (f == Finding.UnavailableInputs) return o == Outcome.Excused ? 0 : 1;
        if (o == Outcome.Excused) return 1;
        int256 said =
            f == Finding.Match
                ? int256(0)
                : f == Finding.Fraud
                    ? int256(2)
                    : int256(1);
        int256 was =
            o == Outcome.Match
                ? int256(0)
                : o == Outcome.Fraud
                    ? int256(2)
                    : int256(1);
        return uint256(said > was ? said - was : was - said);
    }

    function countOf(Finding[] memory all, uint256 size, Finding f) private pure returns (uint256 n) {
        for (uint256 i; i < size; ++i) if (all[i] == f) ++n;
    }

    /// Five findings in the order of the seats: the verdict and the number of seats that reach it.
    function verdictOf(Finding[] memory all) private pure returns (Outcome, uint256 seats) {
        if (all[0] == Finding.Match) return (Outcome.Match, 1);
        if (countOf(all, 3, Finding.Match) >= 2) return (Outcome.Match, 3);
        if (countOf(all, 3, Finding.Fraud) == 0) {
            if (countOf(all, 3, Finding.Reject) >= 2) return (Outcome.Reject, 3);
            if (countOf(all, 3, Finding.UnavailableInputs) >= 2) return (Outcome.Excused, 3);
        }
        uint256 frauds = countOf(all, 5, Finding.Fraud);
        if (frauds >= 4) return (Outcome.Fraud, 5);
        if (frauds + countOf(all, 5, Finding.Reject) >= 4) return (Outcome.Reject, 5);
        if (countOf(all, 5, Finding.UnavailableInputs) >= 3) return (Outcome.Excused, 5);
        return (Outcome.Match, 5);
    }

    // ---------------------------------------------------------------- playing

    function before() private view returns (Before memory b) {
        b.pot = pot(round);
        b.fund = ledger.potOf(COURT_FUND);
        b.burnt = token.balanceOf(BURN);
        b.credits = new uint256[](actors.length);
        b.stakes = new uint256[](actors.length);
        for (uint256 i; i < actors.length; ++i) {
            b.credits[i] = credit(i);
            b.stakes[i] = vault.balanceOf(actors[i].owner);
        }
    }

    function play(uint16 shard, Finding[] memory all) private returns (bytes32 caseId) {
        caseId = convene(round, shard);
        uint256 next;
        for (uint256 level; level < 3 && caseOf(caseId).phase != CasePhase.Done; ++level) {
            uint256 more = level == 0 ? 1 : 2;
            Finding[] memory part = new Finding[](more);
            for (uint256 i; i < more; ++i) part[i] = all[next++];
            judge(caseId, part);
            unappealed(caseId);
        }
    }

    /// Two Rejects of three stand once nobody appealed from them: until the last second of the window.
    function unappealed(bytes32 caseId) private {
        if (caseOf(caseId).phase != CasePhase.Appealable) return;
        uint256 ends = caseOf(caseId).phaseEnds;
        eq(ends, clock() + 30, "the challenge window");
        passTo(ends);
        bytes memory error = abi.encodeWithSelector(IPanels.PhaseRunning.selector, ends, ends);
        refused(POSTER, address(court), abi.encodeCall(court.advance, (caseId)), error);
        pass(1);
        court.advance(caseId);
    }

    /// Everything that the verdict must have moved, to the wei.
    function check(bytes32 caseId, uint256 shard, Finding[] memory all, Before memory b) private view {
        (Outcome outcome, uint256 size) = verdictOf(all);
        eq(uint8(outcomeOf(caseId)), uint8(outcome), "verdict");
        Seat[] memory seats = seatsOf(caseId);
        eq(seats.length, size, "seats");
        uint256 winners;
        uint256 slashed;
        for (uint256 i; i < size; ++i) {
            if (distance(all[i], outcome) == 0) ++winners;
            if (distance(all[i], outcome) == 2) slashed += SEAT / 4;
        }
        bool fraud = outcome == Outcome.Fraud;
        bool forfeited = fraud || outcome == Outcome.Reject;

        // who pays: the reserve, the forfeited reward, what was slashed, the court fund
        uint256 need = winners * FEE;
        uint256 reserve = least(need, 3 * FEE);
        uint256 reward = forfeited ? least(need - reserve, TOKEN) : 0;
        uint256 fromSlash = least(need - reserve - reward, slashed + (fraud ? BOND : 0));
        uint256 fromFund = least(need - reserve - reward - fromSlash, b.fund);
        eq(pot(round), b.pot - reserve - reward, "the round's pot");
        uint256 fee = winners == 0 ? 0 : (reserve + reward + fromSlash + fromFund) / winners;

        uint256 rest = slashed + (fraud ? BOND : 0) - fromSlash;
        uint256 share = fraud ? least((BOND * 30) / 100 / winners, 10 * FEE) : 0;
        uint256 toFund = fraud ? (BOND * 20) / 100 : rest + reserve + reward + fromFund + fromSlash - fee * winners;
        for (uint256 i; i < size; ++i) {
            uint256 d = distance(all[i], outcome);
            uint256 actor = indexOf(seats[i].owner);
            eq(credit(actor) - b.credits[actor], d == 0 ? fee + share : 0, "a seat's pay");
            eq(b.stakes[actor] - vault.balanceOf(seats[i].owner), d == 2 ? SEAT / 4 : 0, "a seat's loss");
        }
        eq(ledger.potOf(COURT_FUND) + fromFund - b.fund, toFund, "the court fund");
        eq(token.balanceOf(BURN) - b.burnt, fraud ? rest - share * winners - toFund : 0, "burnt");
        eq(b.stakes[shard] - vault.balanceOf(actors[shard].owner), fraud ? BOND : 0, "the accused's bond");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    function least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }

    function indexOf(address owner) private view returns (uint256 i) {
        while (actors[i].owner != owner) ++i;
    }

    function five(Finding a, Finding b, Finding c, Finding d, Finding e) private pure returns (Finding[] memory f) {
        f = new Finding[](5);
        (f[0], f[1], f[2], f[3], f[4]) = (a, b, c, d, e);
    }

    // ---------------------------------------------------------------- tests

    /// The order of two seats of a level changes nothing: 4 first findings and 10 pairs on each of two levels.
    function every(uint256 first) private {
        uint256 start = vm.snapshotState();
        for (uint256 b; b < 4; ++b) {
            for (uint256 c = b; c < 4; ++c) {
                for (uint256 d; d < 4; ++d) {
                    for (uint256 e = d; e < 4; ++e) {
                        Finding[] memory all = five(spoken[first], spoken[b], spoken[c], spoken[d], spoken[e]);
                        (, uint256 size) = verdictOf(all);
                        if (size < 5 && (d > 0 || e > 0)) continue; // decided before these two speak
                        if (size < 3 && (b > 0 || c > 0)) continue;
                        Before memory was = before();
                        check(play(0, all), 0, all, was);
                        vm.revertToState(start);
                        start = vm.snapshotState();
                    }
                }
            }
        }
    }

    function test_every_ladder_that_starts_with_a_match_or_withheld_inputs() public {
        every(0);
        every(3);
    }

    function test_every_ladder_that_starts_with_a_reject() public {
        every(1);
    }

    function test_every_ladder_that_starts_with_a_fraud() public {
        every(2);
    }

    function test_a_withheld_payload_counts_as_a_reject() public {
        bytes32 caseId = convene(round, 0);
        judge(caseId, say(Finding.UnavailablePayload));
        judge(caseId, say(Finding.Reject, Finding.Match));
        unappealed(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "two of three");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        eq(uint8(claimStatus(round, 0)), uint8(ClaimStatus.Unpaid), "unpaid");
        eq(vault.balanceOf(actors[0].owner), STAKE, "never slashed");
    }

    function test_after_a_verdict_pay_follows_it_once() public {
        bytes32 caseId = play(0, say(5, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
        uint256 earned = credit(0);
        finalise(round);
        rounds.settle(jobId, round, one(0));
        eq(credit(0), earned, "unpaid");
        eq(vault.lockedOf(actors[0].owner), ENROLLED, "and nothing is locked");
        eq(ledger.creditOf(POSTER), 0, "INV-COURT-4");
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        refused(POSTER, address(court), abi.encodeCall(court.advance, (caseId)), IPanels.NoSuchCase.selector);
    }

    function test_the_court_fund_pays_what_reserve_reward_and_slashes_do_not() public {
        play(1, say(5, Finding.Fraud));
        uint256 fund = ledger.potOf(COURT_FUND);
        eq(fund, 5 * TOKEN, "20 % of a bond");
        Finding[] memory all = five(
            Finding.Reject,
            Finding.Match,
            Finding.UnavailableInputs,
            Finding.Match,
            Finding.Match
        );
        Before memory was = before();
        check(play(0, all), 0, all, was);
        all = five(Finding.Reject, Finding.Fraud, Finding.Reject, Finding.Reject, Finding.Reject);
        was = before();
        check(play(2, all), 2, all, was);
        yes(ledger.potOf(COURT_FUND) < fund, "it paid");
    }

    function test_a_fraud_finding_needs_a_full_panel_to_slash() public {
        bytes32 caseId = fourOfFive(say(4, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "INV-COURT-2");
        eq(vault.balanceOf(actors[0].owner), STAKE, "no slash");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        checkConservation();
    }

    /// Found by attack: with two seats silent, three Fraud findings against none counted as a Match: the cheat was
    /// paid and the three lost a quarter of their locks.
    function test_silent_seats_acquit_nobody() public {
        bytes32 caseId = convene(round, 0);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        for (uint256 i; i < 3; ++i) silence(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "three of three that spoke");
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    function test_one_seat_alone_decides_nothing_on_the_last_level() public {
        bytes32 caseId = convene(round, 0);
        judge(caseId, say(Finding.Fraud));
        uint256 stake = vault.balanceOf(seatsOf(caseId)[0].owner);
        while (caseOf(caseId).phase != CasePhase.Done) silence(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "one of five spoke");
        eq(vault.balanceOf(seatsOf(caseId)[0].owner), stake, "and it is not blamed for that");
        checkConservation();
    }

    function test_silence_on_the_second_level_goes_on_to_the_third() public {
        bytes32 caseId = convene(round, 0);
        judge(caseId, say(Finding.Reject));
        for (uint256 i; i < 3; ++i) silence(caseId);
        eq(caseOf(caseId).level, 3, "the last level");
        eq(uint8(seatsOf(caseId)[1].state), uint8(SeatState.Vacant), "two vacant seats stay so");
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "judged by those who spoke");
    }

    /// All seats but the last say what is given; the last one is silent three times.
    function fourOfFive(Finding[] memory all) private returns (bytes32 caseId) {
        caseId = convene(round, 0);
        judge(caseId, say(all[0]));
        judge(caseId, say(all[1], all[2]));
        seatAll(caseId);
        commitAudit(caseId, 3);
        passTo(caseOf(caseId).phaseEnds + 1);
        court.advance(caseId);
        mine(2);
        reveal(caseId, 3, all[3]);
        while (caseOf(caseId).phase != CasePhase.Done) silence(caseId);
    }

    /// Draw whoever can be drawn and let the phase run out.
    function silence(bytes32 caseId) private {
        seatAll(caseId);
        if (caseOf(caseId).phase == CasePhase.Done) return;
        passTo(caseOf(caseId).phaseEnds + 1);
        court.advance(caseId);
    }

    // ---------------------------------------------------------------- standing

    function test_a_passed_audit_ends_probation_and_a_reject_begins_it_again() public {
        address owner = actors[0].owner;
        yes(isOnProbation(0), "new");
        play(0, say(5, Finding.Match));
        yes(!isOnProbation(0) && court.passedOf(owner) == 1, "passed");
        close(fullRound(), 63);
        draw(1);
        round = 1;
        play(0, say(5, Finding.Reject));
        yes(isOnProbation(0), "rejected");
        yes(!isBarred(0), "one Reject does not bar");
        close(fullRound(), 63);
        draw(2);
        round = 2;
        play(0, say(5, Finding.Reject));
        yes(isBarred(0), "two do");
        (, bool barred) = court.standingOf("another job", owner);
        yes(!barred, "in this job");
    }

    function test_a_convicted_owner_is_barred_from_the_job_at_once() public {
        play(0, say(5, Finding.Fraud));
        uint32 next = rounds.open(jobId);
        bytes memory error = abi.encodeWithSelector(IRoundBook.OwnerBarred.selector, jobId, actors[0].owner);
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, next, one(0)));
        refused(actors[0].operator, address(rounds), data, error);
    }

    function test_where_the_preset_asks_for_a_calibration_a_fraud_is_slashed_only_with_one() public {
        for (uint256 i; i < 2; ++i) {
            delete actors;
            minted = 0;
            Preset memory p = preset();
            p.calibrated = true;
            deploy(address(new DevToken()), p);
            addActors(8);
            post(terms(), 3);
            if (i == 1) {
                vm.prank(POSTER);
                market.calibrate(jobId, "record");
            }
            round = drawnRound();
            bytes32 caseId = play(0, say(5, Finding.Fraud));
            eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
            finalise(round);
            rounds.settle(jobId, round, one(0));
            eq(STAKE - vault.balanceOf(actors[0].owner), i == 0 ? 0 : BOND, "the bond");
            eq(vault.lockedOf(actors[0].owner), ENROLLED, "nothing stays locked");
            eq(credit(0), 0, "unpaid either way");
            yes(isBarred(0), "barred either way");
            eq(ledger.potOf(caseId), 0, "INV-COURT-3");
            checkConservation();
        }
    }

    function test_inputs_that_the_poster_withheld_are_paid_for_and_pass_no_audit() public {
        bytes32 caseId = play(0, say(5, Finding.UnavailableInputs));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Excused), "excused");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        yes(claimStatus(round, 0) == ClaimStatus.Paid, "paid");
        yes(isOnProbation(0), "nothing was verified");
    }

    function test_the_ten_fee_cap_limits_what_provers_get() public {
        Terms memory t = terms();
        t.bondPerShard = uint96(400 * TOKEN);
        post(t, 1);
        round = drawnRound();
        Before memory was = before();
        bytes32 caseId = play(0, say(5, Finding.Fraud));
        Seat[] memory seats = seatsOf(caseId);
        // 30 % of 400 among five are 24 each; the cap is ten fees, 11
        uint256 paid;
        for (uint256 i; i < 5; ++i) {
            uint256 actor = indexOf(seats[i].owner);
            paid = credit(actor) - was.credits[actor];
            eq(paid, FEE + 10 * FEE, "a fee and the capped share");
        }
        eq(ledger.potOf(COURT_FUND) - was.fund, 80 * TOKEN, "20 %");
        // five fees cost 3 from the reserve, a reward, and the rest from the bond
        uint256 fromBond = 5 * FEE - 3 * FEE - TOKEN;
        eq(token.balanceOf(BURN) - was.burnt, 320 * TOKEN - fromBond - 5 * 10 * FEE, "the rest is burnt");
    }

    function test_seats_come_before_provers_where_a_bond_is_small() public {
        Terms memory t = terms();
        t.bondPerShard = uint96((TOKEN * 57) / 100); // the least that deters when everything is audited
        post(t, 1);
        round = drawnRound();
        Before memory was = before();
        bytes32 caseId = play(0, say(5, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "the case ends");
        Seat[] memory seats = seatsOf(caseId);
        uint256 all = 3 * FEE + TOKEN + (TOKEN * 57) / 100; // the reserve, the reward and the whole bond
        for (uint256 i; i < 5; ++i) {
            uint256 actor = indexOf(seats[i].owner);
            eq(credit(actor) - was.credits[actor], all / 5, "in equal parts");
        }
        eq(token.balanceOf(BURN), was.burnt, "nothing is left to burn");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        checkConservation();
    }
}
