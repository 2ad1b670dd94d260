// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Sampling} from "../contracts/libraries/Sampling.sol";

/// Proofs for all inputs within the bounds that the signatures and the first lines name.
contract SamplingProof {
    uint256 private constant CANDIDATES = 5;

    /// The steps of Sampling.count, as they stand there: what each byte counts, and what the multiplication adds up.
    function bytewise(uint256 map) private pure returns (uint256) {
        uint256 ones = type(uint256).max;
        unchecked {
            map -= (map >> 1) & (ones / 3);
            map = (map & (ones / 5)) + ((map >> 2) & (ones / 5));
            return (map + (map >> 4)) & (ones / 17);
        }
    }

    function summed(uint256 counts) private pure returns (uint256) {
        unchecked {
            return (counts * (type(uint256).max / 255)) >> 248;
        }
    }

    function check_count_is_made_of_these_steps(uint256 map) external pure {
        assert(Sampling.count(map) == (map == type(uint256).max ? 256 : summed(bytewise(map))));
    }

    function check_each_byte_counts_its_bits(uint256 map) external pure {
        uint256 counts = bytewise(map);
        unchecked {
            for (uint256 i; i < 256; i += 8) {
                uint256 sum;
                for (uint256 bit = i; bit < i + 8; ++bit) sum += (map >> bit) & 1;
                assert((counts >> i) & 255 == sum);
            }
        }
    }

    /// Sixteen bytes of counts, in the lower or the upper half: their product ends in their sum, and no byte below is
    /// so large that the other half's could carry into it.
    function check_half_of_the_bytes_add_up(uint128 counts, bool upper) external pure {
        uint256 sum;
        unchecked {
            for (uint256 i; i < 128; i += 8) {
                uint256 one = (counts >> i) & 255;
                if (one > 8) return;
                sum += one;
            }
            uint256 product = (upper ? uint256(counts) << 128 : uint256(counts)) * (type(uint256).max / 255);
            assert(product >> 248 == sum);
            for (uint256 i; i < 248; i += 8) assert((product >> i) & 255 <= (upper ? 120 : 128));
        }
    }

    function check_the_halves_do_not_carry(uint256 lower, uint256 upper) external pure {
        for (uint256 i; i < 248; i += 8) {
            if ((lower >> i) & 255 > 128 || (upper >> i) & 255 > 120) return;
        }
        unchecked {
            assert((lower + upper) >> 248 == ((lower >> 248) + (upper >> 248)) & 255);
        }
    }

    function check_the_product_is_that_of_its_halves(uint128 lower, uint128 upper) external pure {
        uint256 ones = type(uint256).max / 255;
        uint256 counts = lower | (uint256(upper) << 128);
        unchecked {
            assert(counts * ones == uint256(lower) * ones + (uint256(upper) << 128) * ones);
            assert(summed(counts) == (counts * ones) >> 248);
        }
    }

    function check_a_sample_counts_right_wherever_its_bits_lie(uint8 map, uint8 lane) external pure {
        uint256 sum;
        for (uint256 bit; bit < 8; ++bit) sum += (uint256(map) >> bit) & 1;
        assert(Sampling.count(uint256(map) << (8 * (lane & 31))) == sum);
    }

    /// The keccak of the seed is unknown to the prover: it stands for every seed and every draw. The maps are tried one by
    /// one, so that the steps of `count` have numbers to work on.
    function check_a_sample_is_a_subset_of_the_wanted_size(uint8 map, uint256 wanted, bytes32 seed) external pure {
        for (uint256 each; each < 1 << CANDIDATES; ++each) if (map == each) return chosenFrom(each, wanted, seed);
    }

    function chosenFrom(uint256 map, uint256 wanted, bytes32 seed) private pure {
        uint256 chosen = Sampling.choose(map, wanted, seed);
        uint256 candidates;
        uint256 taken;
        for (uint256 i; i < CANDIDATES; ++i) {
            candidates += (map >> i) & 1;
            taken += (chosen >> i) & 1;
        }
        assert(chosen & ~map == 0);
        assert(taken == (wanted < candidates ? wanted : candidates));
    }

    function check_a_sample_follows_from_its_seed(uint8 map, uint8 wanted, bytes32 seed) external pure {
        map &= 7;
        wanted &= 3;
        assert(Sampling.choose(map, wanted, seed) == Sampling.choose(map, wanted, seed));
    }

    /// ceil(total * bps / 10000), the least integer that is not too small: by trying every total and every rate.
    function test_a_share_is_rounded_up() external pure {
        for (uint256 total; total <= 256; ++total) {
            for (uint256 bps; bps <= 10_000; ++bps) {
                uint256 share = Sampling.shareOf(total, bps);
                unchecked {
                    assert(share * 10_000 >= total * bps);
                    assert(share == 0 || (share - 1) * 10_000 < total * bps);
                    assert(share <= total);
                }
            }
        }
    }

    /// Any bit of all 256, any five maps, one vote each.
    function check_the_majority_of_five_votes(uint256[5] memory votes, uint8 bit) external pure {
        uint256[] memory maps = new uint256[](5);
        uint256[] memory weights = new uint256[](5);
        uint256 sum;
        for (uint256 i; i < 5; ++i) {
            (maps[i], weights[i]) = (votes[i], 1);
            sum += (votes[i] >> bit) & 1;
        }
        assert(((Sampling.majority(maps, weights) >> bit) & 1 == 1) == (2 * sum > 5));
    }
}
