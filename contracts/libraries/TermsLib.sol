// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Preset, SEATS_RESERVED, SEAT_LOCK_REWARDS, Terms, Windows} from "../types/Types.sol";
import {Sampling} from "./Sampling.sol";

/// Which terms a job may have, and what a round of it reserves.
library TermsLib {
    uint256 internal constant BPS = 10_000;
    uint32 internal constant MOST_WINDOW = 30 days; // a lock never lasts longer than a few windows
    uint256 internal constant MOST_FEE_REWARDS = 10; // so a silent seat loses at most a quarter of its lock
    uint32 internal constant MOST_INNER_STEPS = 1_024; // a demanded trace is opened in one transaction: 7.3 k gas a row
    uint32 internal constant LOSS_TOLERANCE_FP32 = 5_000; // 5e-6
    uint32 internal constant LOSS_TOLERANCE_BF16 = 2_000_000; // 2e-3
    uint32 internal constant WIDEST_TOLERANCE = 50_000_000; // 5e-2: wider would accept other data

    error ZeroDigest();
    error ZeroRounds();
    error ZeroReward();
    error RewardTooLarge(uint256 have, uint256 most);
    error ZeroWindow();
    error InnerStepsOutOfRange(uint256 have, uint256 least, uint256 most);
    error ShardsOutOfRange(uint256 have, uint256 least, uint256 most);
    error MinShardsOutOfRange(uint256 have, uint256 least, uint256 most);
    error ProbationSlotsOutOfRange(uint256 have, uint256 least, uint256 most);
    error AuditRateTooLarge(uint256 have, uint256 most);
    error AuditFeeTooSmall(uint256 have, uint256 need);
    error AuditFeeTooLarge(uint256 have, uint256 most);
    error BondTooSmall(uint256 have, uint256 need);
    error WindowTooShort(uint256 have, uint256 need);
    error WindowTooLong(uint256 have, uint256 most);
    error DemandTooShort(uint256 have, uint256 need);
    error UnknownToleranceClass(uint256 have);
    error ToleranceOutOfRange(uint256 have, uint256 least, uint256 most);

    /// Reverts unless the terms are complete and cheating under them does not pay.
    function check(Terms memory t, Preset memory p) internal pure {
        if (t.specDigest == 0 || t.genesisDigest == 0) revert ZeroDigest();
        if (t.rounds == 0) revert ZeroRounds();
        if (t.rewardPerShard == 0) revert ZeroReward();
        // Every ticket fits a seat of every job: nobody chooses a panel by the price of its work.
        uint256 mostReward = p.ticket / SEAT_LOCK_REWARDS;
        if (t.rewardPerShard > mostReward) revert RewardTooLarge(t.rewardPerShard, mostReward);
        if (t.innerSteps < 3 || t.innerSteps > MOST_INNER_STEPS) {
            revert InnerStepsOutOfRange(t.innerSteps, 3, MOST_INNER_STEPS);
        }
        uint256 n = t.shardsPerRound;
        if (n == 0 || n > 256) revert ShardsOutOfRange(n, 1, 256);
        uint256 most = n > 1 ? n / 2 : 1;
        if (t.minShards == 0 || t.minShards > most) revert MinShardsOutOfRange(t.minShards, 1, most);
        if (t.probationSlots == 0 || t.probationSlots > n) revert ProbationSlotsOutOfRange(t.probationSlots, 1, n);
        if (t.auditRateBps > BPS) revert AuditRateTooLarge(t.auditRateBps, BPS);
        // An audit repeats the whole claim: for less than the reward nobody would do it.
        if (t.auditFee < t.rewardPerShard) revert AuditFeeTooSmall(t.auditFee, t.rewardPerShard);
        if (t.auditFee > MOST_FEE_REWARDS * t.rewardPerShard) {
            revert AuditFeeTooLarge(t.auditFee, MOST_FEE_REWARDS * t.rewardPerShard);
        }
        _checkTolerance(t);
        _checkWindows(t.windows, p);
        _checkDeterrence(t, p);
    }

    /// Wei that one round holds back: every reward, and three fees for each claim that can be sampled.
    function reservation(Terms memory t) internal pure returns (uint256) {
        uint256 n = t.shardsPerRound;
        uint256 sampled = Sampling.shareOf(n, t.auditRateBps) + t.probationSlots;
        if (sampled > n) sampled = n;
        return n * t.rewardPerShard + SEATS_RESERVED * t.auditFee * sampled;
    }

    /// auditRate * detection * (reward + bond) > reward: a cheat's expected loss is larger than its gain.
    function _checkDeterrence(Terms memory t, Preset memory p) private pure {
        uint256 rate = uint256(t.auditRateBps) * p.detectionBps;
        uint256 gain = uint256(t.rewardPerShard) * BPS * BPS;
        if (rate * (uint256(t.rewardPerShard) + t.bondPerShard) > gain) return;
        uint256 need = rate == 0 ? type(uint256).max : gain / rate + 1 - t.rewardPerShard;
        revert BondTooSmall(t.bondPerShard, need);
    }

    function _checkTolerance(Terms memory t) private pure {
        if (t.toleranceClass > 1) revert UnknownToleranceClass(t.toleranceClass);
        uint32 least = t.toleranceClass == 0 ? LOSS_TOLERANCE_FP32 : LOSS_TOLERANCE_BF16;
        if (t.lossTolerance < least || t.lossTolerance > WIDEST_TOLERANCE) {
            revert ToleranceOutOfRange(t.lossTolerance, least, WIDEST_TOLERANCE);
        }
    }

    function _checkWindows(Windows memory w, Preset memory p) private pure {
        uint32[7] memory all = [w.train, w.round, w.attest, w.challenge, w.auditCommit, w.auditReveal, w.demand];
        for (uint256 i; i < all.length; ++i) {
            if (all[i] == 0) revert ZeroWindow();
            if (all[i] < p.minWindow) revert WindowTooShort(all[i], p.minWindow);
            if (all[i] > MOST_WINDOW) revert WindowTooLong(all[i], MOST_WINDOW);
        }
        // Seats are drawn without being asked and pay for silence: an audit has at least the time of the work itself,
        // and a reveal the time in which the operator may still open its trace.
        if (w.auditCommit < w.train) revert WindowTooShort(w.auditCommit, w.train);
        // In the challenge window silence decides, too: about a doubt, a demand, an appeal.
        if (w.challenge < p.minDemand) revert WindowTooShort(w.challenge, p.minDemand);
        if (w.auditReveal < p.minDemand) revert WindowTooShort(w.auditReveal, p.minDemand);
        if (w.demand < p.minDemand) revert DemandTooShort(w.demand, p.minDemand);
    }
}
