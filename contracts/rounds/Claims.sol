// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {Sampling} from "../libraries/Sampling.sol";
import {TraceLib} from "../libraries/TraceLib.sol";
import {RoundState} from "./RoundState.sol";
import {ClaimOpening, ClaimStatus, Round, RoundTerms, SCOPE_TRAIN, Share} from "../types/Types.sol";

/// Taking shards and committing to results.
///
/// INV-ROUND-1: a shard has at most one live claim.
/// INV-ROUND-2: a commitment is stored once and never changes.
abstract contract Claims is RoundState {
    /// @inheritdoc IRoundBook
    function claim(bytes32 jobId, uint32 round, uint16[] calldata shards) external {
        _checkOpen(jobId, round);
        if (shards.length == 0) revert NoShards();
        address owner = registry.ownerFor(msg.sender, SCOPE_TRAIN);
        (bool probation, bool barred) = court.standingOf(jobId, owner);
        if (barred) revert OwnerBarred(jobId, owner);
        bytes32 key = potOf(jobId, round);
        RoundTerms memory t = _terms[jobId];
        for (uint256 i; i < shards.length; ++i) _claim(jobId, round, shards[i], owner, t);
        Share storage s = _tallies[key].shares[owner];
        s.held += uint16(shards.length);
        uint256 cap = _capOf(_rounds[key], t);
        if (s.held > cap) revert TooManyClaims(owner, s.held, cap);
        if (probation) _claimOnProbation(key, shards, t);
    }

    /// @inheritdoc IRoundBook
    function commit(bytes32 jobId, uint32 round, uint16 shard, bytes32 base, ClaimOpening calldata opening) external {
        _checkOpen(jobId, round);
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        Hold storage h = _holds[key][shard];
        if (h.operator != msg.sender) revert NotTheClaimant(msg.sender, h.operator);
        if (h.commitment != 0) revert AlreadyCommitted(shard); // INV-ROUND-2
        if (block.timestamp > h.deadline || h.settled != ClaimStatus.Free)
            revert ClaimOver(block.timestamp, h.deadline);
        if (base != r.base) revert WrongBase(base, r.base);
        if (opening.payloadDigest == 0 || opening.traceRoot == 0 || opening.stateDigest == 0) revert ZeroDigest();
        bytes32 commitment = TraceLib.commitmentOf(address(this), jobId, round, shard, msg.sender, base, opening);
        h.commitment = commitment;
        uint256 committed = r.committedMap | (uint256(1) << shard);
        r.committedMap = committed;
        address owner = registry.ownerOf(msg.sender);
        ++_tallies[key].shares[owner].commits;
        uint256 lapses = _lapses[owner];
        if (lapses != 0) _lapses[owner] = lapses << 1;
        emit Committed(
            jobId,
            round,
            msg.sender,
            shard,
            commitment,
            opening.payloadDigest,
            opening.traceRoot,
            opening.stateDigest
        );
        if (Sampling.count(committed) == _terms[jobId].shardsPerRound) _seal(jobId, round, r);
    }

    function _claim(bytes32 jobId, uint32 round, uint16 shard, address owner, RoundTerms memory t) private {
        if (shard >= t.shardsPerRound) revert NoSuchShard(shard, t.shardsPerRound);
        bytes32 key = potOf(jobId, round);
        Hold storage h = _holds[key][shard];
        if (h.operator != address(0)) {
            // INV-ROUND-1: the shard is free again only when its claim has run out without a commitment
            if (h.commitment != 0 || block.timestamp <= h.deadline) revert ShardTaken(shard, h.operator);
            if (registry.ownerOf(h.operator) == owner) revert ShardLapsedByOwner(shard, owner);
            if (h.settled == ClaimStatus.Free) _lapse(jobId, round, shard, h, t);
        }
        uint256 deadline = block.timestamp + t.train;
        uint256 endsAt = _rounds[key].endsAt;
        if (deadline > endsAt) deadline = endsAt;
        (h.operator, h.claimedAt, h.deadline, h.settled) = (
            msg.sender,
            uint40(block.timestamp),
            uint40(deadline),
            ClaimStatus.Free
        );
        emit Claimed(jobId, round, msg.sender, shard, owner, deadline);
        vault.lock(owner, _lockId(jobId, round, shard), t.bondPerShard);
    }

    function _claimOnProbation(bytes32 key, uint16[] calldata shards, RoundTerms memory t) private {
        uint256 bits;
        for (uint256 i; i < shards.length; ++i) bits |= uint256(1) << shards[i];
        _rounds[key].probationMap |= bits;
        uint16 count = _tallies[key].probationClaims += uint16(shards.length);
        if (count > t.probationSlots) revert ProbationSlotsFull(count, t.probationSlots);
    }

    /// Charges the fee, frees the lock and the slots. `h` is reused by the next claimant, or stays as a settled lapse.
    function _lapse(bytes32 jobId, uint32 round, uint16 shard, Hold storage h, RoundTerms memory t) internal {
        bytes32 key = potOf(jobId, round);
        address owner = registry.ownerOf(h.operator);
        Share storage s = _tallies[key].shares[owner];
        _freeProbation(key, shard);
        --s.held;
        h.settled = ClaimStatus.Lapsed;
        uint256 level = s.lapseLevel;
        if (level == 0) {
            // One outage, however many shards it hit: the round counts once.
            level = _lapseDoublings(owner) + 1;
            s.lapseLevel = uint8(level);
            _lapses[owner] = (_lapses[owner] << 1) | 1;
        }
        uint256 fee = _lapseFee(level - 1, t.rewardPerShard, t.bondPerShard);
        emit Lapsed(jobId, round, h.operator, shard, fee);
        bytes32 id = _lockId(jobId, round, shard);
        vault.slash(id, fee, fee, 0);
        vault.release(id);
    }

    function _freeProbation(bytes32 key, uint16 shard) private {
        uint256 bit = uint256(1) << shard;
        Round storage r = _rounds[key];
        if (r.probationMap & bit == 0) return;
        r.probationMap &= ~bit;
        --_tallies[key].probationClaims;
    }

    function _seal(bytes32 jobId, uint32 round, Round storage r) internal {
        r.sealedAt = uint40(block.timestamp);
        r.committed = uint16(Sampling.count(r.committedMap));
        emit RoundSealed(jobId, round, r.committedMap);
    }

    /// An owner's live claims in a round: a quarter of the shards until half of the round has passed, then all.
    function _capOf(Round storage r, RoundTerms memory t) private view returns (uint256) {
        if (block.timestamp > (uint256(r.openedAt) + r.endsAt) / 2) return t.shardsPerRound;
        return (uint256(t.shardsPerRound) + 3) / 4;
    }
}
