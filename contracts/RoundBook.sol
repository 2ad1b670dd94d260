// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IRoundBook} from "./interfaces/IRoundBook.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {IRewardLedger} from "./interfaces/IRewardLedger.sol";
import {IOperatorRegistry} from "./interfaces/IOperatorRegistry.sol";
import {IJobMarket} from "./interfaces/IJobMarket.sol";
import {IAuditCourt} from "./interfaces/IAuditCourt.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {Sampling} from "./libraries/Sampling.sol";
import {TraceLib} from "./libraries/TraceLib.sol";
import {
    Addresses,
    Claim,
    ClaimOpening,
    ClaimStatus,
    Draw,
    JobStatus,
    Outcome,
    PauseReason,
    Progress,
    Round,
    RoundStatus,
    Terms
} from "./types/Types.sol";

/// @title RoundBook
/// @notice The life of a round. Holds no tokens: bonds lie in the StakeVault, pay in the RewardLedger.
/// Assumes: the court decides sampled and challenged claims; at most a third of a round's weight lies.
/// Assumes for liveness: somebody calls `open`, `advance` and `settle`; anyone may.
///
/// INV-ROUND-1: a shard has at most one live claim.
/// INV-ROUND-2: a commitment is stored once and never changes.
/// INV-ROUND-3: an operator attests once in each window.
/// INV-ROUND-4: a shard is settled once, and its reward is paid at most once.
/// INV-ROUND-5: a settled round's pot is empty.
contract RoundBook is IRoundBook {
    struct Attestation {
        uint256 bitmap;
        uint256 weight;
    }

    struct Tally {
        Attestation[] votes; // first window
        mapping(bytes32 choice => uint256) weights; // of a pair in the first window, of a digest in the second
        mapping(address operator => uint256) commits;
        mapping(address operator => uint256) windowsUsed; // bit w: attested in window w
        mapping(address owner => uint256) held;
        mapping(address owner => uint256) lapseLevel; // doublings of its lapse fee in this round, plus one
        uint256 voted; // weight in the second window
        bytes32 leader; // digest with the most weight in the second window
        uint16 probationClaims;
    }

    uint256 private constant LAPSE_FEE_BPS = 500;
    uint256 private constant LAPSES_REMEMBERED = 20;
    uint256 private constant MOST_DOUBLINGS = 5; // x32

    IStakeVault public immutable vault;
    IRewardLedger public immutable ledger;
    IOperatorRegistry public immutable registry;
    IJobMarket public immutable market;
    IAuditCourt public immutable court;
    IBeacon public immutable beacon;

    mapping(bytes32 jobId => Progress) private _progress;
    mapping(bytes32 jobId => mapping(uint32 number => bytes32)) private _checkpoints;
    mapping(bytes32 key => Round) private _rounds;
    mapping(bytes32 key => Tally) private _tallies;
    mapping(bytes32 key => Draw) private _draws;
    mapping(bytes32 key => mapping(uint16 shard => Claim)) private _claims;
    /// An owner's last outcomes, newest in the lowest bit: 0 for each commitment, 1 for each round with a lapse.
    mapping(address owner => uint256) private _lapses;

    constructor(Addresses memory a) {
        vault = IStakeVault(a.vault);
        ledger = IRewardLedger(a.ledger);
        registry = IOperatorRegistry(a.registry);
        market = IJobMarket(a.market);
        court = IAuditCourt(a.court);
        beacon = IBeacon(a.beacon);
    }

    // ---------------------------------------------------------------- open, claim, commit

    /// @inheritdoc IRoundBook
    function open(bytes32 jobId) external returns (uint32 round) {
        Terms memory t = market.termsOf(jobId);
        _checkReady(jobId);
        Progress storage p = _progress[jobId];
        if (p.opened == 0) _checkpoints[jobId][0] = t.genesisDigest;
        round = p.opened++;
        ++p.unsettled;
        p.active = true;
        Round storage r = _rounds[potOf(jobId, round)];
        r.base = _checkpoints[jobId][p.closed];
        r.openedAt = uint40(block.timestamp);
        r.endsAt = uint40(block.timestamp + t.windows.round);
        emit RoundOpened(jobId, round, r.base, r.endsAt);
        ledger.move(jobId, potOf(jobId, round), market.reservationOf(jobId));
    }

    /// @inheritdoc IRoundBook
    function claim(bytes32 jobId, uint32 round, uint16[] calldata shards) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        _checkStatus(r, jobId, RoundStatus.Open);
        if (shards.length == 0) revert NoShards();
        address owner = registry.activeOwnerOf(msg.sender);
        if (court.isBarred(jobId, owner)) revert OwnerBarred(jobId, owner);
        Terms memory t = market.termsOf(jobId);
        bool probation = court.isOnProbation(owner);
        for (uint256 i; i < shards.length; ++i) _claim(jobId, round, shards[i], owner, probation, t);
        Tally storage y = _tallies[key];
        uint256 cap = _capOf(r, t);
        if (y.held[owner] > cap) revert TooManyClaims(owner, y.held[owner], cap);
        if (probation && y.probationClaims > t.probationSlots) {
            revert ProbationSlotsFull(y.probationClaims, t.probationSlots);
        }
    }

    /// @inheritdoc IRoundBook
    function commit(bytes32 jobId, uint32 round, uint16 shard, ClaimOpening calldata opening) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        _checkStatus(r, jobId, RoundStatus.Open);
        Claim storage c = _claims[key][shard];
        if (c.operator != msg.sender) revert NotTheClaimant(msg.sender, c.operator);
        if (c.commitment != 0) revert AlreadyCommitted(shard); // INV-ROUND-2
        if (block.timestamp > c.deadline || c.settled != ClaimStatus.Free)
            revert ClaimOver(block.timestamp, c.deadline);
        if (opening.payloadDigest == 0 || opening.traceRoot == 0 || opening.stateDigest == 0) revert ZeroDigest();
        c.commitment = TraceLib.commitmentOf(address(this), jobId, round, shard, msg.sender, r.base, opening);
        r.committedMap |= uint256(1) << shard;
        ++_tallies[key].commits[msg.sender];
        _lapses[c.owner] <<= 1;
        emit Committed(
            jobId,
            round,
            msg.sender,
            shard,
            c.commitment,
            opening.payloadDigest,
            opening.traceRoot,
            opening.stateDigest
        );
        if (++r.committed == market.termsOf(jobId).shardsPerRound) _seal(jobId, round, r);
    }

    // ---------------------------------------------------------------- attest, advance

    /// @inheritdoc IRoundBook
    function attest(bytes32 jobId, uint32 round, uint256 bitmap, bytes32 next) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        RoundStatus status = _statusOf(r, jobId);
        if (status != RoundStatus.Sealed && status != RoundStatus.Tallied) {
            revert WrongRoundStatus(status, RoundStatus.Sealed);
        }
        if (next == 0) revert ZeroDigest();
        Tally storage y = _tallies[key];
        uint256 weight = y.commits[msg.sender];
        if (weight == 0) revert NothingCommitted(msg.sender);
        uint256 window = status == RoundStatus.Sealed ? 1 : 2;
        if (y.windowsUsed[msg.sender] & window != 0) revert AlreadyAttested(msg.sender); // INV-ROUND-3
        y.windowsUsed[msg.sender] |= window;
        emit Attested(jobId, round, msg.sender, bitmap, next, weight);
        if (window == 1) {
            if (bitmap & ~r.committedMap != 0) revert BitmapOutOfRange(bitmap, r.committedMap);
            y.votes.push(Attestation(bitmap, weight));
            uint256 sum = y.weights[keccak256(abi.encode(bitmap, next))] += weight;
            if (3 * sum > 2 * uint256(r.committed)) _close(jobId, round, r, bitmap, next);
        } else {
            if (bitmap != r.acceptedMap) revert WrongBitmap(bitmap, r.acceptedMap);
            y.voted += weight;
            uint256 sum = y.weights[_digestKey(next)] += weight;
            if (sum > y.weights[_digestKey(y.leader)]) y.leader = next;
            if (2 * sum > r.committed) _close(jobId, round, r, bitmap, next);
        }
    }

    /// @inheritdoc IRoundBook
    function advance(bytes32 jobId, uint32 round) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        if (_statusOf(r, jobId) != RoundStatus.Due) revert NothingDue(_statusOf(r, jobId));
        Tally storage y = _tallies[key];
        if (r.sealedAt == 0) {
            Terms memory t = market.termsOf(jobId);
            if (r.committed >= t.minShards) return _seal(jobId, round, r);
            if (r.extended) return _void(jobId, round, r);
            r.extended = true;
            r.endsAt = uint40(block.timestamp + t.windows.round);
            emit RoundExtended(jobId, round, r.endsAt);
        } else if (r.talliedAt == 0) {
            if (y.votes.length == 0) return _void(jobId, round, r);
            r.acceptedMap = _majority(y.votes);
            r.talliedAt = uint40(block.timestamp);
            emit Tallied(jobId, round, r.acceptedMap);
        } else if (2 * y.weights[_digestKey(y.leader)] > y.voted) {
            _close(jobId, round, r, r.acceptedMap, y.leader);
        } else {
            _void(jobId, round, r);
        }
    }

    // ---------------------------------------------------------------- draw, settle

    /// @inheritdoc IRoundBook
    function draw(bytes32 jobId, uint32 round) external {
        bytes32 key = potOf(jobId, round);
        Draw storage d = _draws[key];
        if (d.closedAt == 0) revert NotClosed(jobId, round);
        if (d.drawn) revert AlreadyDrawn(jobId, round);
        if (beacon.expired(d.beaconTicket)) return _pinDraw(jobId, round, d);
        Round storage r = _rounds[key];
        d.drawn = true;
        d.seed = beacon.seedOf(d.beaconTicket);
        uint256 probation = r.acceptedMap & r.probationMap;
        uint256 others = r.acceptedMap & ~r.probationMap;
        uint256 wanted = Sampling.shareOf(Sampling.count(others), market.termsOf(jobId).auditRateBps);
        d.sampledMap = probation | Sampling.choose(others, wanted, d.seed);
        emit Drawn(jobId, round, d.seed, d.sampledMap);
    }

    /// @inheritdoc IRoundBook
    function settle(bytes32 jobId, uint32 round, uint16[] calldata shards) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        if (r.closedAt == 0) revert WrongRoundStatus(_statusOf(r, jobId), RoundStatus.Closed);
        Terms memory t = market.termsOf(jobId);
        uint16 before = r.resolved;
        for (uint256 i; i < shards.length; ++i) {
            if (shards[i] >= t.shardsPerRound) revert NoSuchShard(shards[i], t.shardsPerRound);
            _settle(jobId, round, shards[i], r, t);
        }
        if (r.resolved == before) revert NothingToSettle();
        if (r.resolved < t.shardsPerRound) return;
        --_progress[jobId].unsettled;
        uint256 rest = ledger.potOf(key);
        emit RoundSettled(jobId, round, rest);
        if (rest > 0) ledger.move(key, jobId, rest); // INV-ROUND-5
    }

    /// @inheritdoc IRoundBook
    function slashBond(bytes32 jobId, uint32 round, uint16 shard, bytes32 pot) external returns (uint256 amount) {
        if (msg.sender != address(court)) revert NotTheCourt(msg.sender);
        bytes32 id = _lockId(jobId, round, shard);
        (, amount) = vault.lockOf(address(this), id);
        vault.slash(id, amount, 0, pot);
    }

    // ---------------------------------------------------------------- views

    /// @inheritdoc IRoundBook
    function progressOf(bytes32 jobId) external view returns (Progress memory) {
        return _progress[jobId];
    }

    /// @inheritdoc IRoundBook
    function roundOf(bytes32 jobId, uint32 round) external view returns (Round memory, RoundStatus) {
        Round storage r = _rounds[potOf(jobId, round)];
        return (r, _statusOf(r, jobId));
    }

    /// @inheritdoc IRoundBook
    function claimOf(bytes32 jobId, uint32 round, uint16 shard) public view returns (Claim memory, ClaimStatus) {
        bytes32 key = potOf(jobId, round);
        Claim storage c = _claims[key][shard];
        return (c, _claimStatus(c, _rounds[key], shard));
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
        return number == 0 ? market.termsOf(jobId).genesisDigest : _checkpoints[jobId][number];
    }

    /// @inheritdoc IRoundBook
    function weightOf(bytes32 jobId, uint32 round, address operator) external view returns (uint256, bool attested) {
        bytes32 key = potOf(jobId, round);
        Tally storage y = _tallies[key];
        uint256 window = _rounds[key].talliedAt == 0 ? 1 : 2;
        return (y.commits[operator], y.windowsUsed[operator] & window != 0);
    }

    /// @inheritdoc IRoundBook
    function heldBy(bytes32 jobId, uint32 round, address owner) external view returns (uint256) {
        return _tallies[potOf(jobId, round)].held[owner];
    }

    /// @inheritdoc IRoundBook
    function lapseFeeOf(bytes32 jobId, address owner) external view returns (uint256) {
        return _lapseFee(_lapseDoublings(owner), market.termsOf(jobId));
    }

    /// @inheritdoc IRoundBook
    function drawOf(bytes32 jobId, uint32 round) external view returns (Draw memory) {
        return _draws[potOf(jobId, round)];
    }

    /// @inheritdoc IRoundBook
    function checkOpening(bytes32 jobId, uint32 round, uint16 shard, ClaimOpening calldata opening) external view {
        bytes32 key = potOf(jobId, round);
        Claim storage c = _claims[key][shard];
        bytes32 have = TraceLib.commitmentOf(
            address(this),
            jobId,
            round,
            shard,
            c.operator,
            _rounds[key].base,
            opening
        );
        if (have != c.commitment) revert WrongOpening(have, c.commitment);
    }

    /// @inheritdoc IRoundBook
    function potOf(bytes32 jobId, uint32 round) public pure returns (bytes32) {
        return keccak256(abi.encode(jobId, round));
    }

    // ---------------------------------------------------------------- inside

    function _checkReady(bytes32 jobId) private view {
        (JobStatus status, PauseReason reason) = market.statusOf(jobId);
        if (status == JobStatus.Ready) return;
        if (reason == PauseReason.Escrow) revert EscrowTooSmall(ledger.potOf(jobId), market.reservationOf(jobId));
        if (reason == PauseReason.Auditors) {
            revert TooFewAuditors(court.liveOwners(), uint256(market.preset().slashPanel) + 1);
        }
        revert JobNotReady(jobId, uint8(status), uint8(reason));
    }

    function _claim(bytes32 jobId, uint32 round, uint16 shard, address owner, bool probation, Terms memory t) private {
        if (shard >= t.shardsPerRound) revert NoSuchShard(shard, t.shardsPerRound);
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        Claim storage c = _claims[key][shard];
        if (c.operator != address(0)) {
            // INV-ROUND-1: the shard is free again only when its claim has run out without a commitment
            if (c.commitment != 0 || block.timestamp <= c.deadline) revert ShardTaken(shard, c.operator);
            if (c.owner == owner) revert ShardLapsedByOwner(shard, owner);
            if (c.settled == ClaimStatus.Free) _lapse(jobId, round, shard, c, t);
        }
        uint256 deadline = block.timestamp + t.windows.train;
        if (deadline > r.endsAt) deadline = r.endsAt;
        uint256 bit = uint256(1) << shard;
        Tally storage y = _tallies[key];
        if (probation) {
            r.probationMap |= bit;
            ++y.probationClaims;
        }
        ++y.held[owner];
        _claims[key][shard] = Claim(
            msg.sender,
            uint40(block.timestamp),
            uint40(deadline),
            ClaimStatus.Free,
            owner,
            bytes32(0)
        );
        emit Claimed(jobId, round, msg.sender, shard, owner, deadline);
        vault.lock(owner, _lockId(jobId, round, shard), t.bondPerShard);
    }

    /// Charges the fee, frees the lock and the slots. `c` is reused by the next claimant, or stays as a settled lapse.
    function _lapse(bytes32 jobId, uint32 round, uint16 shard, Claim storage c, Terms memory t) private {
        bytes32 key = potOf(jobId, round);
        uint256 bit = uint256(1) << shard;
        Round storage r = _rounds[key];
        Tally storage y = _tallies[key];
        if (r.probationMap & bit != 0) {
            r.probationMap &= ~bit;
            --y.probationClaims;
        }
        --y.held[c.owner];
        c.settled = ClaimStatus.Lapsed;
        uint256 level = y.lapseLevel[c.owner];
        if (level == 0) {
            // One outage, however many shards it hit: the round counts once.
            level = y.lapseLevel[c.owner] = _lapseDoublings(c.owner) + 1;
            _lapses[c.owner] = (_lapses[c.owner] << 1) | 1;
        }
        uint256 fee = _lapseFee(level - 1, t);
        emit Lapsed(jobId, round, c.operator, shard, fee);
        bytes32 id = _lockId(jobId, round, shard);
        vault.slash(id, fee, fee, 0);
        vault.release(id);
    }

    function _seal(bytes32 jobId, uint32 round, Round storage r) private {
        r.sealedAt = uint40(block.timestamp);
        emit RoundSealed(jobId, round, r.committedMap);
    }

    function _close(bytes32 jobId, uint32 round, Round storage r, uint256 bitmap, bytes32 next) private {
        r.acceptedMap = bitmap;
        r.next = next;
        r.closedAt = uint40(block.timestamp);
        Progress storage p = _progress[jobId];
        p.voidStreak = 0;
        p.movedAt = uint40(block.timestamp);
        p.active = false;
        _checkpoints[jobId][++p.closed] = next;
        emit RoundClosed(jobId, round, bitmap, next);
        Draw storage d = _draws[potOf(jobId, round)];
        d.closedAt = r.closedAt;
        d.tickets = court.ticketCount();
        _pinDraw(jobId, round, d);
    }

    function _pinDraw(bytes32 jobId, uint32 round, Draw storage d) private {
        d.beaconTicket = beacon.pin();
        emit DrawPinned(jobId, round, d.beaconTicket);
    }

    function _void(bytes32 jobId, uint32 round, Round storage r) private {
        r.voided = true;
        r.closedAt = uint40(block.timestamp);
        Progress storage p = _progress[jobId];
        ++p.voidStreak;
        p.movedAt = uint40(block.timestamp);
        p.active = false;
        emit RoundVoided(jobId, round);
    }

    function _settle(bytes32 jobId, uint32 round, uint16 shard, Round storage r, Terms memory t) private {
        Claim storage c = _claims[potOf(jobId, round)][shard];
        if (c.operator == address(0)) {
            // nobody ever claimed it: mark it, so that it counts once
            if (c.settled != ClaimStatus.Free) return;
            c.settled = ClaimStatus.Unpaid;
            ++r.resolved;
            return;
        }
        if (c.commitment == 0) {
            if (c.settled == ClaimStatus.Unpaid) return;
            if (c.settled == ClaimStatus.Free) _lapse(jobId, round, shard, c, t);
            c.settled = ClaimStatus.Unpaid;
            ++r.resolved;
            return;
        }
        if (c.settled != ClaimStatus.Free) return; // INV-ROUND-4
        (bool decided, bool paid) = _fateOf(jobId, round, shard, r, t);
        if (!decided) return;
        c.settled = paid ? ClaimStatus.Paid : ClaimStatus.Unpaid;
        ++r.resolved;
        uint256 reward = paid ? t.rewardPerShard : 0;
        emit ClaimSettled(jobId, round, c.operator, shard, c.settled, reward);
        vault.release(_lockId(jobId, round, shard));
        if (paid) ledger.credit(potOf(jobId, round), registry.payoutOf(c.operator), reward);
    }

    /// Whether a commitment's fate is decided, and whether it is paid.
    function _fateOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        Round storage r,
        Terms memory t
    ) private view returns (bool decided, bool paid) {
        bool windowOver = block.timestamp > uint256(r.closedAt) + t.windows.challenge;
        if (r.voided || (r.acceptedMap >> shard) & 1 == 0) return (windowOver, false);
        Draw storage d = _draws[potOf(jobId, round)];
        bool sampled = (d.sampledMap >> shard) & 1 == 1;
        (bool exists, bool done, Outcome outcome) = court.outcomeOf(jobId, round, shard);
        if (!d.drawn || ((sampled || exists) && !done)) return (false, false);
        if (outcome == Outcome.None || outcome == Outcome.Unsampled) return (windowOver, true);
        return (true, outcome == Outcome.Match || outcome == Outcome.Excused);
    }

    function _majority(Attestation[] storage votes) private view returns (uint256) {
        uint256[] memory maps = new uint256[](votes.length);
        uint256[] memory weights = new uint256[](votes.length);
        for (uint256 i; i < votes.length; ++i) (maps[i], weights[i]) = (votes[i].bitmap, votes[i].weight);
        return Sampling.majority(maps, weights);
    }

    /// An owner's live claims in a round: a quarter of the shards until half of the round has passed, then all.
    function _capOf(Round storage r, Terms memory t) private view returns (uint256) {
        if (block.timestamp > (uint256(r.openedAt) + r.endsAt) / 2) return t.shardsPerRound;
        return (uint256(t.shardsPerRound) + 3) / 4;
    }

    /// Lapsed rounds among the owner's last 20 outcomes, at most 5.
    function _lapseDoublings(address owner) private view returns (uint256 doublings) {
        doublings = Sampling.count(_lapses[owner] & ((1 << LAPSES_REMEMBERED) - 1));
        if (doublings > MOST_DOUBLINGS) doublings = MOST_DOUBLINGS;
    }

    /// 5 % of the reward, doubled that many times, at most the bond.
    function _lapseFee(uint256 doublings, Terms memory t) private pure returns (uint256 fee) {
        fee = ((uint256(t.rewardPerShard) * LAPSE_FEE_BPS) << doublings) / 10_000;
        if (fee > t.bondPerShard) fee = t.bondPerShard;
    }

    function _checkStatus(Round storage r, bytes32 jobId, RoundStatus need) private view {
        RoundStatus have = _statusOf(r, jobId);
        if (have != need) revert WrongRoundStatus(have, need);
    }

    function _statusOf(Round storage r, bytes32 jobId) private view returns (RoundStatus) {
        if (r.openedAt == 0) return RoundStatus.None;
        Terms memory t = market.termsOf(jobId);
        if (r.closedAt != 0) {
            if (r.resolved == t.shardsPerRound) return RoundStatus.Settled;
            return r.voided ? RoundStatus.Void : RoundStatus.Closed;
        }
        if (r.sealedAt == 0) return block.timestamp <= r.endsAt ? RoundStatus.Open : RoundStatus.Due;
        uint256 start = r.talliedAt == 0 ? r.sealedAt : r.talliedAt;
        if (block.timestamp > start + t.windows.attest) return RoundStatus.Due;
        return r.talliedAt == 0 ? RoundStatus.Sealed : RoundStatus.Tallied;
    }

    function _claimStatus(Claim storage c, Round storage r, uint16 shard) private view returns (ClaimStatus) {
        if (c.operator == address(0)) return ClaimStatus.Free;
        if (c.commitment == 0) {
            if (c.settled != ClaimStatus.Free || block.timestamp > c.deadline) return ClaimStatus.Lapsed;
            return ClaimStatus.Held;
        }
        if (c.settled != ClaimStatus.Free) return c.settled;
        if (r.closedAt == 0) return ClaimStatus.Committed;
        bool accepted = !r.voided && (r.acceptedMap >> shard) & 1 == 1;
        return accepted ? ClaimStatus.Accepted : ClaimStatus.Excluded;
    }

    /// Hashed alone, so that no digest of the second window can name a pair of the first.
    function _digestKey(bytes32 next) private pure returns (bytes32) {
        return keccak256(abi.encode(next));
    }

    function _lockId(bytes32 jobId, uint32 round, uint16 shard) private pure returns (bytes32) {
        return keccak256(abi.encode("claim", jobId, round, shard));
    }
}
