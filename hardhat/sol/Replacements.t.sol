// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {ICheckpointCourt} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {ClaimStatus, Finding, JobStatus, Outcome, Progress, Round, RoundStatus} from "../contracts/types/Types.sol";

/// What a replaced checkpoint does to everything that was built on it. INV-ROUND-6.
contract ReplacementsTest is Doubts {
    function setUp() public {
        settle14(5);
    }

    function replace(uint32 round) private returns (bytes32 caseId) {
        caseId = doubt(round);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        expectStep(caseId, Outcome.Fraud);
    }

    function progress() private view returns (Progress memory) {
        return rounds.progressOf(jobId);
    }

    function expectJob(JobStatus status) private view {
        (JobStatus have, ) = market.statusOf(jobId);
        eq(uint8(have), uint8(status), "job status");
    }

    // ---------------------------------------------------------------- what is orphaned

    function test_rounds_built_on_it_are_orphaned_and_everything_in_them_returns() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        uint32 third = rounds.open(jobId);
        claim(0, third, 0);
        claim(1, third, 1);
        commit(1, third, 1);
        uint256 escrow = ledger.potOf(jobId);
        uint256[] memory had = new uint256[](6);
        for (uint256 i; i < 6; ++i) had[i] = credit(i);
        replace(first);
        for (uint256 i; i < 6; ++i) had[i] = credit(i) - had[i];

        expect(first, RoundStatus.Closed);
        expect(second, RoundStatus.Orphaned);
        expect(third, RoundStatus.Orphaned);
        eq(progress().closed, 1, "back to the first checkpoint");
        eq(rounds.checkpointOf(jobId, 1), TRUTH, "the right one");
        eq(rounds.checkpointOf(jobId, 2), 0, "and none after it");
        yes(!progress().active, "nothing is open");

        settle(second);
        settle(third);
        eq(ledger.potOf(jobId), escrow + 2 * reservation(sampledTerms()), "both reservations");
        finish(first);
        for (uint256 i; i < 5; ++i) {
            eq(vault.balanceOf(actors[i].owner), STAKE - BOND, "convicted in the first round only, and no lapse fee");
            eq(locked(i), ENROLLED, "nothing is locked");
        }
        for (uint16 s; s < 6; ++s) yes(claimStatus(second, s) == ClaimStatus.Unpaid, "unpaid");
        checkConservation();
    }

    function test_nobody_works_on_an_orphaned_round() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = rounds.open(jobId);
        claim(0, second, 0);
        replace(first);
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongRoundStatus.selector,
            RoundStatus.Orphaned,
            RoundStatus.Open
        );
        bytes32 base = baseOf(second);
        bytes memory data = abi.encodeCall(rounds.commit, (jobId, second, 0, base, openingOf(second, 0)));
        refused(actors[0].operator, address(rounds), data, error);
        data = abi.encodeCall(rounds.claim, (jobId, second, one(1)));
        refused(actors[1].operator, address(rounds), data, error);
        data = abi.encodeCall(rounds.advance, (jobId, second));
        error = abi.encodeWithSelector(IRoundBook.NothingDue.selector, RoundStatus.Orphaned);
        refused(POSTER, address(rounds), data, error);
    }

    function test_orphaned_claims_are_neither_audited_nor_challenged_nor_demanded() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(31, keccak256("second"));
        draw(second);
        replace(first);
        uint256 map = rounds.drawOf(jobId, second).sampledMap;
        uint16 sampled;
        while ((map >> sampled) & 1 == 0) ++sampled;
        uint16 other;
        while ((map >> other) & 1 == 1) ++other;
        bytes memory data = abi.encodeCall(court.convene, (jobId, second, one(sampled)));
        refused(POSTER, address(court), data, IAuditCourt.NotSampled.selector);
        data = challengeOf(second, other);
        refused(actors[DOUBTER].operator, address(court), data, IAuditCourt.NotChallengeable.selector);
        data = abi.encodeCall(court.demandAudit, (jobId, second, 5));
        refused(actors[5].operator, address(court), data, IAuditCourt.NotDemandable.selector);
        data = stepChallengeOf(second);
        refused(actors[DOUBTER].operator, address(checkpoints), data, ICheckpointCourt.NotChallengeable.selector);
    }

    /// A cheat gets its own round orphaned while its claim is judged: the case goes on, and the bond waits for it.
    function test_a_case_that_was_open_goes_on_and_slashes() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        draw(second);
        uint16 shard;
        while ((rounds.drawOf(jobId, second).sampledMap >> shard) & 1 == 0) ++shard;
        bytes32 caseId = convene(second, shard);
        judge(caseId, say(Finding.Fraud));
        replace(first);
        settle(second);
        yes(claimStatus(second, shard) == ClaimStatus.Excluded, "not settled yet");
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
        eq(vault.balanceOf(actors[shard].owner), STAKE - BOND, "slashed");
        rounds.settle(jobId, second, one(shard));
        expect(second, RoundStatus.Settled);
        checkConservation();
    }

    function test_an_owner_that_lapsed_before_pays_and_one_that_could_not_go_on_does_not() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = rounds.open(jobId);
        claim(0, second, 0); // will lapse, and be charged by the next claimant
        claim(6, second, 2);
        bytes32 caseId = doubt(first);
        seatPanel(checkpoints, caseId);
        for (uint16 i; i < 5; ++i) commitStep(caseId, i, found(63, TRUTH));
        pass(60);
        for (uint16 i; i < 5; ++i) revealStep(caseId, i, found(63, TRUTH));
        expect(second, RoundStatus.Orphaned);
        pass(200);
        settle(second);
        eq(vault.balanceOf(actors[6].owner), STAKE, "no lapse fee");
        eq(locked(6), ENROLLED, "its bond is free");
        expect(second, RoundStatus.Settled);
    }

    // ---------------------------------------------------------------- going on

    function test_the_job_goes_on_from_the_right_checkpoint() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        replace(first);
        expectJob(JobStatus.Ready);
        uint32 third = closedRound(63, keccak256("third"));
        eq(baseOf(third), TRUTH, "its base");
        eq(baseOf(second), LIE, "and not that one");
        (Round memory r, ) = rounds.roundOf(jobId, third);
        eq(r.checkpoint, 2, "the number of the orphaned one");
        eq(rounds.checkpointOf(jobId, 2), keccak256("third"), "overwritten");
        yes(!rounds.isOrphaned(jobId, third), "built on the right one");
        settle(second);
        finish(first);
        finish(third);
        checkConservation();
    }

    function test_the_last_checkpoint_is_replaced_in_its_place_and_the_next_round_builds_on_it() public {
        uint32 first = closedRound(63, LIE);
        replace(first);
        eq(progress().generation, 0, "nothing was built on it");
        uint32 second = rounds.open(jobId);
        eq(baseOf(second), TRUTH, "base");
        yes(!rounds.isOrphaned(jobId, second), "not orphaned");
    }

    function test_a_job_that_had_ended_is_ready_again() public {
        uint32 first = closedRound(63, LIE);
        for (uint256 i; i < 4; ++i) closedRound(63, keccak256(abi.encode(i)));
        expectJob(JobStatus.Draining); // five of five
        refused(
            POSTER,
            address(market),
            abi.encodeCall(market.close, (jobId)),
            abi.encodeWithSelector(IJobMarket.JobNotClosable.selector, jobId, JobStatus.Draining)
        );
        replace(first);
        eq(progress().closed, 1, "one of five");
        for (uint32 i = 1; i < 5; ++i) settle(first + i);
        expectJob(JobStatus.Ready);
        uint32 again = rounds.open(jobId);
        eq(baseOf(again), TRUTH, "on the right one");
        refused(
            POSTER,
            address(market),
            abi.encodeCall(market.close, (jobId)),
            abi.encodeWithSelector(IJobMarket.JobNotClosable.selector, jobId, JobStatus.Running)
        );
    }

    // ---------------------------------------------------------------- two doubts

    function test_the_earlier_one_first_orphans_the_later_case() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        bytes32 late = doubt(12, second);
        replace(first);
        judgeStep(late, times(5, found(63, keccak256("right second"))));
        expectStep(late, Outcome.Fraud);
        eq(progress().closed, 1, "the second is orphaned, whatever it was");
        eq(progress().generation, 1, "one replacement");
        eq(vault.balanceOf(actors[12].owner), STAKE, "its bond returns");
        settle(second);
        expect(second, RoundStatus.Settled);
        finish(first);
        checkConservation();
    }

    function test_the_later_one_first_and_then_the_earlier_one() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        uint32 third = closedRound(63, keccak256("third"));
        bytes32 early = doubt(first);
        bytes32 late = doubt(12, second);
        judgeStep(late, times(5, found(63, keccak256("right second"))));
        expect(third, RoundStatus.Orphaned);
        expect(second, RoundStatus.Closed);
        eq(progress().closed, 2, "two checkpoints");
        uint32 fourth = closedRound(63, keccak256("fourth"));
        eq(baseOf(fourth), keccak256("right second"), "built on it");
        judgeStep(early, times(5, found(63, TRUTH)));
        expect(second, RoundStatus.Orphaned);
        expect(fourth, RoundStatus.Orphaned);
        eq(progress().closed, 1, "one checkpoint");
        eq(progress().generation, 2, "two replacements");
        uint32 fifth = rounds.open(jobId);
        eq(baseOf(fifth), TRUTH, "on the right one");
        yes(!rounds.isOrphaned(jobId, fifth), "not orphaned");
        settle(second);
        settle(third);
        settle(fourth);
        finish(first);
        // convicted in the second round before it was orphaned, and in the first
        for (uint256 i; i < 5; ++i) eq(vault.balanceOf(actors[i].owner), STAKE - 2 * BOND, "both lies");
        checkpoints.distribute(early);
        checkpoints.distribute(late);
        checkConservation();
    }

    function test_a_void_round_between_counts_for_nothing() public {
        uint32 first = closedRound(63, LIE);
        uint32 empty = fullRound();
        pass(61);
        rounds.advance(jobId, empty);
        expect(empty, RoundStatus.Void);
        // the first one's window is over by now; the next is built on the same checkpoint
        pass(121);
        uint32 third = closedRound(63, keccak256("third"));
        (Round memory r, ) = rounds.roundOf(jobId, third);
        eq(r.checkpoint, 2, "void rounds make no checkpoint");
        bytes32 caseId = doubt(third);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        eq(rounds.checkpointOf(jobId, 2), TRUTH, "replaced");
        eq(rounds.checkpointOf(jobId, 1), LIE, "the first stands");
        expect(empty, RoundStatus.Void);
        finish(first);
        settle(empty);
        finish(third);
        checkConservation();
    }

    /// Found by attack: two thirds of the weight lie about a digest, are doubted, and have a friend doubt the round before,
    /// of which they had only named another bitmap. It is replaced first; their own round was orphaned, settled at once
    /// with all bonds whole, and its panel was not paid.
    function test_liars_do_not_get_out_of_a_conviction_by_having_their_round_orphaned() public {
        uint32 first = closedRound(31, keccak256("step of 31"));
        uint32 second = closedRound(63, LIE);
        draw(second);
        bytes32 accusing = doubt(12, second);
        bytes32 friendly = doubt(5, first);
        judgeStep(friendly, times(5, found(63, TRUTH, keccak256("step of 31"))));
        expectStep(friendly, Outcome.Reject);
        expect(second, RoundStatus.Orphaned);
        nothingToSettle(second); // while its checkpoint is judged
        Money memory was = money(second);
        judgeStep(accusing, times(5, found(63, keccak256("right second"))));
        expectStep(accusing, Outcome.Fraud);
        for (uint256 i; i < 5; ++i) eq(gained(was, stepSeats(accusing)[i].owner), FEE, "the panel is paid");
        settle(second);
        for (uint256 i; i < 5; ++i) eq(lost(was, actors[i].owner), BOND, "slashed");
        checkpoints.distribute(accusing);
        finish(first);
        for (uint256 i; i < 5; ++i) eq(lost(was, actors[i].owner), BOND, "for the second round only");
        checkConservation();
    }

    function test_a_job_is_not_closed_while_a_case_about_an_orphaned_checkpoint_is_open() public {
        uint32 first = closedRound(63, LIE);
        uint32 second = closedRound(63, keccak256("second"));
        bytes32 late = doubt(12, second);
        replace(first);
        finish(first);
        vm.prank(POSTER);
        market.cancel(jobId);
        expectJob(JobStatus.Draining);
        nothingToSettle(second);
        silence(checkpoints, late);
        settle(second);
        expectJob(JobStatus.Closable);
        market.close(jobId);
        checkConservation();
    }

    // ---------------------------------------------------------------- the sample

    /// Found by attack: who held two thirds of the weight left its own bits out, so that the sample missed them, and had a
    /// friend doubt the bitmap. The court put them back, and they were paid without an audit.
    function test_what_comes_back_into_a_bitmap_is_sampled_like_everything_else() public {
        post(terms(), 2); // everything is to be audited
        uint32 round = closedRound(1, LIE);
        draw(round);
        eq(rounds.drawOf(jobId, round).sampledMap, 1, "one claim");
        judge(convene(round, 0), say(Finding.Match));
        bytes32 caseId = doubt(5, round);
        judgeStep(caseId, times(5, found(63, TRUTH, LIE)));
        expectStep(caseId, Outcome.Reject);
        finalise(round);
        rounds.settle(jobId, round, one(0)); // its audit is done
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(1, 6)));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NothingToSettle.selector));
        draw(round);
        eq(rounds.drawOf(jobId, round).sampledMap, 63, "all six");
        finish(round);
        checkConservation();
    }

    function test_a_bitmap_that_gains_nothing_is_not_drawn_again() public {
        uint32 round = closedRound(63, LIE);
        draw(round);
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        replace(round);
        yes(rounds.drawOf(jobId, round).drawn, "the sample stands");
        eq(rounds.drawOf(jobId, round).sampledMap, map, "as it was");
        bytes memory data = abi.encodeCall(rounds.draw, (jobId, round));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.AlreadyDrawn.selector, jobId, round));
        finish(round);
    }

    function test_a_second_draw_takes_the_usual_share_of_what_came_back() public {
        uint32 round = closedRound(1, LIE);
        draw(round);
        eq(rounds.drawOf(jobId, round).sampledMap, 1, "a fifth of one, rounded up");
        bytes32 caseId = doubt(5, round);
        judgeStep(caseId, times(5, found(63, TRUTH, LIE)));
        yes(!rounds.drawOf(jobId, round).drawn, "to be drawn");
        draw(round);
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        uint256 more;
        for (uint256 s = 1; s < 6; ++s) more += (map >> s) & 1;
        eq(more, 1, "a fifth of five");
        yes(map & 1 == 1, "beside the one of before");
        finish(round);
        checkConservation();
    }

    /// Claims that come back after they were audited on demand are not drawn: they have had their case.
    function test_a_second_draw_leaves_out_what_was_audited_on_demand() public {
        post(terms(), 2);
        uint32 round = closedRound(1, LIE);
        draw(round);
        judge(convene(round, 0), say(Finding.Match));
        bytes32 caseId = doubt(12, round);
        for (uint16 s = 1; s < 6; ++s) {
            vm.prank(actors[s].operator);
            bytes32 demanded = court.demandAudit(jobId, round, s);
            if (s < 5) judge(demanded, say(Finding.Match));
        }
        judgeStep(caseId, times(5, found(63, TRUTH, LIE)));
        draw(round);
        eq(rounds.drawOf(jobId, round).sampledMap, 1, "nothing more");
        judge(court.caseIdOf(jobId, round, 5), say(Finding.Match));
        finish(round);
        checkConservation();
    }
}
