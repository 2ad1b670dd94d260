// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {
    Case,
    CasePhase,
    ClaimStatus,
    Finding,
    JobStatus,
    Progress,
    Round,
    RoundStatus,
    Terms
} from "../contracts/types/Types.sol";

/// Settling in order, replacing a checkpoint, taking of a reserve: INV-ROUND-4 to -7.
contract SettleTest is World {
    bytes32 private constant OTHER = keccak256("other");

    function setUp() public {
        deploy();
        addActors(8);
        post(terms(), 5);
    }

    function expect(uint32 round, RoundStatus status) private view {
        eq(uint8(statusOf(round)), uint8(status), "round status");
    }

    function bits(uint256 map) private pure returns (uint256 n) {
        for (; map != 0; map &= map - 1) ++n;
    }

    /// INV-ROUND-6: what was built on a replaced checkpoint costs nobody anything, and the job goes on from the new one.
    function test_an_orphaned_round_returns_everything_without_a_lapse_fee() public {
        uint32 first = fullRound();
        close(first, 63);
        uint32 second = fullRound();
        close(second, 63);
        uint32 third = rounds.open(jobId);
        for (uint16 s; s < 3; ++s) claim(s, third, s);
        commit(0, third, 0);
        vm.prank(address(checkpoints));
        rounds.replaceCheckpoint(jobId, first, 31, OTHER, false);
        expect(first, RoundStatus.Closed);
        expect(second, RoundStatus.Orphaned);
        expect(third, RoundStatus.Orphaned);
        Progress memory p = rounds.progressOf(jobId);
        yes(p.closed == 1 && p.generation == 1 && !p.active, "back to the replaced checkpoint");
        eq(rounds.checkpointOf(jobId, 1), OTHER, "which is another");
        eq(rounds.checkpointOf(jobId, 2), 0, "and the last");
        rounds.settle(jobId, second, range(0, 6));
        pass(121); // past every deadline
        rounds.settle(jobId, third, range(0, 6));
        for (uint256 i; i < 6; ++i) {
            eq(vault.balanceOf(actors[i].owner), STAKE, "no fee");
            eq(vault.lockedOf(actors[i].owner), ENROLLED + 25 * TOKEN, "the first round's bond alone");
            eq(credit(i), 0, "no pay");
            eq(rounds.lapseFeeOf(jobId, actors[i].owner), TOKEN / 20, "no lapse is remembered");
        }
        eq(ledger.potOf(jobId), 4 * reservation(terms()), "both reservations are back");
        uint32 next = rounds.open(jobId);
        eq(baseOf(next), OTHER, "from the new checkpoint");
        yes(!rounds.isOrphaned(jobId, next) && !rounds.isOrphaned(jobId, first), "neither is orphaned");
        checkConservation();
    }

    function test_a_replaced_checkpoint_opens_the_challenge_window_again() public {
        uint32 round = fullRound();
        close(round, 63);
        draw(round);
        pass(30);
        yes(rounds.isChallengeable(jobId, round), "its last second");
        pass(1);
        yes(!rounds.isChallengeable(jobId, round), "over");
        vm.prank(address(checkpoints));
        rounds.replaceCheckpoint(jobId, round, 31, OTHER, false);
        pass(30);
        yes(rounds.isChallengeable(jobId, round), "its new last second");
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(5)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        pass(1);
        rounds.settle(jobId, round, one(5));
        eq(uint8(claimStatus(round, 5)), uint8(ClaimStatus.Unpaid), "out of the new bitmap");
    }

    /// INV-STEP-2: half of each convicted bond is burnt, half waits in the case's pot; who attested to another
    /// loses nothing.
    function test_who_attested_to_a_convicted_checkpoint_loses_the_bonds_of_that_round() public {
        uint32 round = fullRound();
        attest(5, round, 63, OTHER); // the only one that is right
        close(round, 63); // by the first five
        draw(round);
        for (uint16 s; s < 6; ++s) judge(convene(round, s), say(Finding.Match));
        vm.prank(address(checkpoints));
        rounds.replaceCheckpoint(jobId, round, 63, OTHER, true);
        finalise(round);
        rounds.settle(jobId, round, range(0, 6));
        for (uint256 i; i < 6; ++i) {
            uint256 lost = i < 5 ? 25 * TOKEN : 0;
            eq(STAKE - vault.balanceOf(actors[i].owner), lost, "the bond");
            eq(vault.lockedOf(actors[i].owner), ENROLLED, "nothing stays locked");
            bool paid = claimStatus(round, uint16(i)) == ClaimStatus.Paid;
            yes(paid == (i == 5), "whoever lied is unpaid, whatever its audit found");
        }
        eq(token.balanceOf(BURN), (5 * 25 * TOKEN) / 2, "half");
        eq(ledger.potOf(checkpoints.caseIdOf(jobId, round)), (5 * 25 * TOKEN) / 2, "the other half");
        eq(pot(round), 0, "INV-ROUND-5");
        checkConservation();
    }

    function test_unsampled_work_is_paid_after_the_challenge_window_and_once() public {
        graduate();
        Terms memory t = terms();
        t.auditRateBps = 2_000;
        post(t, 1);
        uint32 round = fullRound();
        close(round, 63);
        uint256 end = clock() + 30;
        draw(round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        eq(bits(sampled), 2, "20 % of six, rounded up");
        passTo(end);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(0, 6)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        pass(1);
        rounds.settle(jobId, round, range(0, 6));
        for (uint16 s; s < 6; ++s) {
            bool waits = (sampled >> s) & 1 == 1;
            uint256 paid = credit(s);
            yes(waits == (claimStatus(round, s) == ClaimStatus.Accepted), "the sampled ones wait");
            vm.prank(POSTER);
            (bool again, ) = address(rounds).call(abi.encodeCall(rounds.settle, (jobId, round, one(s))));
            yes(!again && credit(s) == paid, "INV-ROUND-4");
            if (waits) judge(convene(round, s), say(Finding.Match));
        }
        rounds.settle(jobId, round, range(0, 6));
        expect(round, RoundStatus.Settled);
        eq(pot(round), 0, "INV-ROUND-5");
        // six rewards and two seats are spent, the rest is back
        eq(ledger.potOf(jobId), reservation(t) - 6 * t.rewardPerShard - 2 * uint256(t.auditFee), "escrow");
        checkConservation();
    }

    function test_a_shard_named_twice_is_settled_once() public {
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 3; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        pass(121);
        rounds.advance(jobId, round);
        close(round, 7);
        uint16[] memory shards = new uint16[](2);
        (shards[0], shards[1]) = (5, 5);
        rounds.settle(jobId, round, shards);
        (Round memory r, ) = rounds.roundOf(jobId, round);
        eq(r.resolved, 1, "one shard");
        bytes memory error = abi.encodeWithSelector(IRoundBook.NoSuchShard.selector, 6, 6);
        refused(POSTER, address(rounds), abi.encodeCall(rounds.settle, (jobId, round, one(6))), error);
    }

    function test_excluded_work_is_unpaid_and_its_bond_returns() public {
        uint32 round = fullRound();
        close(round, 31);
        draw(round);
        eq(rounds.drawOf(jobId, round).sampledMap, 31, "what is excluded is not sampled");
        pass(31);
        rounds.settle(jobId, round, one(5));
        eq(uint8(claimStatus(round, 5)), uint8(ClaimStatus.Unpaid), "unpaid");
        eq(credit(5), 0, "no reward");
        eq(vault.lockedOf(actors[5].owner), ENROLLED, "bond");
        eq(vault.balanceOf(actors[5].owner), STAKE, "whole");
    }

    /// INV-ROUND-7: a verdict pays nothing while the checkpoint of its round can still be challenged.
    function test_a_verdict_pays_after_the_last_second_of_the_challenge_window() public {
        uint32 round = fullRound();
        close(round, 63);
        uint256 end = clock() + 30;
        draw(round);
        judge(convene(round, 0), say(Finding.Match));
        passTo(end);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        eq(rounds.progressOf(jobId).finalRounds, 0, "not final");
        pass(1);
        rounds.settle(jobId, round, one(0));
        eq(rounds.progressOf(jobId).finalRounds, 1, "final");
        eq(uint8(claimStatus(round, 0)), uint8(ClaimStatus.Paid), "paid");
    }

    /// INV-ROUND-7: a later round rests on the checkpoints before it.
    function test_a_later_round_waits_for_every_doubted_checkpoint_before_it() public {
        uint32 first = drawnRound();
        bytes32 caseId = doubt(7, first);
        uint32 second = drawnRound();
        judge(convene(second, 0), say(Finding.Match));
        finalise(second);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, second, one(0)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        checkpoints.advance(caseId); // two owners are left to sit
        for (uint256 i; i < 200 && checkpoints.isOpen(jobId, first); ++i) {
            mine(2);
            (Case memory c, ) = checkpoints.caseOf(caseId);
            if (c.phase != CasePhase.Seating && clock() <= c.phaseEnds) passTo(uint256(c.phaseEnds) + 1);
            checkpoints.advance(caseId);
        }
        yes(!checkpoints.isOpen(jobId, first), "judged");
        rounds.settle(jobId, second, one(0));
        eq(uint8(claimStatus(second, 0)), uint8(ClaimStatus.Paid), "paid");
        eq(rounds.progressOf(jobId).finalRounds, 2, "both are final");
    }

    /// Found by thought: a call counts 64 rounds as final; what it had counted was lost when it settled nothing, and a
    /// round after 64 orphaned ones kept its bonds for ever.
    function test_a_round_after_many_orphaned_ones_is_settled_in_steps() public {
        Terms memory t = terms();
        (t.shardsPerRound, t.minShards, t.probationSlots, t.rounds) = (1, 1, 1, 100);
        post(t, 70);
        for (uint32 r; r < 66; ++r) single(r);
        vm.prank(address(checkpoints));
        rounds.replaceCheckpoint(jobId, 0, 1, OTHER, false);
        for (uint32 r = 1; r < 66; ++r) {
            yes(statusOf(r) == RoundStatus.Orphaned, "orphaned");
            rounds.settle(jobId, r, one(0));
        }
        single(66);
        draw(66);
        judge(convene(66, 0), say(Finding.Match));
        finalise(66);
        rounds.settle(jobId, 66, one(0));
        eq(uint8(claimStatus(66, 0)), uint8(ClaimStatus.Accepted), "64 rounds are counted");
        rounds.settle(jobId, 66, one(0));
        eq(uint8(claimStatus(66, 0)), uint8(ClaimStatus.Paid), "then the rest");
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, 66, one(0)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
    }

    /// A round of one shard by actor 0, closed at once.
    function single(uint32 round) private {
        eq(rounds.open(jobId), round, "number");
        claim(0, round, 0);
        commit(0, round, 0);
        attest(0, round, 1, keccak256(abi.encode("single", round)));
    }

    function test_nothing_is_settled_before_the_round_closes_or_the_sample_is_drawn() public {
        uint32 round = fullRound();
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(0, 6)));
        refused(POSTER, address(rounds), data, IRoundBook.WrongRoundStatus.selector);
        close(round, 63);
        pass(1_000);
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        (JobStatus status, ) = market.statusOf(jobId);
        yes(status == JobStatus.Ready, "and the job goes on");
    }

    function test_only_the_court_slashes_a_bond() public {
        uint32 round = fullRound();
        bytes memory data = abi.encodeCall(rounds.slashBond, (jobId, round, 0, bytes32(0)));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NotACourt.selector, POSTER));
        bytes memory error = abi.encodeWithSelector(IRoundBook.NotACourt.selector, address(checkpoints));
        refused(address(checkpoints), address(rounds), data, error);
    }

    function test_only_the_checkpoint_court_replaces_a_checkpoint() public {
        uint32 round = fullRound();
        close(round, 63);
        bytes memory data = abi.encodeCall(rounds.replaceCheckpoint, (jobId, round, 63, OTHER, true));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NotACourt.selector, POSTER));
        bytes memory error = abi.encodeWithSelector(IRoundBook.NotACourt.selector, address(court));
        refused(address(court), address(rounds), data, error);
        vm.prank(address(checkpoints));
        rounds.replaceCheckpoint(jobId, round, 63, OTHER, true);
        eq(rounds.checkpointOf(jobId, 1), OTHER, "INV-ROUND-6");
    }

    function test_only_the_courts_take_a_reserve_and_no_more_than_the_sample_leaves() public {
        graduate();
        Terms memory t = terms();
        t.auditRateBps = 2_000;
        t.probationSlots = 3;
        post(t, 1);
        uint32 round = fullRound();
        close(round, 63);
        bytes memory data = abi.encodeCall(rounds.takeReserve, (jobId, round, 1));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NotACourt.selector, POSTER));
        vm.prank(address(court));
        eq(rounds.takeReserve(jobId, round, 9), 3, "three of five: the sample that is to come needs two");
        draw(round);
        eq(bits(rounds.drawOf(jobId, round).sampledMap), 2, "20 % of six, rounded up");
        vm.startPrank(address(checkpoints));
        eq(rounds.takeReserve(jobId, round, 1), 0, "no more");
        vm.stopPrank();
    }

    function test_what_a_sample_left_is_taken_bit_by_bit() public {
        graduate();
        Terms memory t = terms();
        t.auditRateBps = 2_000;
        t.probationSlots = 3;
        post(t, 1);
        uint32 round = fullRound();
        close(round, 63);
        draw(round);
        vm.startPrank(address(checkpoints));
        eq(rounds.takeReserve(jobId, round, 2), 2, "two of the three that are left of five");
        eq(rounds.takeReserve(jobId, round, 2), 1, "the last");
        eq(rounds.takeReserve(jobId, round, 1), 0, "no more");
        vm.stopPrank();
    }
}
