// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// The addresses of one deployment; every contract is given the same table and keeps what it needs as immutables.
struct Addresses {
    address token;
    address beacon;
    address vault;
    address ledger;
    address registry;
    address market;
    address rounds;
    address court;
}

/// What a deployment fixes for all of its jobs (protocol/core/presets).
struct Preset {
    uint16 slashPanel; // seats of the last level
    uint16 slashNeeded; // equal findings there that make a verdict
    uint16 detectionBps; // probability that a sampled cheat is convicted
    uint16 probationAudits; // passed audits after which an owner leaves probation
    uint32 abandonAfter; // seconds without progress after which anyone closes a job
    uint32 ticketExit; // seconds between a ticket's exit and the release of its lock
    uint32 minDemand; // least seconds in which a silent operator may still open its trace
    uint96 minTicket; // wei a ticket locks at least
}

/// Upper bounds in seconds; a phase ends as soon as everybody has spoken.
struct Windows {
    uint32 train; // from claim to commit
    uint32 round; // from open to seal
    uint32 attest; // each of the two attest windows
    uint32 challenge; // from close to the settlement of what was not sampled
    uint32 auditCommit; // from seating to the audit commit
    uint32 auditReveal; // from the last audit commit to the findings
    uint32 demand; // from a demand to the opening of a trace
}

/// The terms of a job: immutable once posted.
struct Terms {
    bytes32 specDigest; // sha256 of the job's spec
    bytes32 genesisDigest; // sha256 of checkpoint 0
    uint96 rewardPerShard; // wei
    uint96 bondPerShard; // wei
    uint32 rounds;
    uint32 innerSteps; // rows of a trace
    uint96 auditFee; // wei a seat
    uint16 auditRateBps; // share of accepted claims that is sampled
    uint16 probationSlots; // claims of owners on probation in one round
    uint16 shardsPerRound; // 1 to 256
    uint16 minShards; // least commitments for a round to seal
    uint8 toleranceClass; // 0 fp32, 1 bf16
    uint32 lossTolerance; // relative, units of 1e-9; at least the class's line
    Windows windows;
}

/// A job's status is derived from stored facts and the block time.
enum JobStatus {
    None,
    Running, // a round is open
    Ready, // anyone may open the next round
    Paused, // see the reason
    Draining, // no further round opens; earlier ones are still being settled
    Closable, // anyone may close
    Closed
}

enum PauseReason {
    None,
    Poster,
    Escrow,
    Auditors,
    VoidRound
}

enum RoundStatus {
    None,
    Open,
    Due, // its end has passed: anyone may advance it
    Sealed, // first attest window
    Tallied, // second attest window
    Closed, // checkpoint agreed, claims being settled
    Void, // no checkpoint, claims being settled
    Settled
}

enum ClaimStatus {
    Free,
    Held,
    Lapsed,
    Committed,
    Excluded, // committed, voted out of the bitmap
    Accepted,
    Paid,
    Unpaid
}

struct Claim {
    address operator;
    uint40 claimedAt;
    uint40 deadline; // last second to commit
    ClaimStatus settled; // Free until settled, then Lapsed, Paid or Unpaid
    address owner;
    bytes32 commitment;
}

/// What a commitment hides: whoever opens it shows these three.
struct ClaimOpening {
    bytes32 payloadDigest;
    bytes32 traceRoot;
    bytes32 stateDigest;
}

struct Round {
    bytes32 base; // digest of the checkpoint that the round starts from
    bytes32 next; // digest of the checkpoint that it ends in
    uint256 committedMap;
    uint256 probationMap; // shards whose claim was made on probation
    uint256 acceptedMap;
    uint40 openedAt;
    uint40 endsAt;
    uint40 sealedAt;
    uint40 talliedAt;
    uint40 closedAt; // closed or void
    uint16 committed;
    uint16 resolved; // shards settled
    bool extended;
    bool voided;
}

/// How far a job has come.
struct Progress {
    uint32 opened; // rounds opened, void ones included: the next round's number
    uint32 closed; // rounds closed: the latest checkpoint's number
    uint32 unsettled; // opened rounds with unsettled shards
    uint32 voidStreak; // void rounds since the last closed one
    uint40 movedAt; // when a round was last closed or void
    bool active; // a round is open, sealed or tallied
}

struct TraceRow {
    uint32 step; // from 1
    uint64 loss; // units of 1e-9
    uint64 gradNorm; // units of 1e-9
    bytes32 sketch;
    bytes32 state;
}

/// A row with its path to a root.
struct RowOpening {
    TraceRow row;
    bytes32[] proof;
}

enum Finding {
    None,
    Match,
    Reject,
    Fraud,
    UnavailablePayload,
    UnavailableInputs,
    Abstain
}

enum Outcome {
    None,
    Match, // paid
    Reject, // unpaid
    Fraud, // unpaid and slashed
    Excused, // inputs were withheld by the poster: paid
    Unsampled // too few seats could be filled: as if the claim had not been drawn
}

enum CasePhase {
    None,
    Seating,
    Committing,
    Revealing,
    Done
}

enum SeatState {
    Empty, // waits for a draw
    Seated,
    Committed,
    Revealed,
    Vacant // nobody could be found
}

struct Seat {
    address owner;
    uint32 ticket;
    uint8 draws; // draws so far: the first and at most two redraws
    SeatState state;
    Finding finding;
    uint16 step; // the step that a Fraud finding names
    address operator;
    uint96 locked; // wei of the ticket's lock that the seat occupies
    bytes32 root; // of the auditor's own trace
}

struct Case {
    bytes32 jobId;
    uint32 round;
    uint16 shard;
    uint8 level; // 1, 2, 3
    CasePhase phase;
    Outcome outcome;
    bool sampled; // drawn by the court; otherwise challenged
    bool withheld; // a demand for the trace went unanswered
    uint40 phaseEnds;
    uint40 demandedAt;
    uint40 openedAt; // the trace was opened on chain
    uint16 tries; // draws of the current seat that met an ineligible ticket
    address challenger; // operator that challenged
    uint32 tickets; // entries that seats are drawn from
    uint40 closedAt; // of the round: who was enrolled then can be drawn
    uint256 beaconTicket; // seed of the seats, then of the rows
    bytes32 seed;
}

struct Ticket {
    address owner;
    uint40 exitAt; // 0 while enrolled
    bool released;
    address operator;
    uint96 amount; // wei locked
    uint96 used; // wei behind seats that are still open
}

/// The sample of a closed round, and what its panels are drawn from.
struct Draw {
    uint256 beaconTicket;
    bytes32 seed;
    uint256 sampledMap;
    uint32 tickets; // entries at the round's close
    uint40 closedAt;
    bool drawn;
}
