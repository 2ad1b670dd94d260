// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Case, ClaimOpening, Finding, Outcome, RowOpening, Seat, Ticket, TraceRow} from "../types/Types.sol";

/// What a seat reveals.
struct Reveal {
    Finding finding;
    uint16 step; // the step at which a Fraud finding saw the deviation; 0 where it has none
    bytes32 salt; // of the auditor's own trace
    ClaimOpening claim; // opens the commitment, for its trace root
    RowOpening[] own; // three rows of the auditor's trace; none for Unavailable and Abstain
    RowOpening[] theirs; // the same three rows of the operator's trace; for Match only
}

/// Tickets, panels, findings and verdicts.
interface IAuditCourt {
    event Enrolled(uint32 indexed ticket, address indexed owner, address indexed operator, uint256 amount);
    event TicketExiting(uint32 indexed ticket, uint256 exitAt);
    event TicketReleased(uint32 indexed ticket, uint256 amount);
    event CaseOpened(
        bytes32 indexed caseId,
        bytes32 indexed jobId,
        uint32 indexed round,
        uint16 shard,
        bool sampled,
        address challenger
    );
    event LevelStarted(bytes32 indexed caseId, uint8 level, uint256 seats);
    event Seated(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, address owner, uint32 ticket);
    event SeatVacant(bytes32 indexed caseId, uint16 indexed seat);
    event SeatMissed(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, uint256 penalty);
    event CommitPhase(bytes32 indexed caseId, uint256 endsAt);
    event AuditCommitted(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, bytes32 root);
    event RevealPhase(bytes32 indexed caseId, uint256 endsAt, uint256 beaconTicket);
    event TraceDemanded(bytes32 indexed caseId, address indexed operator, uint256 until);
    event TraceOpened(bytes32 indexed caseId, TraceRow[] rows);
    event Revealed(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, Finding finding, uint16 step);
    event VerdictReached(
        bytes32 indexed caseId,
        bytes32 indexed jobId,
        address indexed owner,
        Outcome outcome,
        uint8 level
    );
    event SeatPaid(bytes32 indexed caseId, uint16 indexed seat, address indexed operator, uint256 amount);
    event SeatSlashed(bytes32 indexed caseId, uint16 indexed seat, address indexed owner, uint256 amount);

    error NotTheOwner(address caller, address owner);
    error TicketTooSmall(uint256 have, uint256 need);
    error TicketGone(uint32 ticket);
    error TicketInUse(uint32 ticket, uint256 used, uint256 exitAt);
    error NotSampled(bytes32 jobId, uint32 round, uint16 shard);
    error CaseExists(bytes32 caseId);
    error NoSuchCase(bytes32 caseId);
    error WrongPhase(uint8 have, uint8 need);
    error PhaseOver(uint256 time, uint256 ended);
    error PhaseRunning(uint256 time, uint256 ends);
    error NotTheSeat(address caller, address operator);
    error SeatDone(uint16 seat);
    error ZeroRoot();
    error WrongRoot(bytes32 have, bytes32 need);
    error WrongRowCount(uint256 have, uint256 need);
    error WrongRow(uint32 step, bool own);
    error LossOutOfTolerance(uint32 step, uint64 own, uint64 theirs, uint32 tolerance);
    error NoFinding();
    error NoFreeTicket(bytes32 caseId, uint256 waitsUntil);
    error NotADemand(bytes32 caseId);
    error AlreadyDemanded(bytes32 caseId);
    error NotChallengeable(bytes32 jobId, uint32 round, uint16 shard);
    error OwnClaim(address owner);

    /// Lock `amount` wei of the caller's stake behind an operator's readiness to sit on panels. The operator's owner
    /// only; at least the preset's `minTicket`. The draw is by entries: a larger stake enrols more tickets. Drawn for
    /// rounds that close from now on; nobody can enrol into a draw whose seed is known.
    function enroll(address operator, uint256 amount) external returns (uint32 ticket);

    /// Stop being drawn for rounds that close later than the preset's exit time from now. The owner only.
    function exit(uint32 ticket) external;

    /// Free the lock of a ticket whose exit time has passed and whose seats are done. Anyone.
    function release(uint32 ticket) external;

    /// Open the cases of sampled shards and draw their first seat from the sample's seed. Anyone, once the sample is
    /// drawn; reverts for a shard that is not sampled or has its case. A seat that finds only busy tickets waits.
    function convene(bytes32 jobId, uint32 round, uint16[] calldata shards) external;

    /// Doubt an accepted claim that was not sampled, once, before its challenge window ends. An active operator of
    /// another owner; locks seven fees of its owner's stake, lost if the claim stands.
    function challenge(bytes32 jobId, uint32 round, uint16 shard) external returns (bytes32 caseId);

    /// Commit the root of the own trace. The seat's operator, once, until the commit phase ends. The leaves carry case, seat,
    /// auditor and a salt, so a copied root opens for nobody else.
    function commitAudit(bytes32 caseId, uint16 seat, bytes32 root) external;

    /// Demand that the operator opens its whole trace on chain. A seat that has committed and not revealed, in the
    /// reveal phase, once a case; gives the operator `windows.demand` and the seats a whole reveal window after it.
    function demandTrace(bytes32 caseId) external;

    /// Answer a demand with all rows of the committed trace, which are emitted. Anyone, until the demand's last second.
    function openTrace(bytes32 caseId, ClaimOpening calldata claim, TraceRow[] calldata rows) external;

    /// Reveal a finding. The seat's operator, in the reveal phase. A Match shows three rows of both traces, at steps
    /// drawn after the last audit commit, whose losses agree within the job's tolerance; Reject and Fraud show the
    /// auditor's three.
    function reveal(bytes32 caseId, uint16 seat, Reveal calldata r) external;

    /// Do what time demands: go on with an unfinished draw, store a seed, drop silent seats (each loses one fee), end a
    /// phase. Anyone. Reverts with `NoFreeTicket` while a seat waits and a further look would change nothing.
    function advance(bytes32 caseId) external;

    /// The name of the case about a claim, and of its pot in the ledger.
    function caseIdOf(bytes32 jobId, uint32 round, uint16 shard) external pure returns (bytes32);

    /// A case with its seats; all zero where there is none.
    function caseOf(bytes32 caseId) external view returns (Case memory, Seat[] memory);

    /// Whether there is a case about a claim, whether it is done, and how it ended.
    function outcomeOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) external view returns (bool exists, bool done, Outcome outcome);

    /// The three steps to open; reverts while the beacon is silent.
    function stepsOf(bytes32 caseId) external view returns (uint32[3] memory steps);

    /// One entry of the list; reverts beyond its end. A released entry is overwritten by the next ticket.
    function ticketOf(uint32 ticket) external view returns (Ticket memory);

    /// The length of the list: enrolled, exiting and released entries.
    function ticketCount() external view returns (uint32);

    /// Owners with at least one enrolled ticket.
    function liveOwners() external view returns (uint256);

    /// Whether every accepted claim of this owner is sampled: fewer passed audits than the preset asks for.
    function isOnProbation(address owner) external view returns (bool);

    /// Whether two Rejects or one Fraud keep this owner from claiming in this job.
    function isBarred(bytes32 jobId, address owner) external view returns (bool);

    /// Passed audits since the last Reject.
    function passedOf(address owner) external view returns (uint256);

    /// The pot of unpaid seats and of the costs of cleared operators.
    function COURT_FUND() external view returns (bytes32);
}
