// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IBeacon} from "../contracts/interfaces/IBeacon.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {ClaimOpening, ClaimStatus, Draw, Round, RoundStatus, Terms} from "../contracts/types/Types.sol";

/// Attest, tally, close, draw: INV-ROUND-3.
contract AttestTest is World {
    bytes32 private constant NEXT = keccak256("next");
    bytes32 private constant OTHER = keccak256("other");

    function setUp() public {
        deploy();
        addActors(8);
        post(terms(), 5);
    }

    function refusedAttest(uint256 actor, uint32 round, uint256 map, bytes32 next, bytes memory error) private {
        bytes memory data = abi.encodeCall(rounds.attest, (jobId, round, baseOf(round), map, next));
        refused(actors[actor].operator, address(rounds), data, error);
    }

    function expect(uint32 round, RoundStatus status) private view {
        eq(uint8(statusOf(round)), uint8(status), "round status");
    }

    // ---------------------------------------------------------------- first window

    function test_two_thirds_of_all_weight_do_not_close_and_more_do() public {
        uint32 round = fullRound();
        for (uint256 i; i < 4; ++i) attest(i, round, 63, NEXT);
        expect(round, RoundStatus.Sealed);
        attest(4, round, 63, NEXT);
        expect(round, RoundStatus.Closed);
        eq(rounds.checkpointOf(jobId, 1), NEXT, "checkpoint");
    }

    function test_a_pair_is_bitmap_and_digest_together() public {
        uint32 round = fullRound();
        for (uint256 i; i < 3; ++i) attest(i, round, 63, NEXT);
        for (uint256 i = 3; i < 6; ++i) attest(i, round, 31, NEXT);
        expect(round, RoundStatus.Sealed);
    }

    function test_only_committers_attest_once_and_to_what_was_committed() public {
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 3; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongRoundStatus.selector,
            RoundStatus.Open,
            RoundStatus.Sealed
        );
        refusedAttest(0, round, 7, NEXT, error);
        pass(121);
        rounds.advance(jobId, round);
        error = abi.encodeWithSelector(IRoundBook.NothingCommitted.selector, actors[3].operator);
        refusedAttest(3, round, 7, NEXT, error);
        refusedAttest(0, round, 8, NEXT, abi.encodeWithSelector(IRoundBook.BitmapOutOfRange.selector, 8, 7));
        refusedAttest(0, round, 7, 0, abi.encodeWithSelector(IRoundBook.ZeroDigest.selector));
        attest(0, round, 7, NEXT);
        error = abi.encodeWithSelector(IRoundBook.AlreadyAttested.selector, actors[0].operator);
        refusedAttest(0, round, 7, NEXT, error);
    }

    function test_weight_is_the_number_of_commitments() public {
        uint32 round = rounds.open(jobId);
        pass(61);
        vm.prank(actors[0].operator);
        rounds.claim(jobId, round, range(0, 5));
        for (uint16 s; s < 5; ++s) commit(0, round, s);
        claim(1, round, 5);
        commit(1, round, 5);
        attest(1, round, 63, OTHER);
        expect(round, RoundStatus.Sealed);
        attest(0, round, 63, NEXT);
        expect(round, RoundStatus.Closed);
    }

    function test_the_first_window_ends_after_its_last_second() public {
        uint32 round = fullRound();
        pass(60);
        attest(0, round, 63, NEXT);
        pass(1);
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongRoundStatus.selector,
            RoundStatus.Due,
            RoundStatus.Sealed
        );
        refusedAttest(1, round, 63, NEXT, error);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Tallied);
    }

    function test_silence_in_the_first_window_voids_the_round() public {
        uint32 round = fullRound();
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
        eq(rounds.checkpointOf(jobId, 1), 0, "no checkpoint");
    }

    function test_an_attestation_names_the_base_that_it_follows_from() public {
        uint32 round = fullRound();
        bytes32 base = keccak256("genesis");
        bytes memory data = abi.encodeCall(rounds.attest, (jobId, round, OTHER, 63, NEXT));
        bytes memory error = abi.encodeWithSelector(IRoundBook.WrongBase.selector, OTHER, base);
        refused(actors[0].operator, address(rounds), data, error);
        vm.prank(actors[0].operator);
        rounds.attest(jobId, round, base, 63, NEXT);
    }

    /// Two of its shards were committed by one of its operators each; either speaks for both, once.
    function test_an_owner_attests_once_with_all_its_weight_through_any_of_its_operators() public {
        address second = vm.addr(99);
        register(actors[0], second, 99);
        uint32 round = rounds.open(jobId);
        claim(0, round, 0);
        commit(0, round, 0);
        vm.prank(second);
        rounds.claim(jobId, round, one(1));
        (ClaimOpening memory o, bytes32 base) = (openingOf(round, 1), baseOf(round));
        vm.prank(second);
        rounds.commit(jobId, round, 1, base, o);
        claim(2, round, 2);
        commit(2, round, 2);
        pass(121);
        rounds.advance(jobId, round);
        (uint256 weight, bool attested) = rounds.weightOf(jobId, round, second);
        yes(weight == 2 && !attested, "the owner's");
        vm.prank(second);
        rounds.attest(jobId, round, base, 7, NEXT);
        expect(round, RoundStatus.Sealed); // two thirds are not more than two thirds
        (, attested) = rounds.weightOf(jobId, round, actors[0].operator);
        yes(attested, "for the owner");
        bytes memory error = abi.encodeWithSelector(IRoundBook.AlreadyAttested.selector, actors[0].operator);
        refusedAttest(0, round, 7, NEXT, error);
        attest(2, round, 7, NEXT);
        expect(round, RoundStatus.Closed);
        yes(rounds.attestedTo(jobId, round, actors[0].owner), "its vote");
        yes(!rounds.attestedTo(jobId, round, actors[1].owner), "who said nothing");
    }

    // ---------------------------------------------------------------- second window

    /// Three of six spoke: bits 0 and 1 have two votes of three, bit 5 has one.
    function tallied() private returns (uint32 round) {
        round = fullRound();
        attest(0, round, 3, NEXT);
        attest(1, round, 1, NEXT);
        attest(2, round, 2 + 32, OTHER);
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Tallied);
    }

    function test_each_bit_is_decided_by_the_weight_that_spoke() public {
        uint32 round = tallied();
        (Round memory r, ) = rounds.roundOf(jobId, round);
        eq(r.acceptedMap, 3, "bits with two of three");
        refusedAttest(3, round, 63, NEXT, abi.encodeWithSelector(IRoundBook.WrongBitmap.selector, 63, 3));
    }

    function test_everybody_speaks_again_in_the_second_window_and_once() public {
        uint32 round = tallied();
        attest(0, round, 3, NEXT);
        bytes memory error = abi.encodeWithSelector(IRoundBook.AlreadyAttested.selector, actors[0].operator);
        refusedAttest(0, round, 3, NEXT, error);
        attest(1, round, 3, NEXT);
        attest(2, round, 3, NEXT);
        expect(round, RoundStatus.Tallied); // half of all weight
        attest(3, round, 3, NEXT);
        expect(round, RoundStatus.Closed);
        eq(uint8(claimStatus(round, 0)), uint8(ClaimStatus.Accepted), "in the bitmap");
        eq(uint8(claimStatus(round, 4)), uint8(ClaimStatus.Excluded), "out of it");
    }

    function test_after_the_second_window_the_weight_that_spoke_decides() public {
        uint32 round = tallied();
        attest(0, round, 3, NEXT);
        attest(1, round, 3, OTHER);
        attest(2, round, 3, NEXT);
        pass(60);
        refused(
            POSTER,
            address(rounds),
            abi.encodeCall(rounds.advance, (jobId, round)),
            IRoundBook.NothingDue.selector
        );
        pass(1);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Closed);
        eq(rounds.checkpointOf(jobId, 1), NEXT, "two of three");
    }

    function test_a_tie_or_silence_in_the_second_window_voids_the_round() public {
        uint32 round = tallied();
        attest(0, round, 3, NEXT);
        attest(1, round, 3, OTHER);
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
        pass(121);
        round = tallied();
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
    }

    /// Found by attack: pairs and digests once shared one table, so that the weight of a pair could be counted for a
    /// digest that is the pair's hash.
    function test_a_pair_of_the_first_window_adds_nothing_to_a_digest_of_the_second() public {
        uint32 round = fullRound();
        for (uint256 i; i < 4; ++i) attest(i, round, 63, NEXT);
        pass(61);
        rounds.advance(jobId, round);
        attest(5, round, 63, keccak256(abi.encode(uint256(63), NEXT)));
        expect(round, RoundStatus.Tallied);
    }

    function test_the_next_round_starts_from_the_agreed_checkpoint_before_any_audit() public {
        uint32 round = fullRound();
        close(round, 63);
        uint32 second = rounds.open(jobId);
        (Round memory r, ) = rounds.roundOf(jobId, second);
        eq(r.base, rounds.checkpointOf(jobId, 1), "base");
        eq(rounds.progressOf(jobId).unsettled, 2, "both unsettled");
    }

    // ---------------------------------------------------------------- draw

    function test_the_sample_is_drawn_from_a_block_after_the_close() public {
        uint32 round = fullRound();
        bytes memory data = abi.encodeCall(rounds.draw, (jobId, round));
        bytes memory error = abi.encodeWithSelector(
            IRoundBook.WrongRoundStatus.selector,
            RoundStatus.Sealed,
            RoundStatus.Closed
        );
        refused(POSTER, address(rounds), data, error);
        close(round, 63);
        refused(POSTER, address(rounds), data, IBeacon.SeedNotReady.selector);
        mine(1);
        refused(POSTER, address(rounds), data, IBeacon.SeedNotReady.selector);
        mine(1);
        rounds.draw(jobId, round);
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.AlreadyDrawn.selector, jobId, round));
    }

    function test_a_draw_that_was_missed_is_pinned_again() public {
        uint32 round = fullRound();
        close(round, 63);
        uint256 pinned = rounds.drawOf(jobId, round).beaconTicket;
        mine(1 + 256);
        yes(!beacon.expired(pinned), "the last block that can prove it");
        mine(1);
        yes(beacon.expired(pinned), "one later");
        rounds.draw(jobId, round);
        Draw memory d = rounds.drawOf(jobId, round);
        yes(!d.drawn && d.beaconTicket == height() + 1, "a new pin");
        mine(2);
        rounds.draw(jobId, round);
        yes(rounds.drawOf(jobId, round).drawn, "drawn");
    }

    function test_the_sample_holds_everyone_on_probation_and_a_share_of_the_rest() public {
        graduate();
        Terms memory t = terms();
        t.auditRateBps = 2_000;
        t.probationSlots = 2;
        post(t, 1);
        uint32 round = rounds.open(jobId);
        for (uint16 s; s < 5; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        claim(6, round, 5); // never audited
        commit(6, round, 5);
        close(round, 63);
        draw(round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        eq(sampled >> 5, 1, "probation");
        eq(bits(sampled & 31), 1, "20 % of five");
    }

    function bits(uint256 map) private pure returns (uint256 n) {
        for (; map != 0; map &= map - 1) ++n;
    }
}
