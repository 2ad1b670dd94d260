// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {TraceRow, RowOpening, ClaimOpening} from "../types/Types.sol";
import {MerklePosition} from "./MerklePosition.sol";

/// How commitments, traces and audit commits are hashed, and how two losses are compared.
/// Twin of protocol/core/trace.py and protocol/core/commitment.py.
library TraceLib {
    bytes32 internal constant COMMITMENT_TYPEHASH = keccak256(
        "Commitment(uint256 chainId,address roundBook,bytes32 jobId,uint32 round,uint16 shard,address operator,bytes32 baseDigest,bytes32 payloadDigest,bytes32 traceRoot,bytes32 stateDigest)"
    );
    bytes32 internal constant ROW_TYPEHASH = keccak256(
        "TraceRow(uint32 step,uint64 loss,uint64 gradNorm,bytes32 sketch,bytes32 state)"
    );
    bytes32 internal constant AUDIT_ROW_TYPEHASH = keccak256(
        "AuditRow(bytes32 caseId,uint16 seat,address auditor,bytes32 salt,bytes32 row)"
    );
    uint256 internal constant FIXED_POINT = 1e9;
    uint256 internal constant ROWS_OPENED = 3;

    /// Binds a result to chain, contract, job, round, shard, operator and base: copied or replayed it is worthless.
    function commitmentOf(
        address roundBook,
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        address operator,
        bytes32 baseDigest,
        ClaimOpening memory o
    ) internal view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    COMMITMENT_TYPEHASH,
                    block.chainid,
                    roundBook,
                    jobId,
                    round,
                    shard,
                    operator,
                    baseDigest,
                    o.payloadDigest,
                    o.traceRoot,
                    o.stateDigest
                )
            );
    }

    function rowHash(TraceRow memory r) internal pure returns (bytes32) {
        return
            keccak256(bytes.concat(keccak256(abi.encode(ROW_TYPEHASH, r.step, r.loss, r.gradNorm, r.sketch, r.state))));
    }

    function auditRowHash(
        TraceRow memory r,
        bytes32 caseId,
        uint16 seat,
        address auditor,
        bytes32 salt
    ) internal pure returns (bytes32) {
        return
            keccak256(bytes.concat(keccak256(abi.encode(AUDIT_ROW_TYPEHASH, caseId, seat, auditor, salt, rowHash(r)))));
    }

    /// The i-th of the three steps to open: one in each third of the steps, so that they are distinct and spread.
    function stepAt(bytes32 seed, uint256 i, uint256 innerSteps) internal pure returns (uint32) {
        uint256 from = (i * innerSteps) / ROWS_OPENED;
        uint256 to = ((i + 1) * innerSteps) / ROWS_OPENED;
        return uint32(from + (uint256(keccak256(abi.encode(seed, "row", i))) % (to - from)) + 1);
    }

    /// Whether the opening shows the row of `step` under `root`.
    function isRowOf(
        bytes32 root,
        bytes32 leaf,
        RowOpening calldata opening,
        uint32 step,
        uint256 innerSteps
    ) internal pure returns (bool) {
        return opening.row.step == step && MerklePosition.verify(root, leaf, step - 1, innerSteps, opening.proof);
    }

    /// |a - b| <= tolerance * max(a, b), tolerance in units of 1e-9; exact.
    function isWithin(uint64 a, uint64 b, uint256 tolerance) internal pure returns (bool) {
        (uint256 high, uint256 low) = a > b ? (a, b) : (b, a);
        return (high - low) * FIXED_POINT <= high * tolerance;
    }
}
