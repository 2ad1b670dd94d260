// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Uniform subsets and bitwise majorities over maps of at most 256 shards.
library Sampling {
    /// How many bits are set.
    function count(uint256 map) internal pure returns (uint256 n) {
        if (map == type(uint256).max) return 256; // does not fit the byte that the sums end in
        uint256 ones = type(uint256).max;
        unchecked {
            map -= (map >> 1) & (ones / 3); // sums of 2 bits
            map = (map & (ones / 5)) + ((map >> 2) & (ones / 5)); // of 4
            map = (map + (map >> 4)) & (ones / 17); // of 8
            return (map * (ones / 255)) >> 248; // all bytes added up in the highest
        }
    }

    /// ceil(count * bps / 10000).
    function shareOf(uint256 total, uint256 bps) internal pure returns (uint256) {
        return (total * bps + 9_999) / 10_000;
    }

    /// A uniform subset of `wanted` bits of `map` (selection sampling, Knuth's algorithm S): each subset of that size
    /// is equally likely up to the bias of one modulus over 2^256.
    function choose(uint256 map, uint256 wanted, bytes32 seed) internal pure returns (uint256 chosen) {
        uint256 left = count(map);
        for (uint256 i; wanted > 0 && left > 0; ++i) {
            uint256 bit = 1 << i;
            if (map & bit == 0) continue;
            if (uint256(keccak256(abi.encode(seed, "sample", i))) % left < wanted) {
                chosen |= bit;
                --wanted;
            }
            --left;
        }
    }

    /// For each bit: whether the maps that set it weigh more than half of all. One pass over vertical counters:
    /// plane j holds bit j of 256 running sums. The sum of the weights must be below 2^15.
    function majority(uint256[] memory maps, uint256[] memory weights) internal pure returns (uint256 result) {
        uint256[16] memory planes;
        uint256 total;
        for (uint256 i; i < maps.length; ++i) {
            total += weights[i];
            for (uint256 j; weights[i] >> j != 0; ++j) {
                if ((weights[i] >> j) & 1 == 0) continue;
                uint256 carry = maps[i];
                for (uint256 k = j; carry != 0; ++k) {
                    (planes[k], carry) = (planes[k] ^ carry, planes[k] & carry);
                }
            }
        }
        // a bit's sum > floor(total / 2): compare plane by plane from the top
        uint256 half = total / 2;
        uint256 equal = type(uint256).max;
        for (uint256 k = 16; k > 0;) {
            --k;
            uint256 bound = (half >> k) & 1 == 1 ? type(uint256).max : 0;
            result |= equal & planes[k] & ~bound;
            equal &= ~(planes[k] ^ bound);
        }
    }
}
