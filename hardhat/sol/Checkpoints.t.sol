// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {ICheckpointCourt, StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {CasePhase, Outcome, Round, RoundStatus, Seat} from "../contracts/types/Types.sol";

/// A panel recomputes a doubted checkpoint: who may doubt, who may judge, what a seat may say. INV-STEP-1.
contract CheckpointsTest is Doubts {
    function setUp() public {
        settle14(4);
    }

    function notChallengeable(uint32 round) private view returns (bytes memory) {
        return abi.encodeWithSelector(ICheckpointCourt.NotChallengeable.selector, jobId, round);
    }

    // ---------------------------------------------------------------- who and when

    function test_a_checkpoint_is_doubted_until_the_last_second_of_its_window() public {
        uint32 round = closedRound(63, LIE);
        passTo(closedAt(round) + WINDOW);
        uint256 before = locked(DOUBTER);
        bytes32 caseId = doubt(round);
        eq(locked(DOUBTER) - before, 7 * FEE, "seven fees");
        yes(checkpoints.isOpen(jobId, round), "open");
        eq(stepSeats(caseId).length, 5, "the panel at once");
        eq(stepCase(caseId).accused, address(0), "no claim is accused");
    }

    function test_one_second_later_it_stands_for_ever() public {
        uint32 round = closedRound(63, LIE);
        passTo(closedAt(round) + WINDOW + 1);
        refusedDoubt(DOUBTER, round, notChallengeable(round));
    }

    function test_it_is_doubted_once() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        refusedDoubt(12, round, abi.encodeWithSelector(IPanels.CaseExists.selector, caseId));
        judgeStep(caseId, times(5, found(63, TRUTH)));
        yes(rounds.isChallengeable(jobId, round), "its claims can be doubted again");
        refusedDoubt(12, round, abi.encodeWithSelector(IPanels.CaseExists.selector, caseId));
    }

    function test_only_a_closed_round_has_a_checkpoint_to_doubt() public {
        refusedDoubt(DOUBTER, 0, notChallengeable(0));
        uint32 round = fullRound();
        refusedDoubt(DOUBTER, round, notChallengeable(round));
        pass(61);
        rounds.advance(jobId, round);
        expect(round, RoundStatus.Void);
        refusedDoubt(DOUBTER, round, notChallengeable(round));
    }

    /// The liars would doubt themselves, with a panel that they hope to sit on, and use up the only doubt.
    function test_who_attested_to_it_neither_challenges_nor_sits() public {
        uint32 round = closedRound(63, LIE);
        for (uint256 i; i < 5; ++i) {
            refusedDoubt(i, round, abi.encodeWithSelector(ICheckpointCourt.OwnAttestation.selector, actors[i].owner));
        }
        bytes32 caseId = doubt(round);
        seatPanel(checkpoints, caseId);
        Seat[] memory seats = stepSeats(caseId);
        for (uint256 i; i < 5; ++i) {
            uint256 who = indexOf(seats[i].owner);
            yes(who >= 5 && who != DOUBTER, "neither an attester nor the challenger");
            for (uint256 j; j < i; ++j) yes(seats[i].owner != seats[j].owner, "distinct owners");
        }
    }

    function test_a_committer_that_attested_to_something_else_may_doubt() public {
        uint32 round = fullRound();
        attest(5, round, 63, TRUTH);
        agree(round, 63, LIE);
        doubt(5, round);
    }

    /// Sent on a branch where another checkpoint was attested, from another base or other payloads, and mined on this one.
    function test_a_doubt_of_another_checkpoint_is_refused_and_costs_no_bond() public {
        uint32 round = closedRound(63, LIE);
        (Round memory r, ) = rounds.roundOf(jobId, round);
        bytes[3] memory others = [
            abi.encodeCall(checkpoints.challenge, (jobId, round, TRUTH, 63, LIE)),
            abi.encodeCall(checkpoints.challenge, (jobId, round, r.base, 31, LIE)),
            abi.encodeCall(checkpoints.challenge, (jobId, round, r.base, 63, TRUTH))
        ];
        uint256 locked = vault.lockedOf(actors[DOUBTER].owner);
        bytes memory error = abi.encodeWithSelector(ICheckpointCourt.OtherCheckpoint.selector, r.base, 63, LIE);
        for (uint256 i; i < 3; ++i) refused(actors[DOUBTER].operator, address(checkpoints), others[i], error);
        eq(vault.lockedOf(actors[DOUBTER].owner), locked, "no bond");
        doubt(round);
    }

    function test_nobody_doubts_without_an_operator_or_a_stake() public {
        uint32 round = closedRound(63, LIE);
        bytes memory data = stepChallengeOf(round);
        refused(POSTER, address(checkpoints), data, IOperatorRegistry.NotAnOperator.selector);
        uint256 free = vault.freeOf(actors[DOUBTER].owner);
        vm.prank(actors[DOUBTER].owner);
        vault.withdraw(free - 7 * FEE + 1);
        refusedDoubt(
            DOUBTER,
            round,
            abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, actors[DOUBTER].owner, 7 * FEE - 1, 7 * FEE)
        );
    }

    /// The seed of the panel is the hash of a block that is not there when the challenge is sent.
    function test_whoever_challenges_cannot_know_the_panel() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        eq(stepCase(caseId).beaconTicket, height() + 1, "the next block");
        eq(stepCase(caseId).seed, 0, "unknown");
        refused(
            POSTER,
            address(checkpoints),
            abi.encodeCall(IPanels.advance, (caseId)),
            abi.encodeWithSignature("SeedNotReady(uint256,uint256)", height() + 1, height())
        );
    }

    // ---------------------------------------------------------------- what a seat may say

    function test_a_copied_root_opens_for_nobody_else() public {
        bytes32 caseId = doubt(closedRound(63, LIE));
        seatPanel(checkpoints, caseId);
        StepFinding memory f = found(63, TRUTH);
        commitStep(caseId, 0, f);
        bytes32 root = stepSeats(caseId)[0].root;
        for (uint16 i = 1; i < 5; ++i) {
            vm.prank(stepSeats(caseId)[i].operator);
            checkpoints.commitAudit(caseId, i, root);
        }
        revealStep(caseId, 0, f);
        address thief = stepSeats(caseId)[1].operator;
        bytes32 own = checkpoints.rootOf(caseId, 1, thief, f);
        refused(
            thief,
            address(checkpoints),
            abi.encodeCall(checkpoints.reveal, (caseId, 1, f)),
            abi.encodeWithSelector(ICheckpointCourt.WrongRoot.selector, own, root)
        );
    }

    function test_a_finding_that_contradicts_itself_is_refused() public {
        bytes32 caseId = doubt(closedRound(31, LIE));
        seatPanel(checkpoints, caseId);
        StepFinding[4] memory bad = [
            found(31, TRUTH, LIE), // two digests for one bitmap
            found(31, 0),
            found(63, 0, LIE),
            found(64, TRUTH, LIE) // a payload that nobody committed to
        ];
        for (uint16 i; i < 4; ++i) commitStep(caseId, i, bad[i]);
        commitStep(caseId, 4, found(31, TRUTH));
        bytes[4] memory errors = [
            abi.encodeWithSelector(ICheckpointCourt.WrongDigest.selector, TRUTH, LIE),
            abi.encodeWithSelector(ICheckpointCourt.WrongDigest.selector, 0, 0),
            abi.encodeWithSelector(ICheckpointCourt.WrongDigest.selector, 0, LIE),
            abi.encodeWithSelector(ICheckpointCourt.BitmapOutOfRange.selector, 64, 63)
        ];
        for (uint16 i; i < 4; ++i) {
            bytes memory data = abi.encodeCall(checkpoints.reveal, (caseId, i, bad[i]));
            refused(stepSeats(caseId)[i].operator, address(checkpoints), data, errors[i]);
        }
    }

    function test_nobody_commits_or_reveals_for_another_seat_twice_or_late() public {
        bytes32 caseId = doubt(closedRound(63, LIE));
        seatPanel(checkpoints, caseId);
        address first = stepSeats(caseId)[0].operator;
        address second = stepSeats(caseId)[1].operator;
        bytes memory data = abi.encodeCall(IPanels.commitAudit, (caseId, 0, TRUTH));
        refused(second, address(checkpoints), data, abi.encodeWithSelector(IPanels.NotTheSeat.selector, second, first));
        commitStep(caseId, 0, found(63, TRUTH));
        refused(first, address(checkpoints), data, abi.encodeWithSelector(IPanels.SeatDone.selector, 0));
        uint256 ends = stepCase(caseId).phaseEnds;
        passTo(ends + 1);
        data = abi.encodeCall(IPanels.commitAudit, (caseId, 1, TRUTH));
        refused(second, address(checkpoints), data, abi.encodeWithSelector(IPanels.PhaseOver.selector, ends + 1, ends));
    }

    /// Who copies the attested pair unseen is a quarter of its lock poorer once the others find the truth.
    function test_a_lazy_seat_that_copies_the_attested_pair_loses_a_quarter() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        Money memory was = money(round);
        judgeStep(caseId, times(5, 4, found(63, TRUTH), found(63, LIE)));
        expectStep(caseId, Outcome.Fraud);
        Seat[] memory seats = stepSeats(caseId);
        eq(lost(was, seats[4].owner), SEAT / 4, "the lazy one");
        eq(gained(was, seats[4].owner), 0, "is not paid");
        for (uint256 i; i < 4; ++i) eq(lost(was, seats[i].owner), 0, "the others");
    }

    /// Found by attack: any other digest counted as a proof. A seat that drew its digests by lot, for a bitmap of its own
    /// (so that it lost nothing), took a prover's share of what was slashed.
    function test_garbage_proves_nothing() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        judgeStep(caseId, times(5, 4, found(63, TRUTH), found(31, "garbage", "garbage")));
        expectStep(caseId, Outcome.Fraud);
        finish(round);
        Money memory was = money(round);
        checkpoints.distribute(caseId);
        Seat[] memory seats = stepSeats(caseId);
        eq(gained(was, seats[4].owner), 0, "garbage");
        // 30 % of five bonds among four seats and the challenger
        for (uint256 i; i < 4; ++i) eq(gained(was, seats[i].owner), (5 * BOND * 30) / 100 / 5, "a prover");
    }

    function test_a_silent_seat_loses_a_fee_and_another_is_drawn_in_its_place() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        seatPanel(checkpoints, caseId);
        for (uint16 i; i < 5; ++i) commitStep(caseId, i, found(63, TRUTH));
        address silent = stepSeats(caseId)[2].owner;
        Money memory was = money(round);
        for (uint16 i; i < 5; ++i) if (i != 2) revealStep(caseId, i, found(63, TRUTH));
        passTo(uint256(stepCase(caseId).phaseEnds) + 1);
        checkpoints.advance(caseId);
        eq(lost(was, silent), FEE, "withheld its reveal");
        judgeStep(caseId, times(1, found(63, TRUTH)));
        yes(stepSeats(caseId)[2].owner != silent, "another one");
        expectStep(caseId, Outcome.Fraud);
        eq(ticketsUsed(), 0, "INV-CASE-3");
        checkConservation();
    }

    function test_who_cannot_recompute_it_abstains_at_no_loss() public {
        uint32 round = closedRound(63, LIE);
        bytes32 caseId = doubt(round);
        StepFinding memory abstain;
        abstain.abstain = true;
        Money memory was = money(round);
        judgeStep(caseId, times(5, 1, abstain, found(63, TRUTH)));
        eq(uint8(stepCase(caseId).phase), uint8(CasePhase.Seating), "drawn again");
        address who = stepSeats(caseId)[0].owner;
        judgeStep(caseId, times(1, found(63, TRUTH)));
        eq(lost(was, who), 0, "nothing lost");
        expectStep(caseId, Outcome.Fraud);
    }
}
