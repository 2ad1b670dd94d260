// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {IRewardLedger} from "../interfaces/IRewardLedger.sol";
import {IOperatorRegistry} from "../interfaces/IOperatorRegistry.sol";
import {IJobMarket} from "../interfaces/IJobMarket.sol";
import {IAuditCourt} from "../interfaces/IAuditCourt.sol";
import {ICheckpointCourt} from "../interfaces/ICheckpointCourt.sol";
import {ITicketBook} from "../interfaces/ITicketBook.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {Sampling} from "../libraries/Sampling.sol";
import {TraceLib} from "../libraries/TraceLib.sol";
import {
    Addresses,
    Claim,
    ClaimOpening,
    ClaimStatus,
    Draw,
    Progress,
    Round,
    RoundStatus,
    RoundTerms,
    Share,
    Terms
} from "../types/Types.sol";

/// What is stored of rounds, and what follows from it at the block's time.
abstract contract RoundState is IRoundBook {
    struct Hold {
        address operator;
        uint40 claimedAt;
        uint40 deadline;
        ClaimStatus settled;
        bytes32 commitment;
    }

    struct Tally {
        mapping(bytes32 choice => uint256) weights; // of a pair in the first window, of a digest in the second
        mapping(uint256 bitmap => uint256) bitmapWeights; // first window
        mapping(address owner => Share) shares;
        uint256[] bitmaps; // distinct ones of the first window
        bytes32 leader; // digest with the most weight in the second window
        uint32 voted; // weight in the second window
        uint16 probationClaims;
        uint160 convicted; // votes for a digest that a court found false
        uint256 drawnMap; // accepted claims that the sample was drawn from
    }

    uint256 internal constant LAPSE_FEE_BPS = 500;
    uint256 internal constant LAPSES_REMEMBERED = 20;
    uint256 internal constant MOST_DOUBLINGS = 5; // x32

    IStakeVault public immutable vault;
    IRewardLedger public immutable ledger;
    IOperatorRegistry public immutable registry;
    IJobMarket public immutable market;
    ITicketBook public immutable tickets;
    IAuditCourt public immutable court;
    ICheckpointCourt public immutable checkpoints;
    IBeacon public immutable beacon;

    mapping(bytes32 jobId => RoundTerms) internal _terms;
    mapping(bytes32 jobId => Progress) internal _progress;
    mapping(bytes32 jobId => mapping(uint32 number => bytes32)) internal _checkpoints;
    /// The round whose checkpoint was replaced when the job's generation rose from this one.
    mapping(bytes32 jobId => mapping(uint32 generation => uint32 round)) internal _replaced;
    mapping(bytes32 key => Round) internal _rounds;
    mapping(bytes32 key => Tally) internal _tallies;
    mapping(bytes32 key => Draw) internal _draws;
    mapping(bytes32 key => mapping(uint16 shard => Hold)) internal _holds;
    /// An owner's last outcomes, newest in the lowest bit: 0 for each commitment, 1 for each round with a lapse.
    mapping(address owner => uint256) internal _lapses;

    constructor(Addresses memory a) {
        vault = IStakeVault(a.vault);
        ledger = IRewardLedger(a.ledger);
        registry = IOperatorRegistry(a.registry);
        market = IJobMarket(a.market);
        tickets = ITicketBook(a.tickets);
        court = IAuditCourt(a.court);
        checkpoints = ICheckpointCourt(a.checkpoints);
        beacon = IBeacon(a.beacon);
    }

    // ---------------------------------------------------------------- views

    /// @inheritdoc IRoundBook
    function progressOf(bytes32 jobId) external view returns (Progress memory) {
        return _progress[jobId];
    }

    /// @inheritdoc IRoundBook
    function roundOf(bytes32 jobId, uint32 round) external view returns (Round memory r, RoundStatus) {
        r = _rounds[potOf(jobId, round)];
        r.committed = uint16(Sampling.count(r.committedMap)); // stored at the seal only
        return (r, _statusOf(jobId, round));
    }

    /// @inheritdoc IRoundBook
    function claimOf(bytes32 jobId, uint32 round, uint16 shard) public view returns (Claim memory c, ClaimStatus) {
        bytes32 key = potOf(jobId, round);
        Hold storage h = _holds[key][shard];
        address owner = h.operator == address(0) ? address(0) : registry.ownerOf(h.operator);
        c = Claim(h.operator, h.claimedAt, h.deadline, h.settled, owner, h.commitment);
        return (c, _claimStatus(h, jobId, round, shard));
    }

    /// @inheritdoc IRoundBook
    function claimsOf(bytes32 jobId, uint32 round) external view returns (Claim[] memory, ClaimStatus[] memory) {
        uint16 n = market.termsOf(jobId).shardsPerRound;
        Claim[] memory claims = new Claim[](n);
        ClaimStatus[] memory statuses = new ClaimStatus[](n);
        for (uint16 i; i < n; ++i) (claims[i], statuses[i]) = claimOf(jobId, round, i);
        return (claims, statuses);
    }

    /// @inheritdoc IRoundBook
    function checkpointOf(bytes32 jobId, uint32 number) external view returns (bytes32 digest) {
        if (number == 0) return market.termsOf(jobId).genesisDigest;
        return number <= _progress[jobId].closed ? _checkpoints[jobId][number] : bytes32(0);
    }

    /// @inheritdoc IRoundBook
    function weightOf(bytes32 jobId, uint32 round, address operator) external view returns (uint256, bool attested) {
        bytes32 key = potOf(jobId, round);
        Share storage s = _tallies[key].shares[registry.ownerOf(operator)];
        uint256 window = _rounds[key].talliedAt == 0 ? 1 : 2;
        return (s.commits, s.windows & window != 0);
    }

    /// @inheritdoc IRoundBook
    function attestedTo(bytes32 jobId, uint32 round, address owner) external view returns (bool) {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        uint160 vote = _tallies[key].shares[owner].vote;
        return vote != 0 && vote == _voteOf(r.acceptedMap, r.next);
    }

    /// @inheritdoc IRoundBook
    function heldBy(bytes32 jobId, uint32 round, address owner) external view returns (uint256) {
        return _tallies[potOf(jobId, round)].shares[owner].held;
    }

    /// @inheritdoc IRoundBook
    function lapseFeeOf(bytes32 jobId, address owner) external view returns (uint256) {
        Terms memory t = market.termsOf(jobId); // also before the first round has copied them
        return _lapseFee(_lapseDoublings(owner), t.rewardPerShard, t.bondPerShard);
    }

    /// @inheritdoc IRoundBook
    function drawOf(bytes32 jobId, uint32 round) external view returns (Draw memory) {
        return _draws[potOf(jobId, round)];
    }

    /// @inheritdoc IRoundBook
    function checkOpening(bytes32 jobId, uint32 round, uint16 shard, ClaimOpening calldata opening) external view {
        bytes32 key = potOf(jobId, round);
        Hold storage h = _holds[key][shard];
        bytes32 base = _rounds[key].base;
        bytes32 have = TraceLib.commitmentOf(address(this), jobId, round, shard, h.operator, base, opening);
        if (have != h.commitment) revert WrongOpening(have, h.commitment);
    }

    /// @inheritdoc IRoundBook
    function isChallengeable(bytes32 jobId, uint32 round) external view returns (bool) {
        uint256 closedAt = _rounds[potOf(jobId, round)].closedAt;
        bool running = closedAt != 0 && block.timestamp <= closedAt + _terms[jobId].challenge;
        return running && !_isOrphaned(jobId, round);
    }

    /// @inheritdoc IRoundBook
    function isOrphaned(bytes32 jobId, uint32 round) external view returns (bool) {
        return _isOrphaned(jobId, round);
    }

    /// @inheritdoc IRoundBook
    function potOf(bytes32 jobId, uint32 round) public pure returns (bytes32) {
        return keccak256(abi.encode(jobId, round));
    }

    // ---------------------------------------------------------------- derived

    function _statusOf(bytes32 jobId, uint32 round) internal view returns (RoundStatus) {
        Round storage r = _rounds[potOf(jobId, round)];
        if (r.openedAt == 0) return RoundStatus.None;
        if (r.closedAt != 0) {
            if (r.resolved == _terms[jobId].shardsPerRound) return RoundStatus.Settled;
            if (_isOrphaned(jobId, round)) return RoundStatus.Orphaned;
            return r.voided ? RoundStatus.Void : RoundStatus.Closed;
        }
        if (r.sealedAt == 0) return block.timestamp <= r.endsAt ? RoundStatus.Open : RoundStatus.Due;
        uint256 start = r.talliedAt == 0 ? r.sealedAt : r.talliedAt;
        if (block.timestamp > start + _terms[jobId].attest) return RoundStatus.Due;
        return r.talliedAt == 0 ? RoundStatus.Sealed : RoundStatus.Tallied;
    }

    function _checkOpen(bytes32 jobId, uint32 round) internal view {
        RoundStatus have = _statusOf(jobId, round);
        if (have != RoundStatus.Open) revert WrongRoundStatus(have, RoundStatus.Open);
    }

    function _claimStatus(
        Hold storage h,
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) internal view returns (ClaimStatus) {
        if (h.operator == address(0)) return ClaimStatus.Free;
        if (h.commitment == 0) {
            if (h.settled != ClaimStatus.Free || block.timestamp > h.deadline) return ClaimStatus.Lapsed;
            return ClaimStatus.Held;
        }
        if (h.settled != ClaimStatus.Free) return h.settled;
        Round storage r = _rounds[potOf(jobId, round)];
        if (r.closedAt == 0) return ClaimStatus.Committed;
        bool accepted = !r.voided && (r.acceptedMap >> shard) & 1 == 1 && !_isOrphaned(jobId, round);
        return accepted ? ClaimStatus.Accepted : ClaimStatus.Excluded;
    }

    /// Whether a checkpoint that the round was built on was replaced after it had opened. The loop runs over the
    /// checkpoints replaced since, each of which cost a panel.
    function _isOrphaned(bytes32 jobId, uint32 round) internal view returns (bool) {
        uint32 now_ = _progress[jobId].generation;
        for (uint32 g = _rounds[potOf(jobId, round)].generation; g < now_; ++g) {
            if (_replaced[jobId][g] < round) return true;
        }
        return false;
    }

    /// Lapsed rounds among the owner's last 20 outcomes, at most 5.
    function _lapseDoublings(address owner) internal view returns (uint256 doublings) {
        doublings = Sampling.count(_lapses[owner] & ((1 << LAPSES_REMEMBERED) - 1));
        if (doublings > MOST_DOUBLINGS) doublings = MOST_DOUBLINGS;
    }

    /// 5 % of the reward, doubled that many times, at most the bond.
    function _lapseFee(uint256 doublings, uint256 reward, uint256 bond) internal pure returns (uint256 fee) {
        fee = ((reward * LAPSE_FEE_BPS) << doublings) / 10_000;
        if (fee > bond) fee = bond;
    }

    function _voteOf(uint256 bitmap, bytes32 next) internal pure returns (uint160) {
        return uint160(uint256(keccak256(abi.encode(bitmap, next))));
    }

    function _lockId(bytes32 jobId, uint32 round, uint16 shard) internal pure returns (bytes32) {
        return keccak256(abi.encode("claim", jobId, round, shard));
    }
}
