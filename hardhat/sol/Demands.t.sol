// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {
    CaseKind,
    CasePhase,
    ClaimStatus,
    COURT_FUND,
    Finding,
    Outcome,
    RoundStatus,
    Seat,
    Terms
} from "../contracts/types/Types.sol";

/// Work that was voted out, or lies in a round without a checkpoint, is judged for half of the reward.
contract DemandsTest is Doubts {
    uint256 private constant HALF = TOKEN / 2;

    function setUp() public {
        settle14(4);
    }

    function demand(uint32 round, uint16 shard) private returns (bytes32 caseId) {
        vm.prank(actors[shard].operator);
        return court.demandAudit(jobId, round, shard);
    }

    function refusedDemand(uint256 actor, uint32 round, uint16 shard, bytes memory error) private {
        bytes memory data = abi.encodeCall(court.demandAudit, (jobId, round, shard));
        refused(actors[actor].operator, address(court), data, error);
    }

    function notDemandable(uint32 round, uint16 shard) private view returns (bytes memory) {
        return abi.encodeWithSelector(IAuditCourt.NotDemandable.selector, jobId, round, shard);
    }

    function voidRound() private returns (uint32 round) {
        round = fullRound();
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
    }

    // ---------------------------------------------------------------- who and when

    /// A majority that votes an honest owner out takes half of its reward at most, and pays for it with nothing gained.
    function test_who_was_voted_out_is_paid_half_for_honest_work() public {
        uint32 round = closedRound(31, TRUTH);
        draw(round);
        bytes32 caseId = demand(round, 5);
        eq(locked(5), ENROLLED + BOND + 3 * FEE, "three fees");
        (bool exists, bool done, , CaseKind kind) = court.outcomeOf(jobId, round, 5);
        yes(exists && !done && kind == CaseKind.Demanded, "a demand");
        Money memory was = money(round);
        judge(caseId, say(Finding.Match));
        eq(was.pot - pot(round), FEE, "its seat, of a free slot");
        eq(gained(was, seatsOf(caseId)[0].owner), FEE, "paid");
        eq(locked(5), ENROLLED + BOND, "the demand's bond returns");
        eq(court.passedOf(actors[5].owner), 1, "who picks its audit passes none");
        finish(round);
        eq(credit(5) - was.credits[5], HALF, "half");
        for (uint256 i; i < 5; ++i) yes(credit(i) - was.credits[i] >= TOKEN, "the others all");
        checkConservation();
    }

    function test_work_in_a_void_round_is_paid_half_on_demand() public {
        uint32 round = voidRound();
        Money memory was = money(round);
        judge(demand(round, 2), say(Finding.Match));
        finalise(round);
        settle(round);
        expect(round, RoundStatus.Settled);
        eq(credit(2) - was.credits[2], HALF, "half");
        for (uint256 i; i < 6; ++i) if (i != 2) yes(credit(i) <= was.credits[i] + FEE, "who did not ask: nothing");
        eq(pot(round), 0, "INV-ROUND-5");
        checkConservation();
    }

    function test_a_demand_is_taken_until_the_last_second() public {
        uint32 round = closedRound(15, TRUTH);
        passTo(closedAt(round) + WINDOW);
        demand(round, 5);
        pass(1);
        refusedDemand(4, round, 4, notDemandable(round, 4));
    }

    function test_only_the_claimant_of_an_excluded_claim_demands_and_once() public {
        uint32 round = closedRound(31, TRUTH);
        bytes memory error = abi.encodeWithSelector(
            IAuditCourt.NotTheClaimant.selector,
            actors[4].operator,
            actors[5].operator
        );
        refusedDemand(4, round, 5, error);
        refusedDemand(4, round, 4, notDemandable(round, 4)); // accepted
        vm.prank(actors[5].owner);
        vault.withdraw(STAKE - ENROLLED - BOND - 3 * FEE + 1);
        error = abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, actors[5].owner, 3 * FEE - 1, 3 * FEE);
        refusedDemand(5, round, 5, error);
        stake(actors[5].owner, 1);
        bytes32 caseId = demand(round, 5);
        refusedDemand(5, round, 5, abi.encodeWithSelector(IPanels.CaseExists.selector, caseId));
    }

    function test_nothing_is_demanded_before_the_round_is_decided_or_of_what_was_not_committed() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        refusedDemand(0, round, 0, notDemandable(round, 0));
        commit(0, round, 0);
        refusedDemand(0, round, 0, notDemandable(round, 0));
        claim(1, round, 1);
        pass(121);
        rounds.advance(jobId, round); // extended
        pass(121);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
        refusedDemand(1, round, 1, notDemandable(round, 1)); // lapsed
        demand(round, 0);
    }

    // ---------------------------------------------------------------- what follows

    function test_a_demand_in_vain_costs_three_fees() public {
        uint32 round = closedRound(31, TRUTH);
        draw(round);
        bytes32 caseId = demand(round, 5);
        Money memory was = money(round);
        judge(caseId, say(Finding.Reject));
        judge(caseId, say(Finding.Reject, Finding.Reject));
        eq(uint8(caseOf(caseId).phase), uint8(CasePhase.Appealable), "may still be appealed from");
        passTo(uint256(caseOf(caseId).phaseEnds) + 1);
        court.advance(caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "unpaid");
        eq(lost(was, actors[5].owner), 3 * FEE, "the demand's bond");
        for (uint256 i; i < 3; ++i) eq(gained(was, seatsOf(caseId)[i].owner), FEE, "a fee");
        eq(was.pot, pot(round), "the bond, and nothing of the job's");
        eq(ledger.potOf(COURT_FUND), was.fund, "nor of the fund's");
        finish(round);
        eq(credit(5), was.credits[5], "nothing");
        checkConservation();
    }

    /// Found by attack: a stolen key that its owner had revoked could still spend three fees a claim.
    function test_a_revoked_key_demands_no_audit_on_its_owners_stake() public {
        uint32 round = closedRound(31, TRUTH);
        Actor memory a = actors[5];
        vm.prank(a.owner);
        registry.revoke(a.operator);
        bytes memory call = abi.encodeCall(court.demandAudit, (jobId, round, 5));
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.Revoked.selector, a.operator);
        refused(a.operator, address(court), call, error);
    }

    function test_an_excluded_cheat_that_demands_is_slashed() public {
        uint32 round = closedRound(31, TRUTH);
        draw(round);
        bytes32 caseId = demand(round, 5);
        Money memory was = money(round);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
        eq(lost(was, actors[5].owner), BOND + 3 * FEE, "both bonds");
        eq(gained(was, actors[5].owner), 0, "and it is no prover");
        yes(isBarred(5), "barred");
        finish(round);
        yes(claimStatus(round, 5) == ClaimStatus.Unpaid, "unpaid");
        checkConservation();
    }

    function test_where_nobody_judges_a_demand_nothing_is_paid_and_nothing_lost() public {
        uint32 round = closedRound(31, TRUTH);
        draw(round);
        bytes32 caseId = demand(round, 5);
        Money memory was = money(round);
        silence(court, caseId);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "nobody");
        finish(round);
        eq(lost(was, actors[5].owner), 0, "whole");
        eq(credit(5), was.credits[5], "an excluded claim that nobody judged is unpaid");
    }

    function test_a_demand_holds_its_shard_back_and_no_other() public {
        uint32 round = closedRound(31, TRUTH);
        auditAll(round);
        bytes32 caseId = demand(round, 5);
        finalise(round);
        settle(round);
        expect(round, RoundStatus.Closed);
        yes(claimStatus(round, 5) == ClaimStatus.Excluded, "waits");
        yes(claimStatus(round, 0) == ClaimStatus.Paid, "the others do not");
        judge(caseId, say(Finding.Match));
        rounds.settle(jobId, round, one(5));
        expect(round, RoundStatus.Settled);
    }

    /// It is asked for after the close, so its seats are drawn from who has a ticket then.
    function test_the_first_seat_is_drawn_after_the_demand_and_not_from_the_claimant() public {
        uint32 round = closedRound(31, TRUTH);
        bytes32 caseId = demand(round, 5);
        eq(caseOf(caseId).seed, 0, "unknown");
        eq(caseOf(caseId).tickets, tickets.ticketCount(), "the list of now");
        enroll(actors[0], TICKETS); // later: not drawn
        seatPanel(court, caseId);
        Seat memory seat = seatsOf(caseId)[0];
        yes(seat.owner != actors[5].owner && seat.ticket < 14 * TICKETS, "INV-CASE-1");
    }

    // ---------------------------------------------------------------- the reserve

    /// However many demand, every reward and every sampled claim's three fees stay in the pot.
    /// forge-config: default.fuzz.runs = 32
    function test_demands_never_overdraw_a_round(uint256 lot) public {
        Terms memory t = sampledTerms();
        t.auditRateBps = uint16(1_700 + (lot % 8_301));
        t.probationSlots = uint16(1 + ((lot >> 16) % 6));
        post(t, 2);
        uint256 accepted = (lot >> 32) % 64;
        uint32 round = closedRound(accepted, TRUTH);
        bytes32[6] memory cases;
        for (uint16 s; s < 6; ++s) if ((accepted >> s) & 1 == 0) cases[s] = demand(round, s);
        bool early = (lot >> 40) & 1 == 0;
        for (uint16 s; s < 6; ++s) if (early && cases[s] != 0) climb(cases[s], lot >> (48 + 8 * s));
        draw(round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        for (uint16 s; s < 6; ++s) if (!early && cases[s] != 0) climb(cases[s], lot >> (48 + 8 * s));
        for (uint16 s; s < 6; ++s) if ((sampled >> s) & 1 == 1) climb(convene(round, s), lot >> (48 + 8 * s));
        uint256 slots = (6 * uint256(t.auditRateBps) + 9_999) / 10_000 + t.probationSlots;
        if (slots > 6) slots = 6;
        uint256 used = rounds.drawOf(jobId, round).taken;
        for (uint16 s; s < 6; ++s) used += (sampled >> s) & 1;
        yes(used <= slots, "no more slots than were reserved");
        finalise(round);
        settle(round);
        expect(round, RoundStatus.Settled);
        eq(pot(round), 0, "INV-ROUND-5");
        checkConservation();
    }

    /// Three or five seats that agree on honest work, or one: what costs the most and pays the most.
    function climb(bytes32 caseId, uint256 lot) private {
        if (lot & 1 == 0) return judge(caseId, say(Finding.Match));
        judge(caseId, say(Finding.Reject));
        if (lot & 2 == 0) return judge(caseId, say(Finding.Match, Finding.Match));
        judge(caseId, say(Finding.Reject, Finding.Fraud));
        judge(caseId, say(Finding.Match, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "a Fraud and two Rejects of five");
    }

    function test_a_demand_without_a_free_slot_pays_its_seat_from_the_half_that_is_not_paid_out() public {
        Terms memory t = sampledTerms();
        t.probationSlots = 1; // two may be sampled and one on probation: three slots
        post(t, 2);
        uint32 round = voidRound();
        bytes32[6] memory cases;
        for (uint16 s; s < 6; ++s) cases[s] = demand(round, s);
        Money memory was = money(round);
        for (uint16 s; s < 3; ++s) judge(cases[s], say(Finding.Match));
        eq(was.pot - pot(round), 3 * FEE, "a fee of each of three slots");
        was = money(round);
        judge(cases[3], say(Finding.Match));
        eq(was.pot - pot(round), HALF, "the other half of the reward");
        eq(was.fund, 0, "and the fund is empty");
        eq(gained(was, seatsOf(cases[3])[0].owner), HALF, "all that there is");
        for (uint16 s = 4; s < 6; ++s) judge(cases[s], say(Finding.Match));
        finalise(round);
        settle(round);
        expect(round, RoundStatus.Settled);
        eq(pot(round), 0, "INV-ROUND-5");
        checkConservation();
    }

    /// A sample that is still to be drawn keeps its slots; what it cannot need is free.
    function test_the_sample_comes_before_demands() public {
        Terms memory t = sampledTerms();
        t.probationSlots = 1; // three slots; five accepted claims take one
        post(t, 2);
        uint32 round = closedRound(31, TRUTH);
        Money memory was = money(round);
        judge(demand(round, 5), say(Finding.Match));
        eq(was.pot - pot(round), FEE, "a slot that the sample of five will not take");
        post(terms(), 2); // all six slots are for the sample
        round = closedRound(31, TRUTH);
        was = money(round);
        judge(demand(round, 5), say(Finding.Match));
        eq(was.pot - pot(round), FEE, "the slot of the excluded claim itself");
        eq(rounds.drawOf(jobId, round).taken, 1, "one of six");
        finish(round);
        checkConservation();
    }
}
