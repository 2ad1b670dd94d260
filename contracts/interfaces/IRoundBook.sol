// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Claim, ClaimOpening, ClaimStatus, Draw, Progress, Round, RoundStatus} from "../types/Types.sol";

/// Rounds: open, claim, commit, seal, attest, close, settle.
interface IRoundBook {
    event RoundOpened(bytes32 indexed jobId, uint32 indexed round, bytes32 base, uint256 endsAt);
    event Claimed(
        bytes32 indexed jobId,
        uint32 indexed round,
        address indexed operator,
        uint16 shard,
        address owner,
        uint256 deadline
    );
    event Lapsed(bytes32 indexed jobId, uint32 indexed round, address indexed operator, uint16 shard, uint256 fee);
    event Committed(
        bytes32 indexed jobId,
        uint32 indexed round,
        address indexed operator,
        uint16 shard,
        bytes32 commitment,
        bytes32 payloadDigest,
        bytes32 traceRoot,
        bytes32 stateDigest
    );
    event RoundExtended(bytes32 indexed jobId, uint32 indexed round, uint256 endsAt);
    event RoundSealed(bytes32 indexed jobId, uint32 indexed round, uint256 committedMap);
    event Attested(
        bytes32 indexed jobId,
        uint32 indexed round,
        address indexed operator,
        uint256 bitmap,
        bytes32 next,
        uint256 weight
    );
    event Tallied(bytes32 indexed jobId, uint32 indexed round, uint256 bitmap);
    event RoundClosed(bytes32 indexed jobId, uint32 indexed round, uint256 acceptedMap, bytes32 next);
    event RoundVoided(bytes32 indexed jobId, uint32 indexed round);
    event CheckpointReplaced(
        bytes32 indexed jobId,
        uint32 indexed round,
        uint256 acceptedMap,
        bytes32 next,
        bool convicted
    );
    event DrawPinned(bytes32 indexed jobId, uint32 indexed round, uint256 beaconTicket);
    event Drawn(bytes32 indexed jobId, uint32 indexed round, bytes32 seed, uint256 sampledMap);
    event ClaimSettled(
        bytes32 indexed jobId,
        uint32 indexed round,
        address indexed operator,
        uint16 shard,
        ClaimStatus status,
        uint256 reward
    );
    event RoundSettled(bytes32 indexed jobId, uint32 indexed round, uint256 returned);

    error JobNotReady(bytes32 jobId, uint8 status, uint8 reason);
    error TooFewAuditors(uint256 have, uint256 need);
    error EscrowTooSmall(uint256 have, uint256 need);
    error WrongRoundStatus(RoundStatus have, RoundStatus need);
    error NoShards();
    error NoSuchShard(uint16 shard, uint16 shards);
    error ShardTaken(uint16 shard, address operator);
    error ShardLapsedByOwner(uint16 shard, address owner);
    error TooManyClaims(address owner, uint256 have, uint256 most);
    error ProbationSlotsFull(uint256 have, uint256 most);
    error OwnerBarred(bytes32 jobId, address owner);
    error NotTheClaimant(address caller, address operator);
    error ClaimOver(uint256 time, uint256 deadline);
    error AlreadyCommitted(uint16 shard);
    error NothingCommitted(address operator);
    error AlreadyAttested(address operator);
    error BitmapOutOfRange(uint256 bitmap, uint256 committedMap);
    error WrongBitmap(uint256 have, uint256 need);
    error ZeroDigest();
    error NothingDue(RoundStatus status);
    error NothingToSettle();
    error AlreadyDrawn(bytes32 jobId, uint32 round);
    error WrongOpening(bytes32 have, bytes32 need);
    error NotACourt(address caller);
    error WrongBase(bytes32 have, bytes32 need);

    /// Open the job's next round: reserves its pay. Anyone, once the previous round is closed or void.
    function open(bytes32 jobId) external returns (uint32 round);

    /// Take exclusive holds on shards until `windows.train` has passed, never past the round's end; locks `bondPerShard`
    /// wei of the owner's free stake for each. An active operator of an owner that is not barred, while the round is
    /// open. At most a quarter of the shards an owner until half of the round has passed; owners on probation share
    /// `probationSlots`. A shard whose holder lapsed is open to other owners, and charges the lapse.
    function claim(bytes32 jobId, uint32 round, uint16[] calldata shards) external;

    /// Commit to a result before the claim's deadline. The claimant only. Names the base that it was trained from, so that
    /// a transaction which outlives a reorganisation commits to nothing else; the commitment binds it to this claim, so a
    /// copy of the values is worthless to anyone else. Seals the round when it is the last shard.
    function commit(bytes32 jobId, uint32 round, uint16 shard, bytes32 base, ClaimOpening calldata opening) external;

