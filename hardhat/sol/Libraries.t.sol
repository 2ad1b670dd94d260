// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Base} from "./Base.sol";
import {Traces} from "./Traces.sol";
import {MerklePosition} from "../contracts/libraries/MerklePosition.sol";
import {Sampling} from "../contracts/libraries/Sampling.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";

contract LibrariesTest is Base {
    function isProof(
        bytes32 root,
        bytes32 leaf,
        uint256 index,
        uint256 leaves,
        bytes32[] calldata proof
    ) external pure returns (bool) {
        return MerklePosition.verify(root, leaf, index, leaves, proof);
    }

    // ---------------------------------------------------------------- sampling

    function testFuzz_the_majority_is_the_one_counted_bit_by_bit(uint256 seed, uint8 voters, bool crowded) public pure {
        uint256[] memory maps = new uint256[](voters);
        uint256[] memory weights = new uint256[](voters);
        uint256 total;
        for (uint256 i; i < voters; ++i) {
            maps[i] = uint256(keccak256(abi.encode(seed, i)));
            weights[i] = 1 + (maps[i] % (crowded ? 1 : 100));
            total += weights[i];
        }
        uint256 have = Sampling.majority(maps, weights);
        for (uint256 bit; bit < 256; ++bit) {
            uint256 sum;
            for (uint256 i; i < voters; ++i) if ((maps[i] >> bit) & 1 == 1) sum += weights[i];
            yes(((have >> bit) & 1 == 1) == (2 * sum > total), "bit of the majority");
        }
    }

    function test_half_of_the_weight_is_no_majority() public pure {
        uint256[] memory maps = new uint256[](2);
        uint256[] memory weights = new uint256[](2);
        (maps[0], maps[1]) = (3, 1);
        (weights[0], weights[1]) = (5, 5);
        eq(Sampling.majority(maps, weights), 1, "map");
    }

    function testFuzz_a_sample_has_the_wanted_size_and_lies_in_the_map(
        uint256 map,
        uint256 wanted,
        bytes32 seed
    ) public pure {
        uint256 total = Sampling.count(map);
        wanted = bound(wanted, 0, total);
        uint256 chosen = Sampling.choose(map, wanted, seed);
        eq(Sampling.count(chosen), wanted, "size");
        eq(chosen & ~map, 0, "outside the map");
        if (wanted == total) eq(chosen, map, "everything");
    }

    function test_every_shard_is_sampled_equally_often() public pure {
        uint256[6] memory times;
        for (uint256 i; i < 3_000; ++i) {
            uint256 chosen = Sampling.choose(0x3F, 2, keccak256(abi.encode(i)));
            for (uint256 s; s < 6; ++s) times[s] += (chosen >> s) & 1;
        }
        // expected 1000 each, deviation 26: five of them
        for (uint256 s; s < 6; ++s) yes(times[s] > 870 && times[s] < 1_130, "a third of the draws");
    }

    function testFuzz_a_share_is_rounded_up(uint8 total, uint16 bps) public pure {
        bps = uint16(bound(bps, 0, 10_000));
        uint256 share = Sampling.shareOf(total, bps);
        yes(share * 10_000 >= uint256(total) * bps, "not too small");
        yes(share == 0 || (share - 1) * 10_000 < uint256(total) * bps, "not too large");
    }

    // ---------------------------------------------------------------- Merkle trees

    function testFuzz_a_leaf_stands_at_its_own_place_only(bytes32 seed, uint8 count, uint8 place) public view {
        uint256 n = bound(count, 1, 40);
        bytes32[] memory leaves = new bytes32[](n);
        for (uint256 i; i < n; ++i) leaves[i] = keccak256(abi.encode(seed, i));
        uint256 index = bound(place, 0, n - 1);
        bytes32 root = Traces.root(leaves);
        bytes32[] memory proof = Traces.proof(leaves, index);
        for (uint256 i; i < n + 2; ++i) {
            yes(this.isProof(root, leaves[index], i, n, proof) == (i == index), "one place");
        }
        yes(!this.isProof(root, leaves[index], index, 2 * n + 1, proof), "another size");
    }

    function test_an_inner_node_is_no_leaf() public view {
        bytes32[] memory leaves = new bytes32[](4);
        for (uint256 i; i < 4; ++i) leaves[i] = keccak256(abi.encode(i));
        bytes32 node = keccak256(abi.encode(leaves[0], leaves[1]));
        bytes32[] memory proof = new bytes32[](1);
        proof[0] = keccak256(abi.encode(leaves[2], leaves[3]));
        yes(!this.isProof(Traces.root(leaves), node, 0, 4, proof), "a shorter path");
        yes(this.isProof(Traces.root(leaves), node, 0, 2, proof), "which the depth alone refuses");
    }

    function test_a_row_and_an_audit_row_never_hash_alike() public pure {
        bytes32 row = Traces.leaves(Traces.rows("seed", 1, 0))[0];
        bytes32 audit = Traces.auditLeaves(Traces.rows("seed", 1, 0), 0, 0, address(0), 0)[0];
        yes(row != audit, "tagged by type");
    }

    // ---------------------------------------------------------------- traces

    function testFuzz_the_steps_to_open_are_spread_over_the_trace(bytes32 seed, uint16 steps) public pure {
        uint256 h = bound(steps, 3, 65_535);
        uint32 before;
        for (uint256 i; i < 3; ++i) {
            uint32 step = TraceLib.stepAt(seed, i, h);
            yes(step > before && step <= h, "in order and in range");
            yes(step > (i * h) / 3 && step <= ((i + 1) * h) / 3, "in its third");
            before = step;
        }
    }

    function testFuzz_losses_agree_up_to_the_tolerance_and_no_further(uint64 high, uint32 tolerance) public pure {
        tolerance = uint32(bound(tolerance, 0, 1e9));
        uint64 gap = uint64((uint256(high) * tolerance) / 1e9);
        yes(TraceLib.isWithin(high, high - gap, tolerance), "at the line");
        yes(TraceLib.isWithin(high - gap, high, tolerance), "either way round");
        if (gap < high) yes(!TraceLib.isWithin(high, high - gap - 1, tolerance), "beyond it");
    }
}
