// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {CasePhase, Claim, ClaimStatus, Finding, Outcome, Seat, Terms} from "../contracts/types/Types.sol";

/// Anybody with a stake doubts an accepted claim that was not sampled.
contract ChallengeTest is World {
    uint256 private constant FEE = (TOKEN * 11) / 10;
    uint256 private constant BOND = 7 * FEE;

    uint32 private round;
    uint16 private shard; // not sampled
    uint256 private closedAt;

    function setUp() public {
        deploy();
        addActors(8);
        addActor(); // the challenger, without a ticket
        post(terms(), 1);
        graduate();
        Terms memory t = terms();
        t.auditRateBps = 2_000;
        post(t, 2);
        round = fullRound();
        close(round, 31);
        closedAt = clock();
        draw(round);
        uint256 sampled = rounds.drawOf(jobId, round).sampledMap;
        while ((sampled >> shard) & 1 == 1) ++shard;
    }

    function challenge() private returns (bytes32 caseId) {
        (Claim memory c, ) = rounds.claimOf(jobId, round, shard);
        vm.prank(actors[8].operator);
        return court.challenge(jobId, round, shard, c.commitment);
    }

    function refusedChallenge(address who, uint16 which, bytes memory error) private {
        refused(who, address(court), challengeOf(round, which), error);
    }

    function indexOf(address owner) private view returns (uint256 i) {
        while (actors[i].owner != owner) ++i;
    }

    function test_a_challenge_is_taken_until_the_last_second_of_the_window() public {
        passTo(closedAt + 30);
        challenge();
        eq(vault.lockedOf(actors[8].owner), BOND, "seven fees");
        bytes memory error = abi.encodeWithSelector(IPanels.CaseExists.selector, court.caseIdOf(jobId, round, shard));
        refusedChallenge(actors[7].operator, shard, error);
    }

    function test_one_second_later_it_is_refused_and_the_claim_is_settled() public {
        passTo(closedAt + 31);
        bytes memory error = abi.encodeWithSelector(IAuditCourt.NotChallengeable.selector, jobId, round, shard);
        refusedChallenge(actors[8].operator, shard, error);
        rounds.settle(jobId, round, one(shard));
        yes(claimStatus(round, shard) == ClaimStatus.Paid, "paid");
    }

    function test_what_is_sampled_or_not_accepted_or_does_not_exist_is_not_challengeable() public {
        uint16 sampled;
        while ((rounds.drawOf(jobId, round).sampledMap >> sampled) & 1 == 0) ++sampled;
        uint16[4] memory shards = [sampled, 5, 6, 300];
        for (uint256 i; i < 4; ++i) {
            bytes memory error = abi.encodeWithSelector(IAuditCourt.NotChallengeable.selector, jobId, round, shards[i]);
            refusedChallenge(actors[8].operator, shards[i], error);
        }
    }

    /// Sent on a branch where the shard held other work, and mined on this one.
    function test_a_challenge_of_another_commitment_is_refused_and_costs_no_bond() public {
        (Claim memory c, ) = rounds.claimOf(jobId, round, shard);
        bytes32 other = keccak256("committed on another branch");
        bytes memory data = abi.encodeCall(court.challenge, (jobId, round, shard, other));
        bytes memory error = abi.encodeWithSelector(IAuditCourt.OtherCommitment.selector, other, c.commitment);
        refused(actors[8].operator, address(court), data, error);
        eq(vault.lockedOf(actors[8].owner), 0, "no bond");
        challenge(); // and the place is free for one who means what is here
    }

    function test_nobody_challenges_without_an_operator_a_stake_or_its_own_claim() public {
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, POSTER);
        refusedChallenge(POSTER, shard, error);
        error = abi.encodeWithSelector(IAuditCourt.OwnClaim.selector, actors[shard].owner);
        refusedChallenge(actors[shard].operator, shard, error);
        vm.prank(actors[8].owner);
        vault.withdraw(STAKE - BOND + 1);
        error = abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, actors[8].owner, BOND - 1, BOND);
        refusedChallenge(actors[8].operator, shard, error);
    }

    function test_the_panel_is_drawn_after_the_challenge_and_leaves_both_parties_out() public {
        enroll(actors[8], TICKETS);
        bytes32 caseId = challenge();
        seatAll(caseId);
        Seat[] memory seats = seatsOf(caseId);
        eq(seats.length, 5, "the last level at once");
        for (uint256 i; i < 5; ++i) {
            yes(seats[i].owner != actors[shard].owner && seats[i].owner != actors[8].owner, "INV-CASE-1");
            for (uint256 j; j < i; ++j) yes(seats[i].owner != seats[j].owner, "distinct owners");
        }
    }

    function test_a_failed_challenge_pays_the_seats_and_the_fund_and_not_the_accused() public {
        bytes32 caseId = challenge();
        (uint256 had, uint256 fund) = (credit(shard), ledger.potOf(keccak256("court fund")));
        judge(caseId, say(5, 4, Finding.Match, Finding.Fraud));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "it stands");
        eq(vault.balanceOf(actors[8].owner), STAKE - BOND, "the bond is lost");
        uint256 left = BOND + 10 * TOKEN - 4 * FEE;
        eq(ledger.potOf(keccak256("court fund")) - fund, left, "what the four seats left, and the wrong one's quarter");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        finalise(round);
        rounds.settle(jobId, round, one(shard));
        eq(credit(shard) - had, TOKEN, "the reward");
        checkConservation();
    }

    function test_a_proven_fraud_returns_the_bond_and_pays_the_challenger_a_provers_share() public {
        bytes32 caseId = challenge();
        judge(caseId, say(5, 4, Finding.Fraud, Finding.Reject));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
        eq(vault.freeOf(actors[8].owner), STAKE, "whole and free");
        eq(credit(8), (25 * TOKEN * 30) / 100 / 5, "four seats and the challenger");
        finalise(round);
        rounds.settle(jobId, round, one(shard));
        yes(claimStatus(round, shard) == ClaimStatus.Unpaid, "unpaid");
        checkConservation();
    }

    function test_a_reject_returns_the_bond_and_pays_the_seats_from_the_reward_and_the_fund() public {
        bytes32 caseId = challenge();
        uint256[] memory had = new uint256[](9);
        for (uint256 i; i < 9; ++i) had[i] = credit(i);
        judge(caseId, say(5, Finding.Reject));
        eq(vault.freeOf(actors[8].owner), STAKE, "whole and free");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 5; ++i) {
            uint256 actor = indexOf(seats[i].owner);
            eq(credit(actor) - had[actor], TOKEN / 5, "the fund is empty: the reward in equal parts");
        }
        checkConservation();
    }

    /// Found by attack: with every seat silent the claim stood and the challenger lost its bond to the accused.
    function test_where_nobody_judges_the_bond_returns() public {
        bytes32 caseId = challenge();
        while (caseOf(caseId).phase != CasePhase.Done) {
            seatAll(caseId);
            if (caseOf(caseId).phase == CasePhase.Done) break;
            passTo(caseOf(caseId).phaseEnds + 1);
            court.advance(caseId);
        }
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Unsampled), "as if not challenged");
        eq(vault.freeOf(actors[8].owner), STAKE, "whole and free");
        rounds.settle(jobId, round, one(shard));
        yes(claimStatus(round, shard) == ClaimStatus.Paid, "the claim is paid");
        checkConservation();
    }

    function test_an_open_challenge_holds_back_the_settlement_and_the_bond() public {
        bytes32 caseId = challenge();
        passTo(closedAt + 31);
        refused(
            POSTER,
            address(rounds),
            abi.encodeCall(rounds.settle, (jobId, round, one(shard))),
            abi.encodeWithSignature("NothingToSettle()")
        );
        judge(caseId, say(5, Finding.Match));
        rounds.settle(jobId, round, one(shard));
    }

    /// What a frivolous challenge costs is more than what it can take from anybody.
    function test_a_frivolous_challenge_costs_more_than_it_harms() public {
        uint256 accused = credit(shard) + vault.balanceOf(actors[shard].owner);
        bytes32 caseId = challenge();
        judge(caseId, say(5, Finding.Match));
        finalise(round);
        rounds.settle(jobId, round, one(shard));
        uint256 now_ = credit(shard) + vault.balanceOf(actors[shard].owner);
        eq(now_ - accused, TOKEN, "the accused has its reward, and nothing of it");
        eq(STAKE - vault.balanceOf(actors[8].owner), 7 * FEE, "the challenger loses seven");
    }
}
