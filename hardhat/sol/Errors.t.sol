// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {HookToken} from "./Tokens.sol";
import {World} from "./World.sol";
import {IAuditCourt, Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";
import {Claim, ClaimOpening, ClaimStatus, Finding, Terms} from "../contracts/types/Types.sol";
import {Errors} from "@openzeppelin/contracts/utils/Errors.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// Refusals with all their facts that no other file looks at as closely.
contract ErrorsTest is World {
    uint256 private constant OFFSET_OF_OWN_ROWS = 4 + 3 * 32 + 6 * 32; // in the call data of `AuditCourt.reveal`

    uint32 private round;
    bytes32 private caseId;

    function world() private {
        addActors(7);
        post(terms(), 3);
    }

    /// A case whose one seat has committed to a trace `deviation` above the operator's.
    function revealing(uint64 deviation) private returns (address auditor) {
        deploy();
        world();
        round = drawnRound();
        caseId = convene(round, 0);
        bytes32 root = auditRoot(caseId, 0, deviation);
        auditor = seatsOf(caseId)[0].operator;
        vm.prank(auditor);
        court.commitAudit(caseId, 0, root);
        mine(2);
    }

    function refusedReveal(address auditor, Reveal memory r, bytes memory error) private {
        refused(auditor, address(court), abi.encodeCall(court.reveal, (caseId, 0, r)), error);
    }

    // ---------------------------------------------------------------- what a seat shows

    function test_a_row_that_is_not_in_the_trace_is_named_by_its_step_and_whose_it_is() public {
        address auditor = revealing(0);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        ++r.own[1].row.loss;
        refusedReveal(auditor, r, abi.encodeWithSelector(IAuditCourt.WrongRow.selector, 2, true));
        --r.own[1].row.loss;
        ++r.theirs[2].row.loss;
        refusedReveal(auditor, r, abi.encodeWithSelector(IAuditCourt.WrongRow.selector, 3, false));
    }

    function test_losses_too_far_apart_are_named_with_their_step_and_the_tolerance() public {
        address auditor = revealing(20_000);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 20_000);
        uint64 theirs = r.theirs[0].row.loss;
        bytes4 kind = IAuditCourt.LossOutOfTolerance.selector;
        refusedReveal(auditor, r, abi.encodeWithSelector(kind, 1, theirs + 20_000, theirs, 5_000));
    }

    function test_another_opening_than_the_committed_one_is_refused_with_both_hashes() public {
        address auditor = revealing(0);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        r.claim.stateDigest = keccak256("another state");
        (Claim memory claim_, ) = rounds.claimOf(jobId, round, 0);
        ClaimOpening memory o = r.claim;
        address claimant = actors[0].operator;
        bytes32 have = TraceLib.commitmentOf(address(rounds), jobId, round, 0, claimant, baseOf(round), o);
        bytes memory error = abi.encodeWithSelector(IRoundBook.WrongOpening.selector, have, claim_.commitment);
        refusedReveal(auditor, r, error);
        refused(POSTER, address(rounds), abi.encodeCall(rounds.checkOpening, (jobId, round, 0, o)), error);
    }

    function test_rows_that_lie_outside_the_call_are_refused_and_the_honest_reveal_goes_on() public {
        address auditor = revealing(0);
        Reveal memory r = revealOf(caseId, 0, Finding.Match, 0);
        bytes memory data = abi.encodeCall(court.reveal, (caseId, 0, r));
        assembly {
            mstore(add(add(data, 32), OFFSET_OF_OWN_ROWS), not(0))
        }
        refused(auditor, address(court), data, abi.encodeWithSelector(Errors.FailedCall.selector));
        reveal(caseId, 0, Finding.Match);
    }

    // ---------------------------------------------------------------- cases that are not there

    function test_a_case_that_nobody_opened_is_named() public {
        deploy();
        bytes32 none = keccak256("no case");
        bytes memory error = abi.encodeWithSelector(IPanels.NoSuchCase.selector, none);
        refused(POSTER, address(court), abi.encodeCall(court.advance, (none)), error);
        refused(POSTER, address(checkpoints), abi.encodeCall(checkpoints.advance, (none)), error);
        refused(POSTER, address(checkpoints), abi.encodeCall(checkpoints.distribute, (none)), error);
    }

    // ---------------------------------------------------------------- money

    function test_more_than_a_job_can_count_is_refused_before_a_token_moves() public {
        deploy();
        world();
        uint256 amount = uint256(type(uint128).max) + 1;
        (uint256 funded, ) = market.totalsOf(jobId);
        uint256 most = type(uint128).max - funded;
        bytes memory error = abi.encodeWithSelector(IJobMarket.AmountTooLarge.selector, amount, most);
        refused(POSTER, address(market), abi.encodeCall(market.fund, (jobId, amount)), error);
        error = abi.encodeWithSelector(IJobMarket.AmountTooLarge.selector, most + 1, most);
        refused(POSTER, address(market), abi.encodeCall(market.fund, (jobId, most + 1)), error);
        most = type(uint128).max;
        error = abi.encodeWithSelector(IStakeVault.AmountTooLarge.selector, most + 1, most);
        refused(POSTER, address(vault), abi.encodeCall(vault.deposit, (POSTER, most + 1)), error);
    }

    function test_a_token_that_calls_back_cannot_settle_a_round_twice() public {
        HookToken money = new HookToken();
        deploy(address(money), preset());
        world();
        round = rounds.open(jobId);
        for (uint16 s; s < 6; ++s) claim(s, round, s);
        for (uint16 s = 1; s < 6; ++s) commit(s, round, s);
        pass(terms().windows.round + 1);
        rounds.advance(jobId, round);
        close(round, 62);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        uint256 stake = vault.balanceOf(actors[0].owner);
        money.hook(POSTER, address(rounds), data); // called while the lapse fee burns
        rounds.settle(jobId, round, one(0));
        yes(!money.entered(), "closed");
        bytes4 guard = ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector;
        yes(bytes4(money.answer()) == guard, "by its guard");
        eq(stake - vault.balanceOf(actors[0].owner), TOKEN / 20, "one fee");
        eq(vault.lockedOf(actors[0].owner), ENROLLED, "the bond is free");
        (Claim memory c, ) = rounds.claimOf(jobId, round, 0);
        yes(c.settled == ClaimStatus.Unpaid, "settled");
    }

    function test_a_token_that_calls_back_cannot_claim_a_lapsed_shard_twice() public {
        HookToken money = new HookToken();
        deploy(address(money), preset());
        addActors(7);
        Terms memory t = terms();
        t.windows.train = 60;
        post(t, 1);
        round = rounds.open(jobId);
        claim(0, round, 0);
        pass(61);
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, one(0)));
        money.hook(actors[2].operator, address(rounds), data); // called while the lapse fee burns
        claim(1, round, 0);
        yes(!money.entered(), "closed");
        bytes32 lock = keccak256(abi.encode("claim", jobId, round, uint16(0)));
        bytes memory error = abi.encodeWithSelector(IStakeVault.LockExists.selector, lock);
        eq(keccak256(money.answer()), keccak256(error), "by the old lock, which is freed last");
        (Claim memory c, ) = rounds.claimOf(jobId, round, 0);
        eq(c.operator, actors[1].operator, "whose turn it was");
        (address owner, uint256 amount) = vault.lockOf(address(rounds), lock);
        eq(owner, actors[1].owner, "with its stake");
        eq(amount, t.bondPerShard, "the bond");
        eq(vault.lockedOf(actors[0].owner), ENROLLED, "the lapsed bond is free");
        eq(vault.lockedOf(actors[2].owner), ENROLLED, "the other locked nothing");
    }
}
