// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Deployment} from "./Deployment.sol";
import {Vectors} from "./Vectors.sol";
import {Delegation, IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {MerklePosition} from "../contracts/libraries/MerklePosition.sol";
import {TermsLib} from "../contracts/libraries/TermsLib.sol";
import {TraceLib} from "../contracts/libraries/TraceLib.sol";
import {ClaimOpening, Preset, Terms, TraceRow} from "../contracts/types/Types.sol";

/// The contracts hash and count as protocol.core does, on the vectors that it wrote.
contract VectorsTest is Deployment {
    struct Commitment {
        uint256 chainId;
        address roundBook;
        bytes32 jobId;
        uint32 round;
        uint16 shard;
        address operator;
        bytes32 base;
        bytes32 payloadDigest;
        bytes32 traceRoot;
        bytes32 stateDigest;
        bytes32 hash;
    }

    struct Leaf {
        TraceRow row;
        bytes32 caseId;
        uint16 seat;
        address auditor;
        bytes32 salt;
        bytes32 rowHash;
        bytes32 auditRowHash;
    }

    struct Path {
        uint256 rows;
        TraceRow row;
        bytes32 traceRoot;
        bytes32[] traceProof;
        bytes32 caseId;
        uint16 seat;
        address auditor;
        bytes32 salt;
        bytes32 auditRoot;
        bytes32[] auditProof;
    }

    struct Id {
        bytes32 jobId;
        uint32 round;
        uint16 shard;
        bytes32 roundPot;
        bytes32 caseId;
    }

    struct Steps {
        bytes32 seed;
        bytes32 caseId;
        uint256 innerSteps;
        uint32[] steps;
    }

    struct Amount {
        uint256 reward;
        uint256 fee;
        uint256 rate;
        uint256 slots;
        uint256 shards;
        uint256 detection;
        uint256 leastBond;
        uint256 reservation;
    }

    struct Signed {
        uint256 chainId;
        address registry;
        Delegation delegation;
        uint256 nonce;
        uint256 deadline;
        bytes32 registrationDigest;
        bytes32 delegationDigest;
        bytes32 revocationDigest;
    }

    function commitmentOf(Commitment calldata v) external view returns (bytes32) {
        ClaimOpening memory o = ClaimOpening(v.payloadDigest, v.traceRoot, v.stateDigest);
        return TraceLib.commitmentOf(v.roundBook, v.jobId, v.round, v.shard, v.operator, v.base, o);
    }

    function isProof(bytes32 root, bytes32 leaf, Path calldata v, bytes32[] calldata p) external pure returns (bool) {
        return MerklePosition.verify(root, leaf, v.row.step - 1, v.rows, p);
    }

    function check(Terms memory t, Preset memory p) external pure {
        TermsLib.check(t, p);
    }

    function test_commitments() public {
        Commitment[] memory all = abi.decode(Vectors.COMMITMENTS, (Commitment[]));
        for (uint256 i; i < all.length; ++i) {
            vm.chainId(all[i].chainId);
            eq(this.commitmentOf(all[i]), all[i].hash, "commitment");
        }
        eq(all.length, 3, "vectors");
    }

    function test_leaves() public pure {
        Leaf[] memory all = abi.decode(Vectors.LEAVES, (Leaf[]));
        for (uint256 i; i < all.length; ++i) {
            Leaf memory v = all[i];
            eq(TraceLib.rowHash(v.row), v.rowHash, "row");
            eq(TraceLib.auditRowHash(v.row, v.caseId, v.seat, v.auditor, v.salt), v.auditRowHash, "audit row");
        }
        eq(all.length, 12, "vectors");
    }

    function test_paths() public view {
        Path[] memory all = abi.decode(Vectors.PATHS, (Path[]));
        for (uint256 i; i < all.length; ++i) {
            Path memory v = all[i];
            yes(this.isProof(v.traceRoot, TraceLib.rowHash(v.row), v, v.traceProof), "the operator's");
            bytes32 leaf = TraceLib.auditRowHash(v.row, v.caseId, v.seat, v.auditor, v.salt);
            yes(this.isProof(v.auditRoot, leaf, v, v.auditProof), "the auditor's");
        }
        eq(all.length, 15, "vectors");
    }

    function test_ids() public {
        deploy();
        Id[] memory all = abi.decode(Vectors.IDS, (Id[]));
        for (uint256 i; i < all.length; ++i) {
            eq(rounds.potOf(all[i].jobId, all[i].round), all[i].roundPot, "pot");
            eq(court.caseIdOf(all[i].jobId, all[i].round, all[i].shard), all[i].caseId, "case");
        }
        eq(all.length, 3, "vectors");
    }

    function test_steps() public pure {
        Steps[] memory all = abi.decode(Vectors.STEPS, (Steps[]));
        for (uint256 i; i < all.length; ++i) {
            bytes32 seed = keccak256(abi.encode(all[i].seed, all[i].caseId));
            for (uint256 k; k < 3; ++k) eq(TraceLib.stepAt(seed, k, all[i].innerSteps), all[i].steps[k], "step");
        }
        eq(all.length, 6, "vectors");
    }

    /// The registry's own code at the vector's address, on the vector's chain.
    function test_delegations() public {
        deploy();
        bytes memory code = address(registry).code;
        Signed[] memory all = abi.decode(Vectors.DELEGATIONS, (Signed[]));
        for (uint256 i; i < all.length; ++i) {
            Signed memory v = all[i];
            Delegation memory d = v.delegation;
            vm.chainId(v.chainId);
            vm.etch(v.registry, code);
            IOperatorRegistry at = IOperatorRegistry(v.registry);
            bytes32 digest = at.registrationDigest(d.owner, d.operator, d.payout, v.nonce, v.deadline);
            eq(digest, v.registrationDigest, "registration");
            eq(at.delegationDigest(d, v.nonce, v.deadline), v.delegationDigest, "delegation");
            digest = at.revocationDigest(d.owner, d.operator, v.nonce, v.deadline);
            eq(digest, v.revocationDigest, "revocation");
        }
        eq(all.length, 3, "vectors");
    }

    function test_amounts() public {
        Amount[] memory all = abi.decode(Vectors.AMOUNTS, (Amount[]));
        for (uint256 i; i < all.length; ++i) {
            Amount memory v = all[i];
            Preset memory p = preset();
            p.detectionBps = uint16(v.detection);
            Terms memory t = terms();
            (t.rewardPerShard, t.auditFee, t.bondPerShard) = (uint96(v.reward), uint96(v.fee), uint96(v.leastBond));
            (t.auditRateBps, t.probationSlots) = (uint16(v.rate), uint16(v.slots));
            (t.shardsPerRound, t.minShards) = (uint16(v.shards), 1);
            this.check(t, p);
            eq(TermsLib.reservation(t), v.reservation, "reservation");
            --t.bondPerShard;
            bytes memory error = abi.encodeWithSelector(TermsLib.BondTooSmall.selector, v.leastBond - 1, v.leastBond);
            refused(address(1), address(this), abi.encodeCall(this.check, (t, p)), error);
        }
        eq(all.length, 3, "vectors");
    }
}
