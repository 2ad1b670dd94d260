// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {Sampling} from "../libraries/Sampling.sol";
import {Claims} from "./Claims.sol";
import {Draw, Progress, Round, RoundStatus, RoundTerms, SCOPE_TRAIN, Share} from "../types/Types.sol";

/// Agreeing on the next checkpoint, and what happens when a court finds another.
///
/// INV-ROUND-3: an owner attests once in each window, with the weight of its commitments.
/// INV-ROUND-6: a checkpoint is replaced by the checkpoint court only, and everything built on it is orphaned.
abstract contract Votes is Claims {
    /// @inheritdoc IRoundBook
    function attest(bytes32 jobId, uint32 round, bytes32 base, uint256 bitmap, bytes32 next) external {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        RoundStatus status = _statusOf(jobId, round);
        if (status != RoundStatus.Sealed && status != RoundStatus.Tallied) {
            revert WrongRoundStatus(status, RoundStatus.Sealed);
        }
        if (base != r.base) revert WrongBase(base, r.base);
        if (next == 0) revert ZeroDigest();
        Tally storage y = _tallies[key];
        address owner = registry.ownerFor(msg.sender, SCOPE_TRAIN);
        Share memory s = y.shares[owner];
        if (s.commits == 0) revert NothingCommitted(msg.sender);
        uint8 window = status == RoundStatus.Sealed ? 1 : 2;
        if (s.windows & window != 0) revert AlreadyAttested(msg.sender); // INV-ROUND-3
        s.windows |= window;
        s.vote = _voteOf(bitmap, next);
        y.shares[owner] = s;
        emit Attested(jobId, round, msg.sender, bitmap, next, s.commits);
        if (window == 1) {
            if (bitmap & ~r.committedMap != 0) revert BitmapOutOfRange(bitmap, r.committedMap);
            if (y.bitmapWeights[bitmap] == 0) y.bitmaps.push(bitmap);
            y.bitmapWeights[bitmap] += s.commits;
            uint256 sum = y.weights[keccak256(abi.encode(bitmap, next))] += s.commits;
            if (3 * sum > 2 * uint256(r.committed)) _close(jobId, round, r, bitmap, next);
        } else {
            if (bitmap != r.acceptedMap) revert WrongBitmap(bitmap, r.acceptedMap);
            y.voted += s.commits;
            uint256 sum = y.weights[_digestKey(next)] += s.commits;
            if (sum > y.weights[_digestKey(y.leader)]) y.leader = next;
            if (2 * sum > r.committed) _close(jobId, round, r, bitmap, next);
        }
    }

    /// @inheritdoc IRoundBook
    function advance(bytes32 jobId, uint32 round) external {
        RoundStatus status = _statusOf(jobId, round);
        if (status != RoundStatus.Due) revert NothingDue(status);
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        Tally storage y = _tallies[key];
        if (r.sealedAt == 0) {
            RoundTerms memory t = _terms[jobId];
            if (Sampling.count(r.committedMap) >= t.minShards) return _seal(jobId, round, r);
            if (r.extended) return _void(jobId, round, r);
            r.extended = true;
            r.endsAt = uint40(block.timestamp + t.round);
            emit RoundExtended(jobId, round, r.endsAt);
        } else if (r.talliedAt == 0) {
            if (y.bitmaps.length == 0) return _void(jobId, round, r);
            r.acceptedMap = _majority(y);
            r.talliedAt = uint40(block.timestamp);
            emit Tallied(jobId, round, r.acceptedMap);
        } else if (2 * y.weights[_digestKey(y.leader)] > y.voted) {
            _close(jobId, round, r, r.acceptedMap, y.leader);
        } else {
            _void(jobId, round, r);
        }
    }

    /// @inheritdoc IRoundBook
    function replaceCheckpoint(bytes32 jobId, uint32 round, uint256 bitmap, bytes32 digest, bool convict) external {
        if (msg.sender != address(checkpoints)) revert NotACourt(msg.sender); // INV-ROUND-6
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        if (convict) _tallies[key].convicted = _voteOf(r.acceptedMap, r.next); // a lie about an orphaned step is one too
        if (_statusOf(jobId, round) != RoundStatus.Closed) return; // orphaned since, by an earlier checkpoint's case
        // what comes back into the bitmap is sampled like everything else, by a seed that nobody knows
        if (_draws[key].drawn && bitmap & ~r.acceptedMap != 0) _pinDraw(jobId, round, _draws[key]);
        (r.acceptedMap, r.next, r.closedAt) = (bitmap, digest, uint40(block.timestamp));
        _checkpoints[jobId][r.checkpoint] = digest;
        emit CheckpointReplaced(jobId, round, bitmap, digest, convict);
        Progress storage p = _progress[jobId];
        p.movedAt = uint40(block.timestamp);
        if (round + 1 == p.opened) return;
        _replaced[jobId][p.generation++] = round;
        p.closed = r.checkpoint;
        p.voidStreak = 0;
        if (!p.active) return;
        p.active = false;
        Round storage last = _rounds[potOf(jobId, p.opened - 1)];
        (last.voided, last.closedAt) = (true, uint40(block.timestamp));
        emit RoundVoided(jobId, p.opened - 1);
    }

    function _close(bytes32 jobId, uint32 round, Round storage r, uint256 bitmap, bytes32 next) private {
        Progress storage p = _progress[jobId];
        p.voidStreak = 0;
        p.movedAt = uint40(block.timestamp);
        p.active = false;
        uint32 number = ++p.closed;
        (r.acceptedMap, r.next, r.closedAt, r.checkpoint) = (bitmap, next, uint40(block.timestamp), number);
        _checkpoints[jobId][number] = next;
        emit RoundClosed(jobId, round, bitmap, next);
        Draw storage d = _draws[potOf(jobId, round)];
        d.closedAt = uint40(block.timestamp);
        d.tickets = tickets.ticketCount();
        _pinDraw(jobId, round, d);
    }

    function _pinDraw(bytes32 jobId, uint32 round, Draw storage d) private {
        d.drawn = false;
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

    function _majority(Tally storage y) private view returns (uint256) {
        uint256[] memory maps = y.bitmaps;
        uint256[] memory weights = new uint256[](maps.length);
        for (uint256 i; i < maps.length; ++i) weights[i] = y.bitmapWeights[maps[i]];
        return Sampling.majority(maps, weights);
    }

    /// Hashed alone, so that no digest of the second window can name a pair of the first.
    function _digestKey(bytes32 next) private pure returns (bytes32) {
        return keccak256(abi.encode(next));
    }
}
