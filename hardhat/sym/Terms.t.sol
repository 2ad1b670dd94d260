// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Preset, Terms, Windows} from "../contracts/types/Types.sol";
import {Sampling} from "../contracts/libraries/Sampling.sol";
import {TermsLib} from "../contracts/libraries/TermsLib.sol";

/// Proofs about the deterrence line and about what a round reserves.
contract TermsProof {
    function check(Terms memory t, Preset memory p) external pure {
        TermsLib.check(t, p);
    }

    /// Valid but for what a proof sets.
    function some(
        uint96 reward,
        uint96 bond,
        uint16 rate,
        uint16 detection
    ) private pure returns (Terms memory t, Preset memory p) {
        (t.specDigest, t.genesisDigest) = (bytes32(uint256(1)), bytes32(uint256(1)));
        (t.rewardPerShard, t.bondPerShard, t.auditFee, t.auditRateBps) = (reward, bond, reward, rate);
        (t.rounds, t.innerSteps, t.shardsPerRound, t.minShards, t.probationSlots) = (1, 3, 6, 3, 6);
        t.lossTolerance = 5_000;
        t.windows = Windows(1, 1, 1, 1, 1, 1, 1);
        (p.detectionBps, p.minDemand, p.ticket) = (detection, 1, type(uint96).max);
    }

    function deters(uint256 reward, uint256 bond, uint256 rate, uint256 detection) private pure returns (bool) {
        return rate * detection * (reward + bond) > reward * 1e8;
    }

    function need(bytes memory answer) private pure returns (uint256 value) {
        assert(answer.length == 68 && bytes4(answer) == TermsLib.BondTooSmall.selector);
        assembly ("memory-safe") {
            value := mload(add(answer, 68))
        }
    }

    /// Audit rates of 1 bp, 1 %, 25 % and 100 %.
    function rates() private pure returns (uint16[4] memory) {
        return [uint16(1), 100, 2_500, 10_000];
    }

    /// Rewards up to 12, bonds up to 60, those rates, and the preset's probability of detection.
    function test_terms_pass_exactly_when_they_deter() external view {
        for (uint256 i; i < 4; ++i) {
            for (uint96 reward = 1; reward <= 12; ++reward) {
                for (uint96 bond; bond <= 60; ++bond) {
                    assert(passes(reward, bond, rates()[i]) == deters(reward, bond, rates()[i], 6_400));
                }
            }
        }
    }

    function passes(uint96 reward, uint96 bond, uint16 rate) private view returns (bool) {
        (Terms memory t, Preset memory p) = some(reward, bond, rate, 6_400);
        try this.check(t, p) {
            return true;
        } catch (bytes memory answer) {
            need(answer);
            return false;
        }
    }

    /// Rewards up to 255: the bond that the refusal of none at all names is the least that passes.
    function test_the_bond_that_is_named_is_the_least() external view {
        for (uint256 i; i < 4; ++i) {
            for (uint96 reward = 1; reward <= 255; ++reward) {
                (Terms memory t, Preset memory p) = some(reward, 0, rates()[i], 6_400);
                try this.check(t, p) {
                    assert(false); // a detection below one never deters without a bond
                } catch (bytes memory answer) {
                    uint96 least = uint96(need(answer));
                    assert(passes(reward, least, rates()[i]) && !passes(reward, least - 1, rates()[i]));
                }
            }
        }
    }

    /// A round that draws all claims on probation and its share of the others never asks for more than it holds: all
    /// rewards, and three fees for each claim that was drawn. Six shards, every rate.
    function test_a_reservation_covers_every_round() external pure {
        Terms memory t;
        (t.rewardPerShard, t.auditFee, t.shardsPerRound) = (7, 11, 6);
        for (uint16 rate; rate <= 10_000; ++rate) {
            t.auditRateBps = rate;
            for (uint16 slots = 1; slots <= 6; ++slots) {
                t.probationSlots = slots;
                uint256 held = TermsLib.reservation(t);
                for (uint256 probation; probation <= slots; ++probation) {
                    uint256 drawn = probation + Sampling.shareOf(6 - probation, rate);
                    assert(held >= 6 * 7 + 3 * 11 * drawn);
                }
            }
        }
    }
}
