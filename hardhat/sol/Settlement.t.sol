// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {ClaimStatus, Finding, RoundStatus, Terms} from "../contracts/types/Types.sol";

/// Nothing is paid while anything that it rests on can be doubted. INV-ROUND-4, -5 and -7.
contract SettlementTest is Doubts {
    function setUp() public {
        settle14(5);
    }

    function refusedSettle(uint32 round, uint16[] memory shards) private {
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, shards));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NothingToSettle.selector));
    }

    function finalRounds() private view returns (uint32) {
        return rounds.progressOf(jobId).finalRounds;
    }

    // ---------------------------------------------------------------- order

    function test_an_audited_claim_is_paid_one_second_after_its_window_and_not_before() public {
        uint32 round = closedRound(63, TRUTH);
        auditAll(round);
        passTo(closedAt(round) + WINDOW);
        refusedSettle(round, range(0, 6));
        passTo(closedAt(round) + WINDOW + 1);
        settle(round);
        expect(round, RoundStatus.Settled);
        eq(finalRounds(), 1, "one");
    }

    function test_a_later_round_waits_for_an_earlier_one_that_is_doubted() public {
        uint32 first = closedRound(63, TRUTH);
        bytes32 caseId = doubt(first);
        uint32 second = closedRound(63, keccak256("second"));
        uint32 third = closedRound(63, keccak256("third"));
        auditAll(second);
        auditAll(third);
        finalise(third);
        refusedSettle(second, range(0, 6));
        refusedSettle(third, range(0, 6));
        judgeStep(caseId, times(5, found(63, TRUTH)));
        settle(third); // in any order, once nothing is doubted
        settle(second);
        eq(finalRounds(), 3, "all three");
        finish(first);
        checkConservation();
    }

    function test_a_later_round_waits_for_the_window_of_an_earlier_one_that_was_replaced() public {
        uint32 first = closedRound(63, LIE);
        bytes32 caseId = doubt(first);
        pass(25);
        judgeStep(caseId, times(5, found(63, TRUTH)));
        uint256 replaced = clock();
        eq(closedAt(first), replaced, "its window begins again");
        uint32 second = closedRound(63, keccak256("second"));
        auditAll(first);
        auditAll(second);
        passTo(replaced + WINDOW);
        refusedSettle(first, range(0, 6));
        refusedSettle(second, range(0, 6));
        passTo(replaced + WINDOW + 1);
        settle(first);
        settle(second);
        checkConservation();
    }

    function test_an_open_round_before_holds_nothing_back_that_is_older() public {
        uint32 first = closedRound(63, TRUTH);
        auditAll(first);
        finalise(first);
        rounds.open(jobId);
        settle(first);
        eq(finalRounds(), 1, "the open one is not final");
    }

    function test_a_void_round_is_no_obstacle_and_pays_nothing() public {
        uint32 empty = fullRound();
        pass(61);
        rounds.advance(jobId, empty);
        passTo(closedAt(empty) + WINDOW);
        refusedSettle(empty, range(0, 6)); // its claims can still demand an audit
        pass(1);
        uint256 escrow = ledger.potOf(jobId);
        settle(empty);
        eq(ledger.potOf(jobId), escrow + reservation(sampledTerms()), "the reservation");
        for (uint256 i; i < 6; ++i) eq(vault.balanceOf(actors[i].owner), STAKE, "nobody lost anything");
        eq(finalRounds(), 1, "counted");
    }

    function test_a_sampled_claim_waits_for_its_case_and_an_unsampled_one_for_the_draw() public {
        uint32 round = closedRound(63, TRUTH);
        finalise(round);
        refusedSettle(round, range(0, 6)); // not drawn
        rounds.draw(jobId, round);
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        settle(round);
        for (uint16 s; s < 6; ++s) {
            bool sampled = (map >> s) & 1 == 1;
            yes(claimStatus(round, s) == (sampled ? ClaimStatus.Accepted : ClaimStatus.Paid), "the unsampled ones");
        }
        finish(round);
    }

    function test_shards_that_nobody_holds_settle_at_once() public {
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 4; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        claim(4, round, 4);
        pass(121);
        rounds.advance(jobId, round);
        agree(round, 15, TRUTH);
        expect(round, RoundStatus.Closed);
        rounds.settle(jobId, round, range(4, 6)); // a lapse, and one that nobody claimed
        eq(vault.balanceOf(actors[4].owner), STAKE - TOKEN / 20, "the lapse fee");
        refusedSettle(round, range(0, 6));
        finish(round);
    }

    // ---------------------------------------------------------------- once

    function test_each_shard_is_paid_once_whatever_the_order_and_the_parts() public {
        uint32 round = closedRound(63, TRUTH);
        auditAll(round);
        finalise(round);
        uint256[] memory had = new uint256[](6);
        for (uint256 i; i < 6; ++i) had[i] = credit(i);
        uint16[] memory mixed = new uint16[](5);
        (mixed[0], mixed[1], mixed[2], mixed[3], mixed[4]) = (4, 1, 4, 1, 4);
        rounds.settle(jobId, round, mixed);
        refusedSettle(round, mixed);
        rounds.settle(jobId, round, range(3, 6));
        refusedSettle(round, range(3, 6));
        expect(round, RoundStatus.Closed);
        settle(round);
        expect(round, RoundStatus.Settled);
        refusedSettle(round, range(0, 6));
        for (uint256 i; i < 6; ++i) eq(credit(i) - had[i], TOKEN, "once");
        eq(pot(round), 0, "INV-ROUND-5");
        checkConservation();
    }

    /// forge-config: default.fuzz.runs = 16
    function test_every_order_of_settlement_ends_in_the_same_books(uint256 seed) public {
        uint32 first = closedRound(31, TRUTH);
        uint32 second = closedRound(63, keccak256("second"));
        auditAll(first);
        auditAll(second);
        finalise(second);
        uint256 total;
        for (uint256 i; i < 6; ++i) total += credit(i);
        for (uint256 i; i < 200; ++i) {
            uint256 lot = uint256(keccak256(abi.encode(seed, i)));
            uint32 round = lot & 1 == 0 ? first : second;
            uint16 shard = uint16((lot >> 8) % 6);
            ClaimStatus status = claimStatus(round, shard);
            if (status == ClaimStatus.Paid || status == ClaimStatus.Unpaid) continue;
            rounds.settle(jobId, round, one(shard));
        }
        expect(first, RoundStatus.Settled);
        expect(second, RoundStatus.Settled);
        for (uint256 i; i < 6; ++i) eq(locked(i), ENROLLED, "every bond");
        uint256 now_;
        for (uint256 i; i < 6; ++i) now_ += credit(i);
        eq(now_ - total, 11 * TOKEN, "eleven accepted claims");
        checkConservation();
    }

    // ---------------------------------------------------------------- many rounds

    function oneShard(uint32 count) private pure returns (Terms memory t) {
        t = terms();
        (t.shardsPerRound, t.minShards, t.probationSlots, t.rounds) = (1, 1, 1, count);
        t.auditRateBps = 2_000;
    }

    /// A round of one shard: claimed, committed, attested to and closed by one owner.
    function smallRound(uint256 actor, bytes32 next) private returns (uint32 round) {
        round = rounds.open(jobId);
        claim(actor, round, 0);
        commit(actor, round, 0);
        attest(actor, round, 1, next);
        expect(round, RoundStatus.Closed);
    }

    function test_more_rounds_than_one_call_looks_at_are_final_one_call_after_the_other() public {
        post(oneShard(100), 70);
        for (uint256 i; i < 70; ++i) smallRound(i % 6, keccak256(abi.encode(i)));
        auditOne(69);
        finalise(69);
        rounds.settle(jobId, 69, one(0));
        eq(finalRounds(), 64, "as far as one call goes");
        expect(69, RoundStatus.Closed);
        rounds.settle(jobId, 69, one(0));
        expect(69, RoundStatus.Settled);
        eq(finalRounds(), 70, "all");
    }

    function auditOne(uint32 round) private {
        draw(round);
        judge(convene(round, 0), say(Finding.Match));
    }

    /// Found by attack: more rounds than one call counts had been orphaned and settled. No call that counts them could
    /// succeed any more, for none had anything to settle, and all bonds and pay of the job were locked for ever.
    function test_settled_rounds_that_were_never_counted_lock_nothing() public {
        post(oneShard(100), 70);
        uint32 first = smallRound(0, LIE);
        bytes32 caseId = doubt(first);
        for (uint256 i = 1; i < 68; ++i) smallRound(i % 6, keccak256(abi.encode(i)));
        judgeStep(caseId, times(5, found(1, TRUTH)));
        for (uint32 i = 1; i < 68; ++i) rounds.settle(jobId, i, one(0));
        uint32 last = smallRound(1, keccak256("on the right one"));
        auditOne(last);
        finalise(last);
        auditOne(first);
        rounds.settle(jobId, first, one(0));
        rounds.settle(jobId, last, one(0));
        eq(finalRounds(), 65, "64 a call");
        rounds.settle(jobId, last, one(0));
        expect(last, RoundStatus.Settled);
        checkConservation();
    }
}
