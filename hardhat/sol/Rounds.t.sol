// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";
import {Claim, ClaimOpening, ClaimStatus, Round, RoundStatus, Terms} from "../contracts/types/Types.sol";

/// Open, claim, lapse, commit, seal: INV-ROUND-1 and -2.
contract RoundsTest is World {
    uint256 private constant FEE = TOKEN / 20; // 5 % of the reward

    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 5);
    }

    function refusedClaim(uint256 actor, uint32 round, uint16[] memory shards, bytes memory error) private {
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, shards));
        refused(actors[actor].operator, address(rounds), data, error);
    }

    function refusedCommit(uint256 actor, uint32 round, uint16 shard, bytes memory error) private {
        bytes memory data = abi.encodeCall(
            rounds.commit,
            (jobId, round, shard, baseOf(round), openingOf(round, shard))
        );
        refused(actors[actor].operator, address(rounds), data, error);
    }

    function lapseFee(uint256 actor) private view returns (uint256) {
        return rounds.lapseFeeOf(jobId, actors[actor].owner);
    }

    // ---------------------------------------------------------------- claim

    function test_a_claim_locks_the_bond_and_a_stranger_has_none() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        eq(vault.lockedOf(actors[0].owner), ENROLLED + 25 * TOKEN, "locked");
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, one(1)));
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, POSTER);
        refused(POSTER, address(rounds), data, error);
        vm.prank(actors[1].owner);
        vault.withdraw(STAKE - ENROLLED - 24 * TOKEN);
        error = abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, actors[1].owner, 24 * TOKEN, 25 * TOKEN);
        refusedClaim(1, round, one(1), error);
    }

    function test_shards_that_do_not_exist_or_are_not_named_are_refused() public {
        uint32 round = rounds.open(jobId);
        refusedClaim(0, round, range(0, 0), abi.encodeWithSelector(IRoundBook.NoShards.selector));
        refusedClaim(0, round, one(6), abi.encodeWithSelector(IRoundBook.NoSuchShard.selector, 6, 6));
        uint16[] memory twice = new uint16[](2);
        bytes memory error = abi.encodeWithSelector(IRoundBook.ShardTaken.selector, 0, actors[0].operator);
        refusedClaim(0, round, twice, error);
        error = abi.encodeWithSelector(IRoundBook.WrongRoundStatus.selector, RoundStatus.None, RoundStatus.Open);
        refusedClaim(0, round + 1, one(0), error);
    }

    function test_a_shard_is_taken_until_the_last_second_of_its_deadline() public {
        Terms memory t = terms();
        t.windows.train = 60;
        post(t, 1);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        pass(60);
        refusedClaim(1, round, one(0), abi.encodeWithSelector(IRoundBook.ShardTaken.selector, 0, actors[0].operator));
        yes(claimStatus(round, 0) == ClaimStatus.Held, "held");
        pass(1);
        yes(claimStatus(round, 0) == ClaimStatus.Lapsed, "lapsed");
        bytes memory error = abi.encodeWithSelector(IRoundBook.ShardLapsedByOwner.selector, 0, actors[0].owner);
        refusedClaim(0, round, one(0), error);
        claim(1, round, 0);
        eq(vault.lockedOf(actors[0].owner), ENROLLED, "the lapsed bond is free");
        eq(vault.balanceOf(actors[0].owner), STAKE - FEE, "less the fee");
        eq(token.balanceOf(BURN), FEE, "which is burnt");
        eq(rounds.heldBy(jobId, round, actors[0].owner), 0, "no claim left");
        commit(1, round, 0);
        checkConservation();
    }

    function test_a_commit_is_taken_until_the_last_second_of_the_claim() public {
        Terms memory t = terms();
        t.windows.train = 60;
        post(t, 1);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        claim(1, round, 1);
        uint256 deadline = clock() + 60;
        passTo(deadline);
        commit(0, round, 0);
        pass(1);
        refusedCommit(1, round, 1, abi.encodeWithSelector(IRoundBook.ClaimOver.selector, deadline + 1, deadline));
    }

    function test_a_claim_ends_with_its_round() public {
        uint32 round = rounds.open(jobId);
        pass(100);
        claim(0, round, 0);
        (Claim memory c, ) = rounds.claimOf(jobId, round, 0);
        eq(c.deadline, clock() + 20, "the round's end");
        pass(20);
        yes(statusOf(round) == RoundStatus.Open, "open in its last second");
        claim(1, round, 1);
        pass(1);
        yes(statusOf(round) == RoundStatus.Due, "due after it");
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongRoundStatus.selector,
            RoundStatus.Due,
            RoundStatus.Open
        );
        refusedClaim(2, round, one(2), error);
        refusedCommit(0, round, 0, error);
    }

    function test_an_owner_holds_a_quarter_of_the_shards_until_half_of_the_round() public {
        uint32 round = rounds.open(jobId);
        bytes memory error = abi.encodeWithSelector(IRoundBook.TooManyClaims.selector, actors[0].owner, 3, 2);
        refusedClaim(0, round, range(0, 3), error);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(0, 2));
        register(actors[0], vm.addr(99), 99);
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, one(2)));
        refused(vm.addr(99), address(rounds), data, error);
        pass(60);
        refusedClaim(0, round, one(2), error);
        pass(1);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(2, 6));
    }

    function test_owners_on_probation_share_the_slots() public {
        Terms memory t = terms();
        t.probationSlots = 2;
        t.windows.train = 30;
        post(t, 1);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        claim(1, round, 1);
        refusedClaim(2, round, one(2), abi.encodeWithSelector(IRoundBook.ProbationSlotsFull.selector, 3, 2));
        pass(31);
        claim(2, round, 0); // takes over the shard and the slot that lapsed
        refusedClaim(3, round, one(2), abi.encodeWithSelector(IRoundBook.ProbationSlotsFull.selector, 3, 2));
        (Round memory r, ) = rounds.roundOf(jobId, round);
        eq(r.probationMap, 3, "both slots are in use");
    }

    // ---------------------------------------------------------------- lapses

    function test_one_outage_costs_the_same_for_each_of_its_shards() public {
        uint32 round = rounds.open(jobId);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(0, 2));
        voidRound(round);
        rounds.settle(jobId, round, range(0, 6));
        eq(vault.balanceOf(actors[0].owner), STAKE - 2 * FEE, "two shards of one round");
        eq(lapseFee(0), 2 * FEE, "the next round's are twice as dear");
        checkConservation();
    }

    function test_the_lapse_fee_doubles_with_each_lapsed_round_up_to_thirty_two_fold() public {
        Terms memory t = terms();
        t.rounds = 100;
        t.windows.round = 20;
        post(t, 1);
        uint256 factor = 1;
        uint256 paid;
        for (uint256 i; i < 7; ++i) {
            eq(lapseFee(0), FEE * factor, "fee");
            if (i % 3 == 0) post(t, 1); // a job ends after three void rounds; the fee follows the owner
            uint32 round = rounds.open(jobId);
            claim(0, round, 0);
            voidRound(round);
            rounds.settle(jobId, round, range(0, 6));
            pass(21);
            paid += FEE * factor;
            if (factor < 32) factor *= 2;
        }
        eq(vault.balanceOf(actors[0].owner), STAKE - paid, "paid");
        eq(lapseFee(0), FEE * 32, "no more than that");
    }

    function test_twenty_commitments_wash_a_lapse_away() public {
        Terms memory t = terms();
        t.rounds = 100;
        post(t, 40);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        voidRound(round);
        rounds.settle(jobId, round, range(0, 6));
        pass(121);
        for (uint256 i; i < 20; ++i) {
            eq(lapseFee(0), 2 * FEE, "remembered");
            close(fullRound(), 63);
        }
        eq(lapseFee(0), FEE, "forgotten");
    }

    function test_a_lapse_never_costs_more_than_the_bond() public {
        Terms memory t = terms();
        t.bondPerShard = uint96((TOKEN * 57) / 100); // p = 100 %, D = 64 %
        t.windows.round = 20;
        for (uint256 i; i < 6; ++i) {
            if (i % 3 == 0) post(t, 1);
            uint32 round = rounds.open(jobId);
            claim(0, round, 0);
            voidRound(round);
            rounds.settle(jobId, round, range(0, 6));
            pass(21);
        }
        eq(lapseFee(0), (TOKEN * 57) / 100, "the bond");
    }

    function voidRound(uint32 round) private {
        Terms memory t = market.termsOf(jobId);
        pass(t.windows.round + 1);
        rounds.advance(jobId, round);
        pass(t.windows.round + 1);
        rounds.advance(jobId, round);
        yes(statusOf(round) == RoundStatus.Void, "void");
    }

    // ---------------------------------------------------------------- commit, seal

    function test_only_the_claimant_commits_once_and_with_all_three_digests() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.NotTheClaimant.selector,
            actors[1].operator,
            actors[0].operator
        );
        refusedCommit(1, round, 0, error);
        for (uint256 i; i < 3; ++i) {
            ClaimOpening memory o = openingOf(round, 0);
            if (i == 0) o.payloadDigest = 0;
            if (i == 1) o.traceRoot = 0;
            if (i == 2) o.stateDigest = 0;
            error = abi.encodeWithSelector(IRoundBook.ZeroDigest.selector);
            bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, 0, baseOf(round), o));
            refused(actors[0].operator, address(rounds), data, error);
        }
        commit(0, round, 0);
        refusedCommit(0, round, 0, abi.encodeWithSelector(IRoundBook.AlreadyCommitted.selector, 0));
    }

    function test_a_commitment_names_the_base_that_it_was_trained_from() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, 0, "stale", openingOf(round, 0)));
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongBase.selector,
            bytes32("stale"),
            keccak256("genesis")
        );
        refused(actors[0].operator, address(rounds), data, error);
        commit(0, round, 0);
    }

    function test_a_commitment_is_bound_to_everything_it_was_made_for() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        claim(1, round, 1);
        ClaimOpening memory o = openingOf(round, 0);
        bytes32 base = keccak256("genesis");
        vm.prank(actors[0].operator);
        rounds.commit(jobId, round, 0, base, o);
        vm.prank(actors[1].operator);
        rounds.commit(jobId, round, 1, base, o); // copied values
        (Claim memory own, ) = rounds.claimOf(jobId, round, 0);
        (Claim memory copy, ) = rounds.claimOf(jobId, round, 1);
        yes(own.commitment != copy.commitment, "a copy is another commitment");
        address book = address(rounds);
        address operator = actors[0].operator;
        eq(own.commitment, TraceLib.commitmentOf(book, jobId, round, 0, operator, base, o), "what it binds");
        yes(own.commitment != TraceLib.commitmentOf(address(1), jobId, round, 0, operator, base, o), "contract");
        yes(own.commitment != TraceLib.commitmentOf(book, 0, round, 0, operator, base, o), "job");
        yes(own.commitment != TraceLib.commitmentOf(book, jobId, 1, 0, operator, base, o), "round");
        yes(own.commitment != TraceLib.commitmentOf(book, jobId, round, 0, operator, 0, o), "base");
        vm.chainId(5);
        yes(own.commitment != TraceLib.commitmentOf(book, jobId, round, 0, operator, base, o), "chain");
        vm.chainId(31337); // a literal: the optimizer reads block.chainid again where it is used
        rounds.checkOpening(jobId, round, 0, o);
        o.stateDigest = keccak256("other");
        refused(
            POSTER,
            address(rounds),
            abi.encodeCall(rounds.checkOpening, (jobId, round, 0, o)),
            IRoundBook.WrongOpening.selector
        );
    }

    function test_a_revoked_operator_finishes_what_it_has_claimed() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        vm.prank(actors[0].owner);
        registry.revoke(actors[0].operator);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.Revoked.selector, actors[0].operator);
        refusedClaim(0, round, one(1), error);
        commit(0, round, 0);
    }

    function test_a_round_seals_with_its_last_shard() public {
        uint32 round = fullRound();
        yes(statusOf(round) == RoundStatus.Sealed, "sealed at once");
        refused(
            POSTER,
            address(rounds),
            abi.encodeCall(rounds.advance, (jobId, round)),
            IRoundBook.NothingDue.selector
        );
    }

    function test_at_its_end_a_round_seals_with_enough_shards_and_is_extended_once_with_fewer() public {
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 2; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        pass(121);
        rounds.advance(jobId, round);
        yes(statusOf(round) == RoundStatus.Open, "extended");
        claim(2, round, 2);
        commit(2, round, 2);
        bytes memory early = abi.encodeCall(rounds.advance, (jobId, round));
        pass(120);
        refused(POSTER, address(rounds), early, IRoundBook.NothingDue.selector);
        pass(1);
        rounds.advance(jobId, round);
        yes(statusOf(round) == RoundStatus.Sealed, "three are enough");
    }

    function test_a_void_round_returns_everything_but_the_lapse_fees() public {
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        commit(0, round, 0);
        claim(1, round, 1);
        voidRound(round);
        uint256 end = clock() + 30;
        rounds.settle(jobId, round, range(0, 6));
        eq(vault.lockedOf(actors[1].owner), ENROLLED, "the lapsed bond");
        eq(vault.lockedOf(actors[0].owner), ENROLLED + 25 * TOKEN, "held through the challenge window");
        passTo(end);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        refused(POSTER, address(rounds), data, IRoundBook.NothingToSettle.selector);
        pass(1);
        rounds.settle(jobId, round, one(0));
        eq(vault.lockedOf(actors[0].owner), ENROLLED, "the committed bond");
        eq(vault.balanceOf(actors[0].owner), STAKE, "whole");
        eq(pot(round), 0, "INV-ROUND-5");
        eq(ledger.potOf(jobId), 5 * reservation(terms()), "the reservation is back");
        eq(market.termsOf(jobId).genesisDigest, rounds.checkpointOf(jobId, 0), "still the genesis");
        checkConservation();
    }
}
