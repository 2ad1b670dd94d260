// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IPanels} from "./IPanels.sol";
import {CaseKind, ClaimOpening, Finding, Outcome, RowOpening, TraceRow} from "../types/Types.sol";

/// What a seat reveals.
struct Reveal {
    Finding finding;
    uint16 step; // the step at which a Fraud finding saw the deviation; 0 where it has none
    bytes32 salt; // of the auditor's own trace
    ClaimOpening claim; // opens the commitment, for its trace root
    RowOpening[] own; // three rows of the auditor's trace; none for Unavailable and Abstain
    RowOpening[] theirs; // the same three rows of the operator's trace; for Match only
}

/// What the rows of a seat are checked against.
struct RowContext {
    bytes32 jobId;
    uint32 round;
    uint16 shard;
    bytes32 root; // of the seat's own trace
    address auditor;
    uint256 innerSteps;
    uint256 lossTolerance; // relative, units of 1e-9
}

/// Cases about claims: panels, findings and verdicts.
interface IAuditCourt is IPanels {
    event TraceDemanded(bytes32 indexed caseId, address indexed operator, uint256 until);
    event TraceOpened(bytes32 indexed caseId, TraceRow[] rows);
    event Revealed(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, Finding finding, uint16 step);

    error NotSampled(bytes32 jobId, uint32 round, uint16 shard);
    error NotChallengeable(bytes32 jobId, uint32 round, uint16 shard);
    error OtherCommitment(bytes32 doubted, bytes32 have);
    error NotDemandable(bytes32 jobId, uint32 round, uint16 shard);
    error NotTheClaimant(address caller, address operator);
    error OwnClaim(address owner);
    error WrongRoot(bytes32 have, bytes32 need);
    error WrongRowCount(uint256 have, uint256 need);
    error WrongRow(uint32 step, bool own);
    error LossOutOfTolerance(uint32 step, uint64 own, uint64 theirs, uint256 tolerance);
    error NotADemand(bytes32 caseId);
    error AlreadyDemanded(bytes32 caseId);

    /// Open the cases of sampled shards and draw their first seat from the sample's seed. Anyone, once the sample is
    /// drawn; reverts for a shard that is not sampled or has its case. A seat that finds only busy tickets waits.
    function convene(bytes32 jobId, uint32 round, uint16[] calldata shards) external;

    /// Doubt an accepted claim that was not sampled, once, before its challenge window ends. An operator of another owner
    /// that may challenge; locks seven fees of its owner's stake, lost if the claim stands. `commitment`: the doubted one;
    /// refused where the chain holds another, after a reorganisation.
    function challenge(bytes32 jobId, uint32 round, uint16 shard, bytes32 commitment) external returns (bytes32 caseId);

    /// Ask for an audit of a claim that was voted out of the bitmap or lies in a void round, before the challenge window
    /// ends: a Match pays half of the reward. Its operator only; locks three fees, lost to the seats if the claim is
    /// found wanting.
    function demandAudit(bytes32 jobId, uint32 round, uint16 shard) external returns (bytes32 caseId);

    /// Demand that the operator opens its whole trace on chain. A seat that has committed and not revealed, in the
    /// reveal phase, once a case; gives the operator `windows.demand` and the seats a whole reveal window after it.
    function demandTrace(bytes32 caseId) external;

    /// Answer a demand with all rows of the committed trace, which are emitted. Anyone, until the demand's last second.
    function openTrace(bytes32 caseId, ClaimOpening calldata claim, TraceRow[] calldata rows) external;

    /// Reveal a finding. The seat's operator, in the reveal phase. A Match shows three rows of both traces, at steps
    /// drawn after the last audit commit, whose losses agree within the job's tolerance; Reject and Fraud show the
    /// auditor's three.
    function reveal(bytes32 caseId, uint16 seat, Reveal calldata r) external;

    /// The name of the case about a claim, and of its pot in the ledger.
    function caseIdOf(bytes32 jobId, uint32 round, uint16 shard) external pure returns (bytes32);

    /// Whether there is a case about a claim, whether it is done, how it ended and why it was opened.
    function outcomeOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) external view returns (bool exists, bool done, Outcome outcome, CaseKind kind);

    /// The three steps to open; reverts while the beacon is silent, and once its seed is out of reach and was not kept.
    function stepsOf(bytes32 caseId) external view returns (uint32[3] memory steps);

    /// What `TraceChecker` checks a seat's rows against.
    function rowContextOf(bytes32 caseId, uint16 seat) external view returns (RowContext memory);

    /// Whether every accepted claim of this owner is sampled (fewer passed audits than the preset asks for), and whether
    /// two Rejects or one Fraud keep it from claiming in this job.
    function standingOf(bytes32 jobId, address owner) external view returns (bool onProbation, bool barred);

    /// Passed audits since the last Reject.
    function passedOf(address owner) external view returns (uint256);
}
