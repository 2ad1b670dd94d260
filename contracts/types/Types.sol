// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

// What an owner lets a key do; a delegation adds them up.
uint8 constant SCOPE_TRAIN = 1; // claim, commit, attest
uint8 constant SCOPE_AUDIT = 2; // sit on panels
uint8 constant SCOPE_CHALLENGE = 4; // challenge, appeal
uint8 constant SCOPE_ALL = 7;

/// The addresses of one deployment; every contract is given the same table and keeps what it needs as immutables.
struct Addresses {
    address token;
    address beacon;
    address vault;
    address ledger;
    address registry;
    address market;
    address rounds;
    address tickets;
    address court;
    address checkpoints;
}

// The ledger's pot of unpaid seats.
bytes32 constant COURT_FUND = keccak256("court fund");
// Wei of a ticket's lock that a seat occupies, in rewards of a shard.
uint256 constant SEAT_LOCK_REWARDS = 40;
// Fees held back in a round for each claim that can be sampled.
uint256 constant SEATS_RESERVED = 3;

/// What a deployment fixes for all of its jobs (protocol/core/presets).
struct Preset {
    uint16 slashPanel; // seats of the last level
    uint16 slashNeeded; // equal findings there that make a verdict
    uint16 appealPanel; // seats after an appeal from the last level
    uint16 appealNeeded; // equal findings there that make a verdict
    uint16 detectionBps; // probability that a sampled cheat is convicted
    uint16 probationAudits; // passed audits after which an owner leaves probation
    uint32 abandonAfter; // seconds without progress after which anyone closes a job
    uint32 ticketExit; // seconds between a ticket's exit and the release of its lock
    uint32 minDemand; // least seconds in which a silent operator may still open its trace
    uint32 minWindow; // least seconds of every window
    uint96 ticket; // wei that a ticket locks
    bool calibrated; // no verdict about a claim slashes before the job carries a calibration record
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
    Orphaned, // it was built on a checkpoint that a court replaced, claims being settled
    Settled
}

enum ClaimStatus {
    Free,
    Held,
    Lapsed,
    Committed,
    Excluded, // committed, voted out of the bitmap or in a round without a checkpoint
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
    uint16 committed; // bits of committedMap
    uint16 resolved; // shards settled
    bool extended;
    bool voided;
    uint32 checkpoint; // number of `next`; 0 while there is none
    uint32 generation; // checkpoints of the job that a court had replaced when the round opened
}

/// How far a job has come.
struct Progress {
    uint32 opened; // rounds opened, void ones included: the next round's number
    uint32 closed; // rounds closed: the latest checkpoint's number
    uint32 unsettled; // opened rounds with unsettled shards
    uint32 voidStreak; // void rounds since the last closed one
    uint40 movedAt; // when a round was last closed or void
    uint32 finalRounds; // rounds from the first on whose checkpoint nobody can challenge any more
    uint32 generation; // checkpoints that a court replaced
    bool active; // a round is open, sealed or tallied
}

/// What a round needs of its job's terms; copied at the first open, for they never change.
struct RoundTerms {
    uint96 rewardPerShard;
    uint96 bondPerShard;
    uint32 train;
    uint32 round;
    uint32 attest;
    uint32 challenge;
    uint16 auditRateBps;
    uint16 probationSlots;
    uint16 shardsPerRound;
    uint16 minShards;
}

/// What a court needs of a job's terms: wei, seconds, steps, units of 1e-9.
struct CourtTerms {
    uint256 reward;
    uint256 fee;
    uint256 challenge;
    uint256 auditCommit;
    uint256 auditReveal;
    uint256 demand;
    uint256 innerSteps;
    uint256 lossTolerance;
}

/// An owner's part in a round.
struct Share {
    uint16 held; // claims
    uint16 commits; // commitments: the weight of its attestation
    uint8 lapseLevel; // doublings of its lapse fee in this round, plus one
    uint8 windows; // bit w: attested in window w + 1
    uint160 vote; // the first bytes of the hash of its last attestation
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
    Appealable, // decided, unless somebody appeals
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
    uint8 level; // 1, 2, 3; 4 after an appeal
    CasePhase phase;
    Outcome outcome;
    CaseKind kind;
    bool withheld; // a demand for the trace went unanswered
    bool metBusy; // the seat being drawn met a busy ticket: it waits, it is not vacant
    address accused; // owner of the claim; zero where a checkpoint is doubted
    uint40 phaseEnds;
    uint40 demandedAt;
    bool opened; // the trace, on chain
    uint16 tries; // draws of the current seat that met an ineligible ticket
    uint32 tickets; // entries that seats are drawn from
    uint40 closedAt; // who was enrolled then can be drawn
    uint80 beaconTicket; // seed of the seats, then of the rows
    bytes32 seed; // of it, while somebody needs it
}

enum CaseKind {
    Sampled, // drawn from the beacon
    Challenged, // an accepted claim, by a stranger
    Demanded, // a claim without pay, by its operator
    Checkpoint // a checkpoint, by anybody
}

/// Stake of somebody who made a panel sit: lost if the panel says that it sat in vain.
struct Bond {
    address operator;
    uint8 fees;
    Outcome against; // the outcome that was appealed from; None for what opened the case
    address owner;
}

struct Ticket {
    address owner;
    uint40 exitAt; // 0 while enrolled
    uint40 enrolledAt;
    bool released;
    uint96 amount; // wei locked: the preset's `ticket`, less what its seats lost
    uint96 used; // wei behind seats that are still open; beside the amount, so that a seat changes no empty word
    address operator;
}

/// The sample of a closed round, and what its panels are drawn from.
struct Draw {
    uint256 beaconTicket;
    bytes32 seed;
    uint256 sampledMap;
    uint32 tickets; // entries at the round's close
    uint40 closedAt;
    bool drawn;
    uint16 taken; // slots of the reserve that cases outside the sample took
}
