// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IAuditCourt, Reveal, RowContext} from "../interfaces/IAuditCourt.sol";
import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {MerklePosition} from "../libraries/MerklePosition.sol";
import {TraceLib} from "../libraries/TraceLib.sol";
import {ClaimOpening, Finding, TraceRow} from "../types/Types.sol";

/// @title TraceChecker
/// @notice Checks the rows of traces for the court that made it: the court hands on the very call that it was given. Has
/// no state; apart from the court only because of a contract's size limit.
///
/// INV-FIND-1: a Match shows equal losses of both committed traces at the drawn steps.
contract TraceChecker {
    IAuditCourt public immutable court;
    IRoundBook public immutable rounds;

    constructor(IRoundBook rounds_) {
        court = IAuditCourt(msg.sender);
        rounds = rounds_;
    }

    /// Reverts unless the rows belong to the seat's committed trace and, for a Match, to the operator's, with losses
    /// within the job's tolerance. Anyone; changes nothing.
    function reveal(bytes32 caseId, uint16 seat, Reveal calldata r) external view {
        RowContext memory x = court.rowContextOf(caseId, seat);
        uint32[3] memory steps = court.stepsOf(caseId);
        bool isMatch = r.finding == Finding.Match;
        uint256 need = TraceLib.ROWS_OPENED;
        if (r.own.length != need) revert IAuditCourt.WrongRowCount(r.own.length, need);
        if (r.theirs.length != (isMatch ? need : 0)) {
            revert IAuditCourt.WrongRowCount(r.theirs.length, isMatch ? need : 0);
        }
        if (isMatch) rounds.checkOpening(x.jobId, x.round, x.shard, r.claim);
        for (uint256 i; i < need; ++i) {
            uint32 step = steps[i];
            bytes32 leaf = TraceLib.auditRowHash(r.own[i].row, caseId, seat, x.auditor, r.salt);
            if (!TraceLib.isRowOf(x.root, leaf, r.own[i], step, x.innerSteps)) revert IAuditCourt.WrongRow(step, true);
            if (!isMatch) continue;
            leaf = TraceLib.rowHash(r.theirs[i].row);
            if (!TraceLib.isRowOf(r.claim.traceRoot, leaf, r.theirs[i], step, x.innerSteps)) {
                revert IAuditCourt.WrongRow(step, false);
            }
            (uint64 own, uint64 theirs) = (r.own[i].row.loss, r.theirs[i].row.loss);
            if (!TraceLib.isWithin(own, theirs, x.lossTolerance)) {
                revert IAuditCourt.LossOutOfTolerance(step, own, theirs, x.lossTolerance); // INV-FIND-1
            }
        }
    }

    /// Reverts unless the rows are the whole trace that the claim committed to. Anyone; changes nothing.
    function openTrace(bytes32 caseId, ClaimOpening calldata claim, TraceRow[] calldata rows) external view {
        RowContext memory x = court.rowContextOf(caseId, 0);
        if (rows.length != x.innerSteps) revert IAuditCourt.WrongRowCount(rows.length, x.innerSteps);
        rounds.checkOpening(x.jobId, x.round, x.shard, claim);
        bytes32[] memory leaves = new bytes32[](rows.length);
        for (uint256 i; i < rows.length; ++i) leaves[i] = TraceLib.rowHash(rows[i]);
        bytes32 root = MerklePosition.rootOf(leaves);
        if (root != claim.traceRoot) revert IAuditCourt.WrongRoot(root, claim.traceRoot);
    }
}