    /// Say which payloads count and which checkpoint follows from `base`, with the weight of all commitments of the
    /// caller's owner. An operator that may train; once in each attest window for an owner, whichever of its operators
    /// speaks. In the second window the bitmap is fixed. More than 2/3 of all weight on one pair (first window) or 1/2 on
    /// one digest (second) closes the round at once. Puts the bonds of the owner's claims in this round behind it.
    function attest(bytes32 jobId, uint32 round, bytes32 base, uint256 bitmap, bytes32 next) external;

    /// Do what time demands: seal or extend or void an ended round, tally the first attest window, close or void after
    /// the second. Anyone; `NothingDue` otherwise.
    function advance(bytes32 jobId, uint32 round) external;

    /// Draw the sample of a closed round: every accepted claim made on probation and a uniform share of the rest.
    /// Anyone, once the beacon that was pinned at the close speaks; pins again when it was missed. Where a court put
    /// claims back into the bitmap it is pinned and drawn once more, for them.
    function draw(bytes32 jobId, uint32 round) external;

    /// Settle shards whose fate is decided: pay, free locks, charge lapses, slash who attested to a false checkpoint.
    /// Anyone. A commitment's fate is decided once its case is done, its challenge window is over and no checkpoint up to
    /// its round's own can be challenged; in an orphaned round once nobody judges its checkpoint. Skips what is not
    /// decided yet and what is settled; reverts with `NothingToSettle` if that is everything. Counts at most 64 rounds as
    /// final on the way to this one; a call that settles nothing but has more to count succeeds, and the next one goes on
    /// from there.
    function settle(bytes32 jobId, uint32 round, uint16[] calldata shards) external;

    /// Put another checkpoint in the place of the one that a round ended in; everything built on that is orphaned: locks
    /// and reservations return. With `convict`, those who attested to it lose the bonds of their claims in this round when
    /// it is settled. The checkpoint court only.
    function replaceCheckpoint(bytes32 jobId, uint32 round, uint256 bitmap, bytes32 digest, bool convict) external;

    /// Take up to `wanted` slots of three fees each of a round's reserve that its sample, drawn or to be drawn, does not
    /// need. The courts only.
    function takeReserve(bytes32 jobId, uint32 round, uint16 wanted) external returns (uint16 granted);

    /// Slash a claim's whole bond into a pot of the ledger. The court only.
    function slashBond(bytes32 jobId, uint32 round, uint16 shard, bytes32 pot) external returns (uint256 amount);

    /// How far a job has come.
    function progressOf(bytes32 jobId) external view returns (Progress memory);

    /// A round and its status at the block's time.
    function roundOf(bytes32 jobId, uint32 round) external view returns (Round memory, RoundStatus);

    /// The last claim of a shard and its status at the block's time.
    function claimOf(bytes32 jobId, uint32 round, uint16 shard) external view returns (Claim memory, ClaimStatus);

    /// All claims of a round, by shard.
    function claimsOf(bytes32 jobId, uint32 round) external view returns (Claim[] memory, ClaimStatus[] memory);

    /// The agreed digest of a checkpoint; number 0 is the genesis. Zero while unknown.
    function checkpointOf(bytes32 jobId, uint32 number) external view returns (bytes32 digest);

    /// How many commitments of this operator's owner a round holds, and whether it attested in the current window.
    function weightOf(bytes32 jobId, uint32 round, address operator) external view returns (uint256, bool attested);

    /// Whether an owner's last attestation is the pair that the round closed with.
    function attestedTo(bytes32 jobId, uint32 round, address owner) external view returns (bool);

    /// Whether the round is closed or void, rests on nothing that was replaced, and its challenge window runs.
    function isChallengeable(bytes32 jobId, uint32 round) external view returns (bool);

    /// Whether a checkpoint that the round was built on was replaced.
    function isOrphaned(bytes32 jobId, uint32 round) external view returns (bool);

    /// Claims of an owner in a round; one that lapsed counts until the lapse is charged, by the next claimant of its
    /// shard or by `settle`.
    function heldBy(bytes32 jobId, uint32 round, address owner) external view returns (uint256);

    /// Wei that each lapse of an owner costs in a round in which it has not lapsed before.
    function lapseFeeOf(bytes32 jobId, address owner) external view returns (uint256);

    /// The sample of a closed round.
    function drawOf(bytes32 jobId, uint32 round) external view returns (Draw memory);

    /// Reverts with `WrongOpening` unless the three values open the shard's commitment.
    function checkOpening(bytes32 jobId, uint32 round, uint16 shard, ClaimOpening calldata opening) external view;

    /// The pot that holds a round's reservation.
    function potOf(bytes32 jobId, uint32 round) external pure returns (bytes32);
}
