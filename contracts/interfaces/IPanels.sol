// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bond, Case, CaseKind, Outcome, Seat} from "../types/Types.sol";

/// What both courts share: cases, seats, phases and appeals.
interface IPanels {
    event CaseOpened(
        bytes32 indexed caseId,
        bytes32 indexed jobId,
        uint32 indexed round,
        uint16 shard,
        CaseKind kind,
        address opener
    );
    event LevelStarted(bytes32 indexed caseId, uint8 level, uint256 seats);
    event Seated(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, address owner, uint32 ticket);
    event SeatVacant(bytes32 indexed caseId, uint16 indexed seat);
    event SeatMissed(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, uint256 penalty);
    event CommitPhase(bytes32 indexed caseId, uint256 endsAt);
    event AuditCommitted(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, bytes32 root);
    event RevealPhase(bytes32 indexed caseId, uint256 endsAt, uint256 beaconTicket);
    event Appealable(bytes32 indexed caseId, Outcome outcome, uint256 endsAt);
    event Appealed(bytes32 indexed caseId, address indexed operator, Outcome against);
    event BondPosted(bytes32 indexed caseId, address indexed operator, address indexed owner, uint256 amount);
    event BondEnded(bytes32 indexed caseId, address indexed operator, address indexed owner, uint256 lost);
    event VerdictReached(
        bytes32 indexed caseId,
        bytes32 indexed jobId,
        address indexed accused,
        Outcome outcome,
        uint8 level
    );
    event SeatPaid(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, uint256 amount);
    event SeatSlashed(bytes32 indexed caseId, uint16 indexed seat, address indexed owner, uint256 amount);

    error CaseExists(bytes32 caseId);
    error NoSuchCase(bytes32 caseId);
    error WrongPhase(uint8 have, uint8 need);
    error PhaseOver(uint256 time, uint256 ended);
    error PhaseRunning(uint256 time, uint256 ends);
    error NotTheSeat(address caller, address operator);
    error SeatDone(uint16 seat);
    error ZeroRoot();
    error NoFinding();
    error NoFreeTicket(bytes32 caseId, uint256 waitsUntil);

    /// Commit to a finding. The seat's operator, once, until the commit phase ends. What is committed binds case, seat,
    /// auditor and a salt, so a copied root opens for nobody else.
    function commitAudit(bytes32 caseId, uint16 seat, bytes32 root) external;

    /// Do what time demands: go on with an unfinished draw, store a seed, drop silent seats (each loses one fee), end a
    /// phase, reach the verdict that nobody appealed from. Anyone. Reverts with `NoFreeTicket` while a seat waits and a
    /// further look would change nothing.
    function advance(bytes32 caseId) external;

    /// Appeal from an outcome to the next level before its window ends: seven fees from three seats to the panel,
    /// fourteen from the panel to the largest one. An operator that its owner lets challenge; the bond is lost if the
    /// larger panel says the same.
    function appeal(bytes32 caseId) external;

    /// A case with its seats; all zero where there is none.
    function caseOf(bytes32 caseId) external view returns (Case memory, Seat[] memory);

    /// The bonds behind a case: who opened it, and who appealed.
    function bondsOf(bytes32 caseId) external view returns (Bond[] memory);
}
