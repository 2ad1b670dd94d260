// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IAuditCourt} from "./interfaces/IAuditCourt.sol";
import {Panels} from "./court/Panels.sol";
import {
    Addresses,
    Case,
    CasePhase,
    Claim,
    ClaimStatus,
    Draw,
    Finding,
    Outcome,
    Preset,
    Seat,
    SeatState,
    Terms
} from "./types/Types.sol";

/// @title AuditCourt
/// @notice From findings to verdicts: the ladder 1, 3, slashPanel, and who pays for it.
/// Assumes: at most a fifth of the ticket stake colludes.
/// Assumes for liveness: somebody calls `draw`, `convene` and `advance`; anyone may.
///
/// INV-COURT-1: a case has one verdict, and its seats are paid once.
/// INV-COURT-2: Fraud needs slashNeeded Fraud findings of distinct owners and a full panel.
/// INV-COURT-3: when a case is done its pot is empty.
/// INV-COURT-4: nothing of a slash goes to the poster.
contract AuditCourt is Panels {
    struct Votes {
        uint256 matches;
        uint256 rejects; // an unavailable payload is unpaid as well
        uint256 frauds;
        uint256 inputs; // inputs unavailable
        uint256 vacant;
    }

    bytes32 public constant COURT_FUND = keccak256("court fund");
    uint256 private constant CHALLENGE_FEES = 7;
    uint256 private constant SEATS_RESERVED = 3;
    uint256 private constant PROVER_BPS = 3_000;
    uint256 private constant PROVER_FEES = 10; // at most so many fees a prover
    uint256 private constant FUND_BPS = 2_000;
    uint256 private constant BPS = 10_000;
    uint256 private constant WRONG_SEAT_DIVISOR = 4; // a finding at distance 2 loses a quarter of the seat's lock
    uint256 private constant REJECTS_TO_BAR = 2;

    uint16 private immutable _slashNeeded;
    uint16 private immutable _probationAudits;

    /// @inheritdoc IAuditCourt
    mapping(address owner => uint256) public passedOf;
    mapping(bytes32 jobId => mapping(address owner => uint256)) private _rejects;

    constructor(Addresses memory a, Preset memory p) Panels(a, p) {
        _slashNeeded = p.slashNeeded;
        _probationAudits = p.probationAudits;
    }

    /// @inheritdoc IAuditCourt
    function challenge(bytes32 jobId, uint32 round, uint16 shard) external returns (bytes32 caseId) {
        Draw memory d = rounds.drawOf(jobId, round);
        (Claim memory claim, ClaimStatus status) = rounds.claimOf(jobId, round, shard);
        Terms memory t = _terms(jobId);
        bool open = d.drawn && block.timestamp <= uint256(d.closedAt) + t.windows.challenge;
        bool sampled = (d.sampledMap >> shard) & 1 == 1;
        if (!open || sampled || status != ClaimStatus.Accepted) revert NotChallengeable(jobId, round, shard);
        address owner = registry.activeOwnerOf(msg.sender);
        if (owner == claim.owner) revert OwnClaim(owner);
        caseId = _openCase(jobId, round, shard, d, msg.sender);
        vault.lock(owner, _challengeLock(caseId), CHALLENGE_FEES * t.auditFee);
        // A fresh pin: whoever challenges must not know the panel.
        _pin(_cases[caseId]);
        _startLevel(caseId, LEVELS);
    }

    /// @inheritdoc IAuditCourt
    function isOnProbation(address owner) external view returns (bool) {
        return passedOf[owner] < _probationAudits;
    }

    /// @inheritdoc IAuditCourt
    function isBarred(bytes32 jobId, address owner) external view returns (bool) {
        return _rejects[jobId][owner] >= REJECTS_TO_BAR;
    }

    /// @inheritdoc IAuditCourt
    function caseOf(bytes32 caseId) external view returns (Case memory, Seat[] memory) {
        return (_cases[caseId], _seats[caseId]);
    }

    /// @inheritdoc IAuditCourt
    function outcomeOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) external view returns (bool exists, bool done, Outcome outcome) {
        Case storage c = _cases[caseIdOf(jobId, round, shard)];
        return (c.phase != CasePhase.None, c.phase == CasePhase.Done, c.outcome);
    }

    // ---------------------------------------------------------------- the ladder

    function _decide(bytes32 caseId) internal override {
        Case storage c = _cases[caseId];
        Votes memory v = _count(_seats[caseId]);
        Outcome outcome = _outcomeAt(c.level, v);
        if (outcome != Outcome.None) return _conclude(caseId, c, outcome);
        _pin(c); // the next seats must not be known while this level judges
        _startLevel(caseId, c.level + 1);
    }

    function _count(Seat[] storage seats) private view returns (Votes memory v) {
        for (uint256 i; i < seats.length; ++i) {
            Finding f = seats[i].finding;
            if (seats[i].state != SeatState.Revealed) ++v.vacant;
            else if (f == Finding.Match) ++v.matches;
            else if (f == Finding.Fraud) ++v.frauds;
            else if (f == Finding.UnavailableInputs) ++v.inputs;
            else ++v.rejects;
        }
    }

    /// The verdict that a level reaches, or None: the next level decides.
    function _outcomeAt(uint8 level, Votes memory v) private view returns (Outcome) {
        if (level == 1) {
            if (v.vacant == 1) return Outcome.Unsampled;
            return v.matches == 1 ? Outcome.Match : Outcome.None;
        }
        if (level == 2) {
            if (v.matches >= 2) return Outcome.Match;
            if (v.frauds > 0) return Outcome.None;
            if (v.rejects >= 2) return Outcome.Reject;
            return v.inputs >= 2 ? Outcome.Excused : Outcome.None;
        }
        if (v.frauds >= _slashNeeded && v.vacant == 0) return Outcome.Fraud; // INV-COURT-2
        if (v.frauds + v.rejects >= _rejectsNeeded(v.vacant)) return Outcome.Reject;
        if (2 * v.inputs > _slashPanel) return Outcome.Excused;
        // Silence is no Match: nobody is blamed for having found something that too few others looked at.
        return v.matches == 0 && v.vacant > 0 ? Outcome.Unsampled : Outcome.Match;
    }

    /// slashNeeded of a full panel, and the same share of one with vacant seats: silence acquits nobody. One seat alone
    /// decides nothing.
    function _rejectsNeeded(uint256 vacant) private view returns (uint256 need) {
        uint256 panel = _slashPanel;
        need = (_slashNeeded * (panel - vacant) + panel - 1) / panel;
        if (need < 2) need = 2;
    }

    // ---------------------------------------------------------------- the verdict

    function _conclude(bytes32 caseId, Case storage c, Outcome outcome) private {
        c.phase = CasePhase.Done; // INV-COURT-1
        c.outcome = outcome;
        Claim memory claim = _claimOf(c);
        emit VerdictReached(caseId, c.jobId, claim.owner, outcome, c.level);
        _recordStanding(c, claim.owner, outcome);
        uint256 bond;
        if (outcome == Outcome.Fraud) bond = rounds.slashBond(c.jobId, c.round, c.shard, caseId);
        uint256 winners = _judgeSeats(caseId, outcome);
        if (c.challenger != address(0)) _closeChallenge(caseId, c, outcome == Outcome.Match && winners > 0);
        Terms memory t = _terms(c.jobId);
        _collectFees(caseId, c, outcome, winners * t.auditFee, t);
        _paySeats(caseId, outcome, winners, t.auditFee);
        _distribute(caseId, c, claim, outcome, winners, bond, t.auditFee);
    }

    function _recordStanding(Case storage c, address owner, Outcome outcome) private {
        if (outcome == Outcome.Match && c.sampled) ++passedOf[owner];
        if (outcome != Outcome.Reject && outcome != Outcome.Fraud) return;
        passedOf[owner] = 0;
        _rejects[c.jobId][owner] += outcome == Outcome.Fraud ? REJECTS_TO_BAR : 1;
    }

    /// A challenge fails when a seat says that the claim stands; where nobody judged it, the bond returns.
    function _closeChallenge(bytes32 caseId, Case storage c, bool failed) private {
        bytes32 id = _challengeLock(caseId);
        if (failed) {
            uint256 bond = CHALLENGE_FEES * _terms(c.jobId).auditFee;
            vault.slash(id, bond, 0, caseId);
        }
        vault.release(id);
    }

    /// Frees all seats, slashes those at distance 2 and counts those at distance 0.
    function _judgeSeats(bytes32 caseId, Outcome outcome) private returns (uint256 winners) {
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed) continue;
            uint256 distance = _distance(seats[i].finding, outcome);
            if (distance == 0) ++winners;
            if (distance == 2) _slashSeat(caseId, i, seats[i].locked / WRONG_SEAT_DIVISOR);
            _freeSeat(seats[i]);
        }
    }

    /// Between a finding and the verdict: Match 0, Reject 1, Fraud 2. What says nothing about the work is 1 from all
    /// but its own outcome.
    function _distance(Finding f, Outcome outcome) private pure returns (uint256) {
        if (f == Finding.UnavailableInputs) return outcome == Outcome.Excused ? 0 : 1;
        if (outcome == Outcome.Excused || outcome == Outcome.Unsampled) return 1;
        uint256 found =
            f == Finding.Match
                ? 0
                : f == Finding.Fraud
                    ? 2
                    : 1;
        uint256 judged =
            outcome == Outcome.Match
                ? 0
                : outcome == Outcome.Fraud
                    ? 2
                    : 1;
        return found > judged ? found - judged : judged - found;
    }

    /// Brings up to `need` wei into the case's pot: the reserve, the forfeited reward, what was slashed, the court fund.
    function _collectFees(bytes32 caseId, Case storage c, Outcome outcome, uint256 need, Terms memory t) private {
        uint256 slashed = ledger.potOf(caseId);
        bytes32 pot = rounds.potOf(c.jobId, c.round);
        if (c.sampled) need -= _pull(pot, caseId, need, SEATS_RESERVED * t.auditFee);
        bool forfeited = outcome == Outcome.Reject || outcome == Outcome.Fraud;
        if (forfeited) need -= _pull(pot, caseId, need, t.rewardPerShard);
        if (need > slashed) _pull(COURT_FUND, caseId, need - slashed, ledger.potOf(COURT_FUND));
    }

    function _pull(bytes32 from, bytes32 to, uint256 need, uint256 most) private returns (uint256 amount) {
        amount = need < most ? need : most;
        if (amount > 0) ledger.move(from, to, amount);
    }

    /// A fee for each seat at distance 0, or the pot in equal parts when it is not enough.
    function _paySeats(bytes32 caseId, Outcome outcome, uint256 winners, uint256 fee) private {
        if (winners == 0) return;
        uint256 part = ledger.potOf(caseId) / winners; // rounded down; the dust goes on to `_distribute`
        if (part > fee) part = fee;
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed || _distance(seats[i].finding, outcome) != 0) continue;
            emit SeatPaid(caseId, i, seats[i].operator, part);
            ledger.credit(caseId, registry.payoutOf(seats[i].operator), part);
        }
    }

    /// Empties the case's pot (INV-COURT-3): provers, court fund and burn after Fraud; the accused after a failed
    /// challenge; the court fund otherwise.
    function _distribute(
        bytes32 caseId,
        Case storage c,
        Claim memory claim,
        Outcome outcome,
        uint256 winners,
        uint256 bond,
        uint256 fee
    ) private {
        uint256 rest = ledger.potOf(caseId);
        if (outcome == Outcome.Fraud) {
            bool challenged = c.challenger != address(0);
            uint256 provers = winners + (challenged ? 1 : 0);
            uint256 share = (bond * PROVER_BPS) / BPS / provers;
            if (share > PROVER_FEES * fee) share = PROVER_FEES * fee;
            if (share * provers > rest) share = rest / provers;
            _payProvers(caseId, challenged ? c.challenger : address(0), share);
            rest -= share * provers;
            uint256 toFund = (bond * FUND_BPS) / BPS;
            if (toFund > rest) toFund = rest;
            if (toFund > 0) ledger.move(caseId, COURT_FUND, toFund);
            if (rest > toFund) ledger.burn(caseId, rest - toFund); // INV-COURT-4
            return;
        }
        if (rest == 0) return;
        if (c.challenger != address(0) && outcome == Outcome.Match) {
            ledger.credit(caseId, registry.payoutOf(claim.operator), rest);
        } else {
            ledger.move(caseId, COURT_FUND, rest);
        }
    }

    function _payProvers(bytes32 caseId, address challenger, uint256 share) private {
        if (share == 0) return;
        if (challenger != address(0)) ledger.credit(caseId, registry.payoutOf(challenger), share);
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed || seats[i].finding != Finding.Fraud) continue;
            ledger.credit(caseId, registry.payoutOf(seats[i].operator), share);
        }
    }

    function _challengeLock(bytes32 caseId) private pure returns (bytes32) {
        return keccak256(abi.encode("challenge", caseId));
    }
}
