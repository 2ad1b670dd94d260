// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {JobView, MarketLens, OperatorView, OwnerView, RoundView} from "../contracts/MarketLens.sol";
import {
    Addresses,
    CaseKind,
    CasePhase,
    ClaimStatus,
    Finding,
    JobStatus,
    Outcome,
    PauseReason,
    RoundStatus,
    Ticket
} from "../contracts/types/Types.sol";

/// What services read at once is what the books say one by one.
contract LensTest is World {
    MarketLens private lens;

    function setUp() public {
        deploy();
        addActors(8);
        post(terms(), 5);
        Addresses memory a;
        a.tickets = address(tickets);
        (a.vault, a.ledger, a.registry, a.market) = (
            address(vault),
            address(ledger),
            address(registry),
            address(market)
        );
        (a.rounds, a.court, a.checkpoints) = (address(rounds), address(court), address(checkpoints));
        lens = new MarketLens(a);
    }

    function unsettled(uint32 from, uint32 most) private view returns (bytes32) {
        return keccak256(abi.encode(lens.jobView(jobId, from, most).unsettled));
    }

    function numbers(uint256 count, uint32 a, uint32 b, uint32 c) private pure returns (bytes32) {
        uint32[] memory list = new uint32[](count);
        if (count > 0) list[0] = a;
        if (count > 1) list[1] = b;
        if (count > 2) list[2] = c;
        return keccak256(abi.encode(list));
    }

    function test_a_job_is_seen_with_its_money_and_its_progress() public {
        vm.prank(POSTER);
        market.refund(jobId, 7);
        rounds.open(jobId);
        JobView memory v = lens.jobView(jobId, 0, 9);
        yes(v.status == JobStatus.Running && v.reason == PauseReason.None, "a round is open");
        eq(v.funded, 5 * reservation(terms()), "funded");
        eq(v.refunded, 7, "refunded");
        eq(v.escrow, 4 * reservation(terms()) - 7, "one round has its part");
        eq(v.progress.opened, 1, "opened");
        yes(v.progress.active, "active");
    }

    function test_rounds_that_are_not_settled_are_seen_oldest_first_and_the_newest_always() public {
        eq(unsettled(0, 9), numbers(0, 0, 0, 0), "none yet");
        uint32 first = drawnRound();
        close(fullRound(), 63);
        rounds.open(jobId);
        eq(unsettled(0, 9), numbers(3, 0, 1, 2), "all");
        eq(unsettled(0, 2), numbers(2, 0, 2, 0), "the oldest and the newest");
        eq(unsettled(0, 1), numbers(1, 2, 0, 0), "the newest");
        eq(unsettled(0, 0), numbers(0, 0, 0, 0), "as many as were asked for");
        eq(unsettled(1, 9), numbers(2, 1, 2, 0), "from a number on");
        eq(unsettled(3, 9), numbers(0, 0, 0, 0), "beyond the last");
        for (uint16 s; s < 6; ++s) judge(convene(first, s), say(Finding.Match));
        finalise(first);
        rounds.settle(jobId, first, range(0, 6));
        eq(unsettled(0, 9), numbers(2, 1, 2, 0), "a settled one is left out");
    }

    function test_a_round_is_seen_with_its_claims_its_sample_its_cases_and_its_doubt() public {
        uint32 round = drawnRound();
        convene(round, 2);
        judge(convene(round, 4), say(Finding.Match));
        bytes32 doubted = doubt(6, round);
        RoundView memory v = lens.roundView(jobId, round);
        yes(v.number == round && v.status == RoundStatus.Closed, "the round");
        eq(v.state.acceptedMap, 63, "its state");
        eq(v.claims.length, 6, "a claim for each shard");
        for (uint256 s; s < 6; ++s) {
            eq(v.claims[s].operator, actors[s].operator, "who claimed it");
            yes(v.statuses[s] == ClaimStatus.Accepted, "accepted");
        }
        eq(v.sample.sampledMap, 63, "everything is audited");
        eq(v.cases.length, 2, "cases");
        yes(v.cases[0].shard == 2 && v.cases[0].state.phase == CasePhase.Committing, "one goes on");
        yes(v.cases[1].shard == 4 && v.cases[1].state.outcome == Outcome.Match, "one is done");
        eq(v.cases[0].seats[0].operator, seatsOf(court.caseIdOf(jobId, round, 2))[0].operator, "its seat");
        yes(v.doubt.state.kind == CaseKind.Checkpoint, "the checkpoint's case");
        eq(v.doubt.seats.length, preset().slashPanel, "a whole panel");
        eq(doubted, checkpoints.caseIdOf(jobId, v.doubt.state.round), "of this round");
    }

    function test_a_round_that_nobody_opened_is_seen_as_none() public view {
        RoundView memory v = lens.roundView(jobId, 9);
        yes(v.number == 9 && v.status == RoundStatus.None, "none");
        for (uint256 s; s < 6; ++s) yes(v.statuses[s] == ClaimStatus.Free, "nobody's");
        eq(v.cases.length, 0, "no case");
        yes(v.doubt.state.phase == CasePhase.None, "no doubt");
    }

    function test_operators_are_seen_page_by_page() public view {
        eq(lens.operators(0, 100).length, 8, "all");
        OperatorView[] memory page = lens.operators(5, 2);
        eq(page.length, 2, "a page");
        for (uint256 i; i < 2; ++i) {
            eq(page[i].operator, actors[5 + i].operator, "in the order of their registration");
            eq(page[i].entry.owner, actors[5 + i].owner, "with their entries");
            eq(page[i].entry.payout, actors[5 + i].payout, "whole");
        }
        eq(lens.operators(7, 100).length, 1, "the last page");
        eq(lens.operators(8, 100).length, 0, "past the end");
        eq(lens.operators(9, 100).length, 0, "far past the end");
    }

    function test_tickets_are_seen_page_by_page() public view {
        uint32 count = tickets.ticketCount();
        eq(lens.tickets(0, count + 1).length, count, "all");
        Ticket[] memory page = lens.tickets(TICKETS, 3);
        eq(page.length, 3, "a page");
        for (uint256 i; i < 3; ++i) {
            yes(page[i].owner == actors[1].owner && page[i].operator == actors[1].operator, "in the order of the list");
            yes(page[i].amount == TICKET && page[i].enrolledAt > 0, "whole");
        }
        eq(lens.tickets(count - 1, 100).length, 1, "the last page");
        eq(lens.tickets(count, 100).length, 0, "past the end");
        eq(lens.tickets(count + 1, 100).length, 0, "far past the end");
    }

    function test_an_owner_is_seen_through_its_operator_with_its_stake_and_its_standing() public {
        graduate();
        OwnerView memory v = lens.ownerView(jobId, actors[0].operator);
        eq(v.owner, actors[0].owner, "the owner");
        eq(v.freeStake, STAKE - ENROLLED, "free");
        eq(v.lockedStake, ENROLLED, "behind its tickets");
        eq(v.passedAudits, 1, "passed");
        yes(!v.onProbation && !v.barred, "in good standing");
        bytes32 caseId = convene(drawnRound(), 0);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(2, Finding.Fraud));
        judge(caseId, say(2, Finding.Fraud));
        v = lens.ownerView(jobId, actors[0].operator);
        eq(v.passedAudits, 0, "forgotten");
        yes(v.onProbation && v.barred, "after a fraud");
        v = lens.ownerView(jobId, POSTER);
        eq(v.owner, address(0), "a stranger has no owner");
        eq(v.freeStake + v.lockedStake, 0, "and no stake");
    }
}
