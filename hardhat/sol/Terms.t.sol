// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Deployment} from "./Deployment.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {TermsLib} from "../contracts/libraries/TermsLib.sol";
import {Addresses, Preset, Terms} from "../contracts/types/Types.sol";

contract TermsTest is Deployment {
    function check(Terms memory t) external view {
        TermsLib.check(t, preset());
    }

    function checkUnder(Terms memory t, Preset memory p) external pure {
        TermsLib.check(t, p);
    }

    function createMarket(Addresses calldata a, Preset calldata p) external {
        create("JobMarket.sol", abi.encode(a, p));
    }

    function refusedTerms(Terms memory t, bytes memory error) private {
        refused(address(1), address(this), abi.encodeCall(this.check, (t)), error);
    }

    function test_the_usual_terms_pass() public view {
        this.check(terms());
    }

    function test_every_incomplete_or_excessive_term_has_its_own_error() public {
        Terms memory t = terms();
        t.specDigest = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ZeroDigest.selector));
        t = terms();
        t.genesisDigest = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ZeroDigest.selector));
        t = terms();
        t.rounds = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ZeroRounds.selector));
        t = terms();
        t.rewardPerShard = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ZeroReward.selector));
        t = terms();
        t.shardsPerRound = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ShardsOutOfRange.selector, 0, 1, 256));
        t.shardsPerRound = 257;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ShardsOutOfRange.selector, 257, 1, 256));
        t = terms();
        t.minShards = 4;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.MinShardsOutOfRange.selector, 4, 1, 3));
        t.minShards = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.MinShardsOutOfRange.selector, 0, 1, 3));
        t = terms();
        t.probationSlots = 0;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ProbationSlotsOutOfRange.selector, 0, 1, 6));
        t.probationSlots = 7;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ProbationSlotsOutOfRange.selector, 7, 1, 6));
        t = terms();
        t.auditRateBps = 10_001;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.AuditRateTooLarge.selector, 10_001, 10_000));
    }

    function test_a_trace_has_three_rows_and_no_more_than_one_transaction_can_open() public {
        Terms memory t = terms();
        uint256 most = TermsLib.MOST_INNER_STEPS;
        t.innerSteps = 2;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.InnerStepsOutOfRange.selector, 2, 3, most));
        t.innerSteps = uint32(most);
        this.check(t);
        t.innerSteps = uint32(most + 1);
        refusedTerms(t, abi.encodeWithSelector(TermsLib.InnerStepsOutOfRange.selector, most + 1, 3, most));
    }

    function test_a_fee_lies_between_one_reward_and_ten() public {
        Terms memory t = terms();
        t.auditFee = uint96(TOKEN - 1);
        refusedTerms(t, abi.encodeWithSelector(TermsLib.AuditFeeTooSmall.selector, TOKEN - 1, TOKEN));
        t.auditFee = uint96(10 * TOKEN);
        this.check(t);
        t.auditFee += 1;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.AuditFeeTooLarge.selector, 10 * TOKEN + 1, 10 * TOKEN));
    }

    function test_a_tolerance_is_not_narrower_than_its_class_and_not_wide_enough_for_other_data() public {
        Terms memory t = terms();
        t.toleranceClass = 2;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.UnknownToleranceClass.selector, 2));
        t.toleranceClass = 1;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ToleranceOutOfRange.selector, 5_000, 2_000_000, 50_000_000));
        t.toleranceClass = 0;
        t.lossTolerance = 4_999;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ToleranceOutOfRange.selector, 4_999, 5_000, 50_000_000));
        t.lossTolerance = 50_000_001;
        refusedTerms(t, abi.encodeWithSelector(TermsLib.ToleranceOutOfRange.selector, 50_000_001, 5_000, 50_000_000));
    }

    function test_no_window_is_empty_or_locks_money_for_ever() public {
        for (uint256 i; i < 7; ++i) {
            refusedTerms(window(i, 0), abi.encodeWithSelector(TermsLib.ZeroWindow.selector));
            bytes memory error = abi.encodeWithSelector(TermsLib.WindowTooLong.selector, 30 days + 1, 30 days);
            refusedTerms(window(i, 30 days + 1), error);
        }
    }

    function test_no_window_is_shorter_than_the_presets_least() public {
        Preset memory p = preset();
        p.minWindow = 20; // the shortest of the usual terms: demand
        this.checkUnder(terms(), p);
        for (uint256 i; i < 7; ++i) {
            bytes memory error = abi.encodeWithSelector(TermsLib.WindowTooShort.selector, 19, 20);
            refused(address(1), address(this), abi.encodeCall(this.checkUnder, (window(i, 19), p)), error);
        }
    }

    /// Found by attack: an hour in which whoever was voted out or rejected must answer is over before it is awake.
    function test_who_was_wronged_has_as_long_to_object_as_to_open_a_trace() public {
        refusedTerms(window(3, 9), abi.encodeWithSelector(TermsLib.WindowTooShort.selector, 9, 10));
        this.check(window(3, 10));
    }

    function test_an_audit_has_the_time_of_the_work_and_of_the_demand() public {
        refusedTerms(window(4, 119), abi.encodeWithSelector(TermsLib.WindowTooShort.selector, 119, 120));
        refusedTerms(window(5, 9), abi.encodeWithSelector(TermsLib.WindowTooShort.selector, 9, 10));
        refusedTerms(window(6, 9), abi.encodeWithSelector(TermsLib.DemandTooShort.selector, 9, 10));
    }

    /// D * (reward + bond) > reward, by exact arithmetic; and the error names the least bond that passes.
    function testFuzz_terms_pass_exactly_when_cheating_does_not_pay(uint96 reward, uint16 bps, uint96 bond) public {
        Terms memory t = terms();
        t.rewardPerShard = uint96(bound(reward, 1, 1e18));
        t.auditFee = t.rewardPerShard;
        t.auditRateBps = uint16(bound(bps, 1, 10_000));
        t.bondPerShard = uint96(bound(bond, 0, 1e26));
        uint256 caught = uint256(t.auditRateBps) * preset().detectionBps;
        bool deters = caught * (uint256(t.rewardPerShard) + t.bondPerShard) > uint256(t.rewardPerShard) * 1e8;
        (bool passes, bytes memory answer) = address(this).call(abi.encodeCall(this.check, (t)));
        yes(passes == deters, "the deterrence line");
        if (passes) return;
        yes(bytes4(answer) == TermsLib.BondTooSmall.selector, "the error of the bond");
        uint256 need;
        assembly ("memory-safe") {
            need := mload(add(answer, 0x44))
        }
        if (need > type(uint96).max) return;
        t.bondPerShard = uint96(need);
        this.check(t);
        t.bondPerShard = uint96(need - 1);
        refusedTerms(t, abi.encodeWithSelector(TermsLib.BondTooSmall.selector, need - 1, need));
    }

    function test_no_job_is_so_dear_that_only_some_tickets_fit_its_seats() public {
        Terms memory t = terms();
        uint256 most = preset().ticket / 40;
        t.rewardPerShard = uint96(most);
        t.auditFee = uint96(most);
        this.check(t);
        t.rewardPerShard = uint96(most + 1);
        refusedTerms(t, abi.encodeWithSelector(TermsLib.RewardTooLarge.selector, most + 1, most));
    }

    function test_without_audits_no_bond_is_enough() public {
        Terms memory t = terms();
        t.auditRateBps = 0;
        bytes memory error = abi.encodeWithSelector(TermsLib.BondTooSmall.selector, t.bondPerShard, type(uint256).max);
        refusedTerms(t, error);
    }

    function test_a_preset_that_convicts_without_a_majority_is_not_deployed() public {
        Addresses memory a;
        for (uint256 i; i < 11; ++i) {
            Preset memory p = preset();
            if (i == 0) p.slashPanel = 2;
            if (i == 1) p.slashNeeded = 2;
            if (i == 2) p.slashNeeded = 6;
            if (i == 3) p.detectionBps = 0;
            if (i == 4) p.detectionBps = 10_001;
            if (i == 5) p.minDemand = 0;
            if (i == 6) p.minWindow = 0;
            if (i == 7) p.appealPanel = p.slashPanel;
            if (i == 8) p.appealNeeded = p.appealPanel / 2;
            if (i == 9) p.appealNeeded = p.appealPanel + 1;
            if (i == 10) p.detectionBps = type(uint16).max;
            bytes memory data = abi.encodeCall(this.createMarket, (a, p));
            refused(address(1), address(this), data, IJobMarket.BadPreset.selector);
        }
    }

    function window(uint256 which, uint32 value) private pure returns (Terms memory t) {
        t = terms();
        if (which == 0) t.windows.train = value;
        if (which == 1) t.windows.round = value;
        if (which == 2) t.windows.attest = value;
        if (which == 3) t.windows.challenge = value;
        if (which == 4) t.windows.auditCommit = value;
        if (which == 5) t.windows.auditReveal = value;
        if (which == 6) t.windows.demand = value;
    }
}
