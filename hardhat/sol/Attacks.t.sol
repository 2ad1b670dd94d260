// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {IBeacon} from "../contracts/interfaces/IBeacon.sol";
import {ICheckpointCourt, StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";
import {Claim, ClaimOpening, Finding, Outcome, RoundStatus, Seat, Terms} from "../contracts/types/Types.sol";

/// What a cheat tries on the whole protocol, who would gain what, and the rule that stops it.
contract AttacksTest is Doubts {
    function setUp() public {
        settle14(4);
    }

    // ---------------------------------------------------------------- commitments

    /// A thief sends the victim's commit as its own, first, to be paid for work it did not do.
    function test_a_commit_that_was_front_run_is_worth_nothing_to_the_thief() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        claim(1, round, 1);
        ClaimOpening memory stolen = openingOf(round, 0);
        bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, 0, baseOf(round), stolen));
        address thief = actors[1].operator;
        bytes memory error = abi.encodeWithSelector(IRoundBook.NotTheClaimant.selector, thief, actors[0].operator);
        refused(thief, address(rounds), data, error);
        // under its own claim the copy is of another shard's data, and another commitment
        bytes32 base = baseOf(round);
        vm.prank(thief);
        rounds.commit(jobId, round, 1, base, stolen);
        commit(0, round, 0);
        (Claim memory mine, ) = rounds.claimOf(jobId, round, 0);
        (Claim memory copy, ) = rounds.claimOf(jobId, round, 1);
        yes(mine.commitment != copy.commitment, "bound to its claimant and shard");
        rounds.checkOpening(jobId, round, 0, stolen);
    }

    function test_a_payload_is_not_swapped_after_the_sample() public {
        uint32 round = closedRound(63, TRUTH);
        draw(round);
        ClaimOpening memory other = openingOf(round, 0);
        rounds.checkOpening(jobId, round, 0, other);
        other.payloadDigest = keccak256("an honest payload, made in haste");
        bytes memory data = abi.encodeCall(rounds.checkOpening, (jobId, round, 0, other));
        refused(POSTER, address(rounds), data, IRoundBook.WrongOpening.selector);
        bytes32 base = baseOf(round);
        data = abi.encodeCall(rounds.commit, (jobId, round, 0, base, other));
        refused(actors[0].operator, address(rounds), data, IRoundBook.WrongRoundStatus.selector);
    }

    function test_a_commitment_holds_on_one_chain_in_one_deployment_job_round_and_base_only(uint8 which) public view {
        ClaimOpening memory o = openingOf(0, 0);
        address who = actors[0].operator;
        bytes32 right = TraceLib.commitmentOf(address(rounds), jobId, 0, 0, who, TRUTH, o);
        bytes32 replayed;
        if (which % 6 == 0) replayed = TraceLib.commitmentOf(address(court), jobId, 0, 0, who, TRUTH, o);
        if (which % 6 == 1) replayed = TraceLib.commitmentOf(address(rounds), "job", 0, 0, who, TRUTH, o);
        if (which % 6 == 2) replayed = TraceLib.commitmentOf(address(rounds), jobId, 1, 0, who, TRUTH, o);
        if (which % 6 == 3) replayed = TraceLib.commitmentOf(address(rounds), jobId, 0, 1, who, TRUTH, o);
        if (which % 6 == 4) replayed = TraceLib.commitmentOf(address(rounds), jobId, 0, 0, who, LIE, o);
        if (which % 6 == 5) replayed = TraceLib.commitmentOf(address(rounds), jobId, 0, 0, POSTER, TRUTH, o);
        yes(replayed != right, "bound");
    }

    function test_a_commitment_does_not_open_on_a_fork_with_another_chain_id() public {
        uint32 round = closedRound(63, TRUTH);
        ClaimOpening memory o = openingOf(round, 0);
        rounds.checkOpening(jobId, round, 0, o);
        vm.chainId(4242);
        bytes memory data = abi.encodeCall(rounds.checkOpening, (jobId, round, 0, o));
        refused(POSTER, address(rounds), data, IRoundBook.WrongOpening.selector);
    }

    function test_a_finding_about_a_checkpoint_holds_for_one_case_seat_and_operator(uint8 which) public view {
        StepFinding memory f = found(63, TRUTH);
        bytes32 id = checkpoints.caseIdOf(jobId, 0);
        bytes32 right = checkpoints.rootOf(id, 0, POSTER, f);
        bytes32 replayed;
        if (which % 4 == 0) replayed = checkpoints.rootOf(checkpoints.caseIdOf(jobId, 1), 0, POSTER, f);
        if (which % 4 == 1) replayed = checkpoints.rootOf(id, 1, POSTER, f);
        if (which % 4 == 2) replayed = checkpoints.rootOf(id, 0, address(this), f);
        if (which % 4 == 3) replayed = checkpoints.rootOf(checkpoints.caseIdOf("job", 0), 0, POSTER, f);
        yes(replayed != right, "bound");
        yes(id != court.caseIdOf(jobId, 0, 0) && id != rounds.potOf(jobId, 0), "no two pots share a name");
    }

    // ---------------------------------------------------------------- reorganisations

    /// A transaction that outlives a reorganisation, or a replaced checkpoint, commits to nothing on another base.
    function test_commit_and_attest_name_their_base() public {
        uint32 first = closedRound(63, LIE);
        bytes32 caseId = doubt(first);
        uint32 stale = rounds.open(jobId);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expect(stale, RoundStatus.Orphaned);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        bytes memory error = abi.encodeWithSelector(IRoundBook.WrongBase.selector, LIE, TRUTH);
        bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, 0, LIE, openingOf(round, 0)));
        refused(actors[0].operator, address(rounds), data, error);
        commit(0, round, 0);
        for (uint16 s = 1; s < 6; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        data = abi.encodeCall(rounds.attest, (jobId, round, LIE, 63, keccak256("next")));
        refused(actors[0].operator, address(rounds), data, error);
        attest(0, round, 63, keccak256("next"));
    }

    /// After a reorganisation the same steps are sent again, in another second and block: they do the same.
    function test_every_step_is_repeated_after_a_reorganisation_with_the_same_outcome() public {
        uint256 snapshot = vm.snapshotState();
        bytes32 before = playLie();
        vm.revertToState(snapshot);
        mine(3);
        pass(7);
        eq(playLie(), before, "other panels, the same end");
    }

    function playLie() private returns (bytes32) {
        uint32 round = closedRound(63, LIE);
        judgeStep(doubt(round), times(5, found(63, TRUTH)));
        finish(round);
        uint256[] memory stakes = new uint256[](6);
        for (uint256 i; i < 6; ++i) stakes[i] = vault.balanceOf(actors[i].owner);
        return keccak256(abi.encode(rounds.checkpointOf(jobId, 1), stakes, pot(round)));
    }

    // ---------------------------------------------------------------- the moment

    /// Who sends the last attestation chooses the block whose successor draws the sample, and cannot know its hash.
    function test_whoever_closes_chooses_the_second_and_not_the_sample() public {
        uint32 round = fullRound();
        agree(round, 63, TRUTH);
        uint256 ticket = rounds.drawOf(jobId, round).beaconTicket;
        eq(ticket, height() + 1, "the next block");
        bytes memory data = abi.encodeCall(rounds.draw, (jobId, round));
        bytes memory error = abi.encodeWithSelector(IBeacon.SeedNotReady.selector, ticket, height());
        refused(actors[4].operator, address(rounds), data, error);
        mine(1);
        error = abi.encodeWithSelector(IBeacon.SeedNotReady.selector, ticket, height());
        refused(actors[4].operator, address(rounds), data, error);
        mine(1);
        uint256 snapshot = vm.snapshotState();
        rounds.draw(jobId, round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        vm.revertToState(snapshot);
        pass(20);
        vm.prank(actors[4].operator);
        rounds.draw(jobId, round);
        eq(rounds.drawOf(jobId, round).sampledMap, sampled, "whoever draws, and whenever, gets the same");
    }

    function test_a_panel_of_a_reopened_sample_is_unknown_to_who_replaced_the_bitmap() public {
        uint32 round = closedRound(1, LIE);
        draw(round);
        bytes32 seed = rounds.drawOf(jobId, round).seed;
        judgeStep(doubt(5, round), times(5, found(63, TRUTH, LIE)));
        eq(rounds.drawOf(jobId, round).beaconTicket, height() + 1, "pinned anew");
        draw(round);
        yes(rounds.drawOf(jobId, round).seed != seed, "by another block");
    }

    // ---------------------------------------------------------------- majorities

    /// Four of five shards captured: more than two thirds of the weight, so that the captor alone closes the round. It
    /// votes the fifth out to spite its owner: the court puts it back, or pays half.
    function test_who_captures_four_of_five_shards_cannot_starve_the_fifth() public {
        Terms memory t = sampledTerms();
        (t.shardsPerRound, t.probationSlots, t.minShards) = (5, 5, 2);
        post(t, 2);
        uint32 round = rounds.open(jobId);
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, range(0, 4)));
        bytes memory error = abi.encodeWithSelector(IRoundBook.TooManyClaims.selector, actors[0].owner, 4, 2);
        refused(actors[0].operator, address(rounds), data, error); // a quarter, until half of the round
        claim(5, round, 4);
        commit(5, round, 4);
        pass(61);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(0, 4));
        for (uint16 s; s < 4; ++s) commit(0, round, s);
        attest(0, round, 15, LIE); // the right step of four
        expect(round, RoundStatus.Closed);
        uint256 had = credit(5);
        bytes32 caseId = doubt(5, round);
        judgeStep(caseId, times(5, found(31, TRUTH, LIE)));
        draw(round);
        for (uint16 s; s < 5; ++s) {
            if ((rounds.drawOf(jobId, round).sampledMap >> s) & 1 == 1) judge(convene(round, s), say(Finding.Match));
        }
        finalise(round);
        rounds.settle(jobId, round, range(0, 5));
        yes(credit(5) - had >= TOKEN, "the fifth is paid in full");
        eq(vault.balanceOf(actors[5].owner), STAKE, "and its doubt cost nothing");
        checkConservation();
    }

    /// A third of the weight stays silent to stop the market: the second window counts who speaks.
    function test_a_third_that_stays_silent_stops_nothing() public {
        uint32 round = fullRound();
        for (uint256 i; i < 4; ++i) attest(i, round, 63, TRUTH); // four of six are not more than two thirds
        expect(round, RoundStatus.Sealed);
        pass(61);
        rounds.advance(jobId, round);
        for (uint256 i; i < 3; ++i) attest(i, round, 63, TRUTH);
        expect(round, RoundStatus.Tallied);
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Closed);
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "by those who spoke");
        finish(round);
        checkConservation();
    }

    /// Copying another's vote saves the work of the step, and shares its fate.
    function test_who_copies_a_vote_is_convicted_with_it() public {
        uint32 round = fullRound();
        attest(0, round, 63, LIE);
        for (uint256 i = 1; i < 5; ++i) attest(i, round, 63, LIE); // seen in the first one's transaction
        judgeStep(doubt(round), times(5, found(63, TRUTH)));
        finish(round);
        for (uint256 i; i < 5; ++i) eq(vault.balanceOf(actors[i].owner), STAKE - BOND, "each");
    }

    /// A poster claims in its own job and votes the others out, to have their work for nothing.
    function test_work_that_a_posters_majority_left_out_is_paid_half() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        commit(0, round, 0);
        pass(61);
        vm.prank(actors[2].operator); // the poster's own
        rounds.claim(jobId, round, range(1, 6));
        for (uint16 s = 1; s < 6; ++s) commit(2, round, s);
        attest(2, round, 62, TRUTH);
        expect(round, RoundStatus.Closed);
        draw(round);
        uint256 had = credit(0);
        vm.prank(actors[0].operator);
        bytes32 caseId = court.demandAudit(jobId, round, 0);
        judge(caseId, say(Finding.Match));
        uint256 escrow = ledger.potOf(jobId);
        finish(round);
        eq(credit(0) - had, TOKEN / 2, "half a reward");
        uint256 back = ledger.potOf(jobId) - escrow;
        yes(back < reservation(sampledTerms()) - 5 * TOKEN - TOKEN / 2, "and the poster pays for it and for its audit");
        checkConservation();
    }

    // ---------------------------------------------------------------- judging oneself

    /// One owner with two operators and tickets of both: counted once, and never in its own case.
    function test_an_owner_with_several_operators_judges_itself_with_none_of_them() public {
        Actor memory second = actors[0];
        second.key = 0xFACE;
        second.operator = vm.addr(second.key);
        register(second, second.operator, second.key);
        enroll(second, 20);
        uint32 round = closedRound(63, LIE);
        draw(round);
        bytes32 caseId = doubt(round); // the owner of 0 attested
        seatPanel(checkpoints, caseId);
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) yes(seats[i].owner != actors[0].owner, "INV-CASE-1");
        bytes memory data = stepChallengeOf(round);
        refused(second.operator, address(checkpoints), data, ICheckpointCourt.OwnAttestation.selector);
    }

    // ---------------------------------------------------------------- clocks

    /// A producer shifts its clock by fifteen minutes: windows of a public chain are an hour, and still nothing is paid
    /// in the same quarter of it.
    function test_a_clock_off_by_fifteen_minutes_pays_and_ends_nothing_at_once() public {
        Terms memory t = sampledTerms();
        (t.windows.challenge, t.windows.auditCommit, t.windows.auditReveal) = (3_600, 3_600, 3_600);
        post(t, 2);
        uint32 round = closedRound(63, LIE);
        pass(900);
        auditAll(round);
        nothingToSettle(round);
        bytes32 caseId = doubt(round);
        seatPanel(checkpoints, caseId);
        uint256 ends = stepCase(caseId).phaseEnds;
        pass(900);
        bytes memory error = abi.encodeWithSignature("PhaseRunning(uint256,uint256)", clock(), ends);
        bytes memory data = abi.encodeWithSignature("advance(bytes32)", caseId);
        refused(POSTER, address(checkpoints), data, error);
        for (uint16 i; i < 5; ++i) commitStep(caseId, i, found(63, TRUTH));
        pass(900);
        for (uint16 i; i < 5; ++i) revealStep(caseId, i, found(63, TRUTH));
        expectStep(caseId, Outcome.Fraud);
        finish(round);
        checkConservation();
    }

    // ---------------------------------------------------------------- loops

    /// Each replacement makes every later look at a round a step longer, and costs a panel: ten of them are nothing.
    function test_settling_costs_little_more_after_ten_replacements() public {
        Terms memory t = sampledTerms();
        t.rounds = 30;
        post(t, 30);
        uint256 before = settleCost();
        for (uint256 i; i < 10; ++i) {
            uint32 round = closedRound(63, LIE);
            uint32 orphan = rounds.open(jobId);
            bytes32 caseId = doubt(round);
            judgeStep(caseId, times(5, found(63, TRUTH)));
            settle(orphan);
            finish(round);
        }
        eq(rounds.progressOf(jobId).generation, 10, "ten");
        yes(settleCost() < before + before / 4, "a quarter more at most");
    }

    function settleCost() private returns (uint256 gas) {
        uint32 round = closedRound(63, TRUTH);
        auditAll(round);
        finalise(round);
        gas = gasleft();
        settle(round);
        gas -= gasleft();
    }
}
