// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IRoundBook} from "./interfaces/IRoundBook.sol";
import {Sampling} from "./libraries/Sampling.sol";
import {RoundState} from "./rounds/RoundState.sol";
import {Votes} from "./rounds/Votes.sol";
import {
    Addresses,
    CaseKind,
    ClaimStatus,
    Draw,
    JobStatus,
    Outcome,
    PauseReason,
    Progress,
    Round,
    RoundStatus,
    RoundTerms,
    Terms
} from "./types/Types.sol";

/// @title RoundBook
/// @notice The life of a round. Holds no tokens: bonds lie in the StakeVault, pay in the RewardLedger.
/// Assumes: the courts decide sampled, challenged and demanded claims, and doubted checkpoints.
/// Assumes for liveness: somebody calls `open`, `advance`, `draw` and `settle`; anyone may.
///
/// INV-ROUND-4: a shard is settled once, and its reward is paid at most once.
/// INV-ROUND-5: a settled round's pot is empty.
/// INV-ROUND-7: nothing is paid while a case about it, or about a checkpoint it rests on or ended in, is open.
contract RoundBook is Votes, ReentrancyGuardTransient {
    uint32 private constant FINAL_PER_CALL = 64; // rounds looked at in one call

    constructor(Addresses memory a) RoundState(a) {}

    /// @inheritdoc IRoundBook
    function open(bytes32 jobId) external returns (uint32 round) {
        _checkReady(jobId);
        Progress storage p = _progress[jobId];
        if (p.opened == 0) _copyTerms(jobId);
        round = p.opened++;
        ++p.unsettled;
        p.active = true;
        bytes32 pot = potOf(jobId, round);
        Round storage r = _rounds[pot];
        r.base = _checkpoints[jobId][p.closed];
        r.openedAt = uint40(block.timestamp);
        r.endsAt = uint40(block.timestamp + _terms[jobId].round);
        if (p.generation != 0) r.generation = p.generation;
        emit RoundOpened(jobId, round, r.base, r.endsAt);
        ledger.move(jobId, pot, market.reservationOf(jobId));
    }

    /// @inheritdoc IRoundBook
    function draw(bytes32 jobId, uint32 round) external {
        bytes32 key = potOf(jobId, round);
        Draw storage d = _draws[key];
        RoundStatus status = _statusOf(jobId, round);
        if (status != RoundStatus.Closed) revert WrongRoundStatus(status, RoundStatus.Closed);
        if (d.drawn) revert AlreadyDrawn(jobId, round);
        if (beacon.expired(d.beaconTicket)) {
            d.beaconTicket = beacon.repin(d.beaconTicket);
            emit DrawPinned(jobId, round, d.beaconTicket);
            return;
        }
        d.seed = beacon.seedOf(d.beaconTicket);
        (uint256 probation, uint256 others, uint256 wanted) = _undrawn(jobId, round, d);
        uint256 chosen = probation | Sampling.choose(others, wanted, d.seed);
        uint256 room = _freeSlots(jobId, d);
        if (Sampling.count(chosen) > room) chosen = Sampling.choose(chosen, room, d.seed); // no more than was reserved
        d.drawn = true;
        d.sampledMap |= chosen;
        _tallies[key].drawnMap = _rounds[key].acceptedMap;
        emit Drawn(jobId, round, d.seed, d.sampledMap);
    }

    /// @inheritdoc IRoundBook
    function settle(bytes32 jobId, uint32 round, uint16[] calldata shards) external nonReentrant {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        if (r.closedAt == 0) revert WrongRoundStatus(_statusOf(jobId, round), RoundStatus.Closed);
        bool more = _finalize(jobId, round);
        RoundTerms memory t = _terms[jobId];
        uint16 before = r.resolved;
        uint16 resolved = before;
        for (uint256 i; i < shards.length; ++i) {
            if (shards[i] >= t.shardsPerRound) revert NoSuchShard(shards[i], t.shardsPerRound);
            if (_settle(jobId, round, shards[i], t)) ++resolved;
        }
        if (resolved == before) {
            if (more) return; // the next call goes on from here
            revert NothingToSettle();
        }
        r.resolved = resolved;
        if (resolved < t.shardsPerRound) return;
        --_progress[jobId].unsettled;
        uint256 rest = ledger.potOf(key);
        emit RoundSettled(jobId, round, rest);
        if (rest > 0) ledger.move(key, jobId, rest); // INV-ROUND-5
    }

    /// @inheritdoc IRoundBook
    function slashBond(bytes32 jobId, uint32 round, uint16 shard, bytes32 pot) external returns (uint256 amount) {
        if (msg.sender != address(court)) revert NotACourt(msg.sender);
        bytes32 id = _lockId(jobId, round, shard);
        (, amount) = vault.lockOf(address(this), id);
        vault.slash(id, amount, 0, pot);
    }

    /// @inheritdoc IRoundBook
    function takeReserve(bytes32 jobId, uint32 round, uint16 wanted) external returns (uint16 granted) {
        if (msg.sender != address(court) && msg.sender != address(checkpoints)) revert NotACourt(msg.sender);
        RoundStatus status = _statusOf(jobId, round);
        if (status == RoundStatus.Settled) return 0;
        Draw storage d = _draws[potOf(jobId, round)];
        uint256 free = _freeSlots(jobId, d);
        if (status == RoundStatus.Closed && !d.drawn) {
            (uint256 probation, , uint256 sampled) = _undrawn(jobId, round, d);
            sampled += Sampling.count(probation);
            free = free > sampled ? free - sampled : 0; // the sample comes first
        }
        granted = wanted < free ? wanted : uint16(free);
        d.taken += granted;
    }

    // ---------------------------------------------------------------- inside

    function _checkReady(bytes32 jobId) private view {
        (JobStatus status, PauseReason reason) = market.statusOf(jobId);
        if (status == JobStatus.Ready) return;
        if (reason == PauseReason.Escrow) revert EscrowTooSmall(ledger.potOf(jobId), market.reservationOf(jobId));
        if (reason == PauseReason.Auditors) {
            revert TooFewAuditors(tickets.liveOwners(), uint256(market.preset().slashPanel) + 1);
        }
        revert JobNotReady(jobId, uint8(status), uint8(reason));
    }

    function _copyTerms(bytes32 jobId) private {
        Terms memory t = market.termsOf(jobId);
        _checkpoints[jobId][0] = t.genesisDigest;
        _terms[jobId] = RoundTerms({
            rewardPerShard: t.rewardPerShard,
            bondPerShard: t.bondPerShard,
            train: t.windows.train,
            round: t.windows.round,
            attest: t.windows.attest,
            challenge: t.windows.challenge,
            auditRateBps: t.auditRateBps,
            probationSlots: t.probationSlots,
            shardsPerRound: t.shardsPerRound,
            minShards: t.minShards
        });
    }

    /// Slots of the round's reserve that neither its sample nor another case has.
    function _freeSlots(bytes32 jobId, Draw storage d) private view returns (uint256) {
        RoundTerms storage t = _terms[jobId];
        uint256 slots = Sampling.shareOf(t.shardsPerRound, t.auditRateBps) + t.probationSlots;
        if (slots > t.shardsPerRound) slots = t.shardsPerRound;
        uint256 used = Sampling.count(d.sampledMap) + d.taken;
        return slots > used ? slots - used : 0;
    }

    /// Accepted claims that no sample was drawn from yet, on probation and others, and how many of the others it takes.
    /// After a replacement: what came back, unless it had its case on demand.
    function _undrawn(
        bytes32 jobId,
        uint32 round,
        Draw storage d
    ) private view returns (uint256 probation, uint256 others, uint256 wanted) {
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        uint256 fresh = r.acceptedMap & ~_tallies[key].drawnMap;
        bool replaced = r.closedAt != d.closedAt || fresh != r.acceptedMap;
        for (uint16 i; replaced && i < 256; ++i) {
            if ((fresh >> i) & 1 == 0) continue;
            (bool exists, , , ) = court.outcomeOf(jobId, round, i);
            if (exists) fresh ^= uint256(1) << i;
        }
        probation = fresh & r.probationMap;
        others = fresh ^ probation;
        wanted = Sampling.shareOf(Sampling.count(others), _terms[jobId].auditRateBps);
    }

    /// Count the rounds up to this one whose checkpoint nobody can challenge any more, as far as one call goes;
    /// whether another call may have more to count.
    function _finalize(bytes32 jobId, uint32 round) private returns (bool more) {
        Progress storage p = _progress[jobId];
        uint32 first = p.finalRounds;
        uint32 next = first;
        uint256 window = _terms[jobId].challenge;
        while (next <= round && next < first + FINAL_PER_CALL) {
            Round storage r = _rounds[potOf(jobId, next)];
            if (!r.voided && !_isOrphaned(jobId, next)) {
                bool challengeable = block.timestamp <= uint256(r.closedAt) + window;
                if (r.closedAt == 0 || challengeable || checkpoints.isOpen(jobId, next)) break;
            }
            ++next;
        }
        if (next != first) p.finalRounds = next;
        return next == first + FINAL_PER_CALL;
    }

    /// Settles one shard, if its fate is decided and it was not settled before (INV-ROUND-4).
    function _settle(bytes32 jobId, uint32 round, uint16 shard, RoundTerms memory t) private returns (bool) {
        bytes32 key = potOf(jobId, round);
        Hold storage h = _holds[key][shard];
        if (h.settled == ClaimStatus.Paid || h.settled == ClaimStatus.Unpaid) return false;
        if (h.operator == address(0)) {
            h.settled = ClaimStatus.Unpaid; // nobody ever claimed it: marked, so that it counts once
            return true;
        }
        bytes32 id = _lockId(jobId, round, shard);
        if (h.commitment == 0) {
            if (h.settled == ClaimStatus.Free) {
                if (_isOrphaned(jobId, round)) vault.release(id);
                else _lapse(jobId, round, shard, h, t);
            }
            h.settled = ClaimStatus.Unpaid;
            return true;
        }
        (bool decided, uint256 reward) = _fateOf(jobId, round, shard, t);
        if (!decided) return false;
        h.settled = reward > 0 ? ClaimStatus.Paid : ClaimStatus.Unpaid;
        emit ClaimSettled(jobId, round, h.operator, shard, h.settled, reward);
        if (reward == 0 && _isConvicted(key, h.operator)) _slashAttester(jobId, round, id);
        vault.release(id);
        if (reward > 0) ledger.credit(key, registry.payoutOf(h.operator), reward);
        return true;
    }

    /// Whether a commitment's fate is decided, and what it is paid. INV-ROUND-7.
    function _fateOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        RoundTerms memory t
    ) private view returns (bool decided, uint256 reward) {
        (bool exists, bool done, Outcome outcome, CaseKind kind) = court.outcomeOf(jobId, round, shard);
        if (exists && !done) return (false, 0);
        if (_isOrphaned(jobId, round)) return (!checkpoints.isOpen(jobId, round), 0);
        bytes32 key = potOf(jobId, round);
        Round storage r = _rounds[key];
        bool over = block.timestamp > uint256(r.closedAt) + t.challenge;
        if (!over || _progress[jobId].finalRounds <= round) return (false, 0);
        if (_isConvicted(key, _holds[key][shard].operator)) return (true, 0);
        bool accepted = !r.voided && (r.acceptedMap >> shard) & 1 == 1;
        if (exists && outcome != Outcome.Unsampled) {
            if (outcome != Outcome.Match && outcome != Outcome.Excused) return (true, 0);
            return (true, kind == CaseKind.Demanded ? t.rewardPerShard / 2 : t.rewardPerShard);
        }
        if (!accepted) return (true, 0);
        Draw storage d = _draws[key];
        bool waits = !d.drawn || ((d.sampledMap >> shard) & 1 == 1 && !exists);
        return waits ? (false, 0) : (true, uint256(t.rewardPerShard));
    }

    /// Whether its owner attested to a digest that a court found false.
    function _isConvicted(bytes32 key, address operator) private view returns (bool) {
        uint160 convicted = _tallies[key].convicted;
        return convicted != 0 && _tallies[key].shares[registry.ownerOf(operator)].vote == convicted;
    }

    /// Half is burnt, the rest waits in the case's pot for those who proved it.
    function _slashAttester(bytes32 jobId, uint32 round, bytes32 id) private {
        (, uint256 amount) = vault.lockOf(address(this), id);
        if (amount > 0) vault.slash(id, amount, amount - amount / 2, checkpoints.caseIdOf(jobId, round));
    }
}
