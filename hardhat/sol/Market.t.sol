// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {IRewardLedger} from "../contracts/interfaces/IRewardLedger.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {JobStatus, PauseReason, RoundStatus, Terms} from "../contracts/types/Types.sol";

contract MarketTest is World {
    address private constant STRANGER = address(0x5757);

    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 2);
    }

    function expect(JobStatus status, PauseReason reason) private view {
        (JobStatus s, PauseReason r) = market.statusOf(jobId);
        eq(uint8(s), uint8(status), "status");
        eq(uint8(r), uint8(reason), "reason");
    }

    function test_posting_takes_the_escrow_in_one_transaction_and_once() public {
        Terms memory t = terms();
        eq(ledger.potOf(jobId), 2 * reservation(t), "escrow");
        eq(market.reservationOf(jobId), reservation(t), "one round");
        bytes memory again = abi.encodeCall(market.post, (t, bytes32(0), reservation(t), ""));
        bytes memory error = abi.encodeWithSelector(IJobMarket.JobExists.selector, jobId);
        refused(POSTER, address(market), again, error);
        t.rewardPerShard += 1;
        t.auditFee += 1;
        again = abi.encodeCall(market.post, (t, bytes32(0), reservation(t), ""));
        refused(POSTER, address(market), again, error);
        eq(keccak256(abi.encode(market.termsOf(jobId))), keccak256(abi.encode(terms())), "INV-JOB-1");
        (uint256 funded, uint256 refunded) = market.totalsOf(jobId);
        eq(funded, 2 * reservation(terms()), "funded");
        eq(refunded, 0, "refunded");
    }

    function test_an_escrow_below_one_round_is_refused_with_the_numbers() public {
        uint256 need = reservation(terms());
        bytes memory error = abi.encodeWithSelector(IJobMarket.EscrowTooSmall.selector, need - 1, need);
        refused(POSTER, address(market), abi.encodeCall(market.post, (terms(), "x", need - 1, "")), error);
    }

    function test_without_tokens_no_job_is_left_behind() public {
        uint256 count = market.jobCount();
        bytes memory data = abi.encodeCall(market.post, (terms(), "x", reservation(terms()), ""));
        vm.prank(STRANGER);
        (bool done, ) = address(market).call(data);
        yes(!done, "refused");
        eq(market.jobCount(), count, "jobs");
    }

    function test_only_the_poster_steers_a_job() public {
        bytes memory error = abi.encodeWithSelector(IJobMarket.NotThePoster.selector, STRANGER, POSTER);
        refused(STRANGER, address(market), abi.encodeCall(market.pause, (jobId)), error);
        refused(STRANGER, address(market), abi.encodeCall(market.resume, (jobId)), error);
        refused(STRANGER, address(market), abi.encodeCall(market.cancel, (jobId)), error);
        refused(STRANGER, address(market), abi.encodeCall(market.refund, (jobId, 1)), error);
        error = abi.encodeWithSelector(IJobMarket.NoSuchJob.selector, bytes32("none"));
        refused(STRANGER, address(market), abi.encodeCall(market.fund, ("none", 1)), error);
        refused(STRANGER, address(market), abi.encodeCall(market.termsOf, ("none")), error);
    }

    function test_a_round_takes_its_reservation_out_of_reach_of_the_poster() public {
        uint32 round = rounds.open(jobId);
        eq(pot(round), reservation(terms()), "reserved");
        vm.prank(POSTER);
        market.refund(jobId, 0);
        eq(ledger.creditOf(POSTER), reservation(terms()), "the other half");
        eq(pot(round), reservation(terms()), "untouched");
        expect(JobStatus.Running, PauseReason.None);
    }

    function test_an_empty_escrow_pauses_the_job_and_anyone_may_top_it_up() public {
        vm.prank(POSTER);
        market.refund(jobId, reservation(terms()) + 1);
        expect(JobStatus.Paused, PauseReason.Escrow);
        uint256 need = reservation(terms());
        bytes memory error = abi.encodeWithSelector(IRoundBook.EscrowTooSmall.selector, need - 1, need);
        refused(STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId)), error);
        mint(STRANGER, 1);
        vm.startPrank(STRANGER);
        token.approve(address(ledger), 1);
        market.fund(jobId, 1);
        vm.stopPrank();
        expect(JobStatus.Ready, PauseReason.None);
        rounds.open(jobId);
    }

    function test_too_few_auditors_pause_the_job() public {
        for (uint256 i; i < 2; ++i) exitAll(actors[i]);
        expect(JobStatus.Paused, PauseReason.Auditors);
        bytes memory error = abi.encodeWithSelector(IRoundBook.TooFewAuditors.selector, 5, 6);
        refused(STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId)), error);
    }

    function test_pause_and_resume_hold_back_new_rounds_only() public {
        uint32 round = fullRound();
        vm.startPrank(POSTER);
        market.pause(jobId);
        vm.stopPrank();
        close(round, 63);
        yes(statusOf(round) == RoundStatus.Closed, "the open round goes on");
        expect(JobStatus.Paused, PauseReason.Poster);
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.JobNotReady.selector,
            jobId,
            JobStatus.Paused,
            PauseReason.Poster
        );
        refused(STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId)), error);
        vm.prank(POSTER);
        market.resume(jobId);
        expect(JobStatus.Ready, PauseReason.None);
    }

    function test_a_cancelled_job_drains_and_is_closed_by_anyone() public {
        uint32 round = rounds.open(jobId);
        vm.prank(POSTER);
        market.cancel(jobId);
        expect(JobStatus.Running, PauseReason.None);
        pass(121);
        rounds.advance(jobId, round);
        pass(121);
        rounds.advance(jobId, round);
        expect(JobStatus.Draining, PauseReason.None);
        bytes memory error = abi.encodeWithSelector(IJobMarket.JobNotClosable.selector, jobId, JobStatus.Draining);
        refused(STRANGER, address(market), abi.encodeCall(market.close, (jobId)), error);
        rounds.settle(jobId, round, range(0, 6));
        expect(JobStatus.Closable, PauseReason.None);
        vm.prank(STRANGER);
        market.close(jobId);
        expect(JobStatus.Closed, PauseReason.None);
        eq(ledger.creditOf(POSTER), 2 * reservation(terms()), "all of it back");
        error = abi.encodeWithSelector(IJobMarket.JobOver.selector, jobId);
        refused(POSTER, address(market), abi.encodeCall(market.fund, (jobId, 1)), error);
        error = abi.encodeWithSelector(IJobMarket.JobNotClosable.selector, jobId, JobStatus.Closed);
        refused(STRANGER, address(market), abi.encodeCall(market.close, (jobId)), error);
    }

    function test_an_abandoned_job_can_be_closed_after_its_last_second_of_grace() public {
        vm.prank(POSTER);
        market.pause(jobId);
        pass(600);
        expect(JobStatus.Paused, PauseReason.Poster);
        pass(1);
        expect(JobStatus.Closable, PauseReason.Poster);
        market.close(jobId);
        eq(ledger.creditOf(POSTER), 2 * reservation(terms()), "refund with the poster away");
    }

    function test_a_job_that_can_go_on_is_not_abandoned() public {
        pass(10_000);
        expect(JobStatus.Ready, PauseReason.None);
    }

    function test_three_void_rounds_in_a_row_end_a_job() public {
        for (uint256 i; i < 3; ++i) {
            uint32 round = rounds.open(jobId);
            pass(121);
            rounds.advance(jobId, round);
            pass(121);
            rounds.advance(jobId, round);
            yes(statusOf(round) == RoundStatus.Void, "void");
            rounds.settle(jobId, round, range(0, 6));
            if (i == 2) break;
            expect(JobStatus.Paused, PauseReason.VoidRound);
            pass(120);
            expect(JobStatus.Paused, PauseReason.VoidRound);
            pass(1);
            expect(JobStatus.Ready, PauseReason.None);
        }
        expect(JobStatus.Closable, PauseReason.None);
        market.close(jobId);
    }

    function test_the_guardian_stops_new_jobs_and_nothing_else() public {
        bytes memory error = abi.encodeWithSelector(IJobMarket.NotTheGuardian.selector, STRANGER);
        refused(STRANGER, address(market), abi.encodeCall(market.allowPosting, (false)), error);
        uint32 round = fullRound();
        market.allowPosting(false);
        error = abi.encodeWithSelector(IJobMarket.PostingPaused.selector);
        refused(POSTER, address(market), abi.encodeCall(market.post, (terms(), "x", 1, "")), error);
        close(round, 63);
        rounds.open(jobId);
        vm.prank(POSTER);
        market.cancel(jobId);
        vm.prank(actors[0].owner);
        vault.withdraw(TOKEN);
    }

    function test_a_job_with_all_rounds_trained_is_closed() public {
        Terms memory t = terms();
        t.rounds = 1;
        post(t, 1);
        uint32 round = drawnRound();
        expect(JobStatus.Draining, PauseReason.None);
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.JobNotReady.selector,
            jobId,
            JobStatus.Draining,
            PauseReason.None
        );
        refused(STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId)), error);
        eq(rounds.checkpointOf(jobId, 1), keccak256(abi.encode("checkpoint", round)), "its last checkpoint");
    }

    function test_a_calibration_is_attached_by_the_poster_once() public {
        bytes memory data = abi.encodeCall(market.calibrate, (jobId, "record"));
        bytes memory error = abi.encodeWithSelector(IJobMarket.NotThePoster.selector, STRANGER, POSTER);
        refused(STRANGER, address(market), data, error);
        error = abi.encodeWithSelector(IJobMarket.ZeroRecord.selector);
        refused(POSTER, address(market), abi.encodeCall(market.calibrate, (jobId, 0)), error);
        eq(market.calibrationOf(jobId), 0, "none");
        vm.prank(POSTER);
        market.calibrate(jobId, "record");
        eq(market.calibrationOf(jobId), "record", "attached");
        error = abi.encodeWithSelector(IJobMarket.AlreadyCalibrated.selector, jobId, bytes32("record"));
        refused(POSTER, address(market), abi.encodeCall(market.calibrate, (jobId, "other")), error);
    }

    /// INV-JOB-4: a bond that could not be slashed when it was locked cannot be slashed before it is freed.
    function test_no_calibration_is_attached_while_a_round_is_unsettled() public {
        uint32 round = rounds.open(jobId);
        bytes memory data = abi.encodeCall(market.calibrate, (jobId, "record"));
        bytes memory error = abi.encodeWithSelector(IJobMarket.RoundsUnsettled.selector, jobId, 1);
        refused(POSTER, address(market), data, error);
        pass(121);
        rounds.advance(jobId, round);
        pass(121);
        rounds.advance(jobId, round);
        refused(POSTER, address(market), data, error);
        rounds.settle(jobId, round, range(0, 6));
        vm.prank(POSTER);
        market.calibrate(jobId, "record");
    }

    function test_a_seed_address_is_bounded() public {
        bytes memory error = abi.encodeWithSelector(IJobMarket.SeedTooLong.selector, 257, 256);
        bytes memory data = abi.encodeCall(market.post, (terms(), "x", 1, string(new bytes(257))));
        refused(POSTER, address(market), data, error);
    }

    function test_a_job_is_found_in_the_list_with_the_address_of_its_data() public {
        bytes32 first = jobId;
        bytes32 second = post(terms(), 1);
        eq(market.jobCount(), 2, "two");
        yes(market.jobAt(0) == first && market.jobAt(1) == second, "in the order of posting");
        eq(keccak256(bytes(market.seedOf(first))), keccak256("http://seed"), "where its data is");
    }

    function test_a_job_that_nobody_posted_has_no_status_and_no_seed() public {
        jobId = keccak256("no job");
        expect(JobStatus.None, PauseReason.None);
        bytes memory error = abi.encodeWithSelector(IJobMarket.NoSuchJob.selector, jobId);
        refused(STRANGER, address(market), abi.encodeCall(market.seedOf, (jobId)), error);
        refused(STRANGER, address(market), abi.encodeCall(market.fund, (jobId, 1)), error);
    }

    function test_an_empty_escrow_is_refunded_without_a_word_and_closed() public {
        vm.startPrank(POSTER);
        market.refund(jobId, 0);
        eq(ledger.potOf(jobId), 0, "all is out");
        vm.recordLogs();
        market.refund(jobId, 0);
        eq(vm.getRecordedLogs().length, 0, "nothing happened");
        market.cancel(jobId);
        vm.stopPrank();
        market.close(jobId);
        (, uint256 refunded) = market.totalsOf(jobId);
        eq(refunded, 2 * reservation(terms()), "once");
        eq(ledger.creditOf(POSTER), refunded, "to the poster");
        expect(JobStatus.Closed, PauseReason.None);
    }

    function test_nothing_is_no_funding() public {
        bytes memory error = abi.encodeWithSelector(IRewardLedger.ZeroAmount.selector);
        refused(POSTER, address(market), abi.encodeCall(market.fund, (jobId, 0)), error);
    }
}
