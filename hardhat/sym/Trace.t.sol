// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {TraceLib} from "../contracts/libraries/TraceLib.sol";

/// Proofs about two losses and about the steps that a seat opens.
contract TraceProof {
    /// The two classes' lines, and the widest tolerance that terms may ask for.
    function lines() private pure returns (uint32[3] memory) {
        return [uint32(5_000), 2_000_000, 50_000_000];
    }

    /// Losses up to 63 and tolerances of whole per cents up to 120 %, against the rule in per cents.
    function test_losses_agree_exactly() external pure {
        for (uint64 a; a < 64; ++a) {
            for (uint64 b; b < 64; ++b) {
                uint256 gap = a > b ? a - b : b - a;
                for (uint32 percent; percent <= 120; ++percent) {
                    bool rule = gap * 100 <= uint256(a > b ? a : b) * percent;
                    assert(TraceLib.isWithin(a, b, percent * 1e7) == rule);
                }
            }
        }
    }

    /// Equal losses have no two ways round: the next proof is theirs.
    function check_losses_agree_either_way_round(uint64 a, uint64 b, uint8 which) external pure {
        if (a == b) return;
        for (uint256 i; i < 3; ++i) {
            if (which != i) continue;
            assert(TraceLib.isWithin(a, b, lines()[i]) == TraceLib.isWithin(b, a, lines()[i]));
        }
    }

    function check_a_loss_agrees_with_itself(uint64 a, uint32 tolerance) external pure {
        assert(TraceLib.isWithin(a, a, tolerance));
    }

    function check_a_wider_tolerance_accepts_no_less(uint64 a, uint64 b) external pure {
        for (uint256 i = 1; i < 3; ++i) {
            if (TraceLib.isWithin(a, b, lines()[i - 1])) assert(TraceLib.isWithin(a, b, lines()[i]));
        }
    }

    /// For every seed, and every length of a trace that terms may ask for.
    function check_the_steps_to_open_are_distinct_and_in_range(bytes32 seed, uint16 innerSteps) external pure {
        if (innerSteps < 3 || innerSteps > 1_024) return;
        uint32 first = TraceLib.stepAt(seed, 0, innerSteps);
        uint32 second = TraceLib.stepAt(seed, 1, innerSteps);
        uint32 third = TraceLib.stepAt(seed, 2, innerSteps);
        assert(first >= 1 && first < second && second < third && third <= innerSteps);
    }
}
