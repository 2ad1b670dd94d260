// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {IAuditCourt, Reveal, RowContext} from "../interfaces/IAuditCourt.sol";
import {TraceLib} from "../libraries/TraceLib.sol";
import {Panels} from "./Panels.sol";
import {TraceChecker} from "./TraceChecker.sol";
import {Case, CasePhase, Claim, ClaimOpening, CourtTerms, Finding, Seat, SeatState, TraceRow} from "../types/Types.sol";

/// What a seat shows for its finding about a claim: rows of traces.
///
/// INV-FIND-1: a Match shows equal losses of both committed traces at those steps, see TraceChecker.
abstract contract Findings is Panels, IAuditCourt {
    TraceChecker public immutable checker;

    constructor() {
        checker = new TraceChecker(rounds);
    }

    /// @inheritdoc IAuditCourt
    function demandTrace(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        _checkPhase(c, CasePhase.Revealing);
        if (c.demandedAt != 0) revert AlreadyDemanded(caseId);
        if (!_isSeated(caseId, msg.sender)) revert NotTheSeat(msg.sender, address(0));
        CourtTerms memory t = _termsOf(c.jobId);
        c.demandedAt = uint40(block.timestamp);
        // the answer first, then time to use it
        c.phaseEnds = uint40(block.timestamp + t.demand + t.auditReveal);
        emit TraceDemanded(caseId, _claimOf(c).operator, block.timestamp + t.demand);
    }

    /// @inheritdoc IAuditCourt
    function openTrace(bytes32 caseId, ClaimOpening calldata, TraceRow[] calldata rows) external {
        Case storage c = _cases[caseId];
        if (c.demandedAt == 0 || c.opened) revert NotADemand(caseId);
        CourtTerms memory t = _termsOf(c.jobId);
        uint256 until = uint256(c.demandedAt) + t.demand;
        if (block.timestamp > until) revert PhaseOver(block.timestamp, until);
        _check();
        c.opened = true;
        emit TraceOpened(caseId, rows);
    }

    /// @inheritdoc IAuditCourt
    function reveal(bytes32 caseId, uint16 seat, Reveal calldata r) external {
        Case storage c = _cases[caseId];
        Seat storage s = _seatOf(caseId, c, seat, CasePhase.Revealing, SeatState.Committed);
        if (r.finding == Finding.Match || r.finding == Finding.Reject || r.finding == Finding.Fraud) {
            // kept for the others, as it may soon be out of reach
            if (_countOf(caseId, SeatState.Committed) > 1) c.seed = _seedOf(c);
            _check(); // INV-FIND-1
        }
        s.step = r.step;
        emit Revealed(caseId, seat, msg.sender, r.finding, r.step);
        _revealed(caseId, c, s, r.finding);
    }

    /// @inheritdoc IAuditCourt
    function stepsOf(bytes32 caseId) external view returns (uint32[3] memory steps) {
        Case storage c = _cases[caseId];
        if (c.phase != CasePhase.Revealing) revert WrongPhase(uint8(c.phase), uint8(CasePhase.Revealing));
        bytes32 seed = keccak256(abi.encode(_seedOf(c), caseId));
        uint256 innerSteps = _termsOf(c.jobId).innerSteps;
        for (uint256 i; i < 3; ++i) steps[i] = TraceLib.stepAt(seed, i, innerSteps);
    }

    /// @inheritdoc IAuditCourt
    function rowContextOf(bytes32 caseId, uint16 seat) external view returns (RowContext memory x) {
        Case storage c = _cases[caseId];
        Seat storage s = _seats[caseId][seat];
        CourtTerms memory t = _termsOf(c.jobId);
        (x.jobId, x.round, x.shard) = (c.jobId, c.round, c.shard);
        (x.root, x.auditor, x.innerSteps, x.lossTolerance) = (s.root, s.operator, t.innerSteps, t.lossTolerance);
    }

    /// The checker is given this very call, and refuses it or not.
    function _check() private view {
        Address.functionStaticCall(address(checker), msg.data);
    }

    function _isSeated(bytes32 caseId, address operator) private view returns (bool) {
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].operator == operator && seats[i].state == SeatState.Committed) return true;
        }
        return false;
    }

    function _claimOf(Case storage c) internal view returns (Claim memory claim) {
        (claim, ) = rounds.claimOf(c.jobId, c.round, c.shard);
    }

    /// The seed that was pinned last; reverts while it is unknown, and once it is out of reach and was not kept.
    function _seedOf(Case storage c) private view returns (bytes32) {
        return c.seed != 0 ? c.seed : beacon.seedOf(c.beaconTicket);
    }
}
