// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IAuditCourt} from "./interfaces/IAuditCourt.sol";
import {Findings} from "./court/Findings.sol";
import {Panels} from "./court/Panels.sol";
import {
    Addresses,
    Bond,
    Case,
    CaseKind,
    CasePhase,
    Claim,
    ClaimStatus,
    COURT_FUND,
    CourtTerms,
    Draw,
    Finding,
    Outcome,
    Preset,
    SCOPE_CHALLENGE,
    SCOPE_TRAIN,
    SEATS_RESERVED,
    Seat,
    SeatState
} from "./types/Types.sol";

/// @title AuditCourt
/// @notice Whether a claim was honest work: the ladder 1, 3, slashPanel, appealPanel, and who pays for it.
/// Assumes: at most a fifth of the ticket stake colludes.
/// Assumes for liveness: somebody calls `convene` and `advance`; anyone may.
///
/// INV-COURT-2: Fraud needs a full panel and slashNeeded Fraud findings of distinct owners, or their share of a larger one.
/// INV-COURT-3: when a case is done its pot is empty.
/// INV-COURT-4: nothing of a slash goes to the poster.
contract AuditCourt is Findings {
    struct Votes {
        uint256 matches;
        uint256 rejects; // an unavailable payload is unpaid as well
        uint256 frauds;
        uint256 inputs; // inputs unavailable
        uint256 vacant;
    }

    uint8 private constant DEMAND_FEES = 3;
    uint256 private constant PROVER_BPS = 3_000;
    uint256 private constant PROVER_FEES = 10; // at most so many fees a prover
    uint256 private constant FUND_BPS = 2_000;
    uint256 private constant BPS = 10_000;
    uint256 private constant REJECTS_TO_BAR = 2;

    uint16 private immutable _probationAudits;
    bool private immutable _calibrated;

    /// @inheritdoc IAuditCourt
    mapping(address owner => uint256) public passedOf;
    mapping(bytes32 jobId => mapping(address owner => uint256)) private _rejects;

    constructor(Addresses memory a, Preset memory p) Panels(a, p) {
        _probationAudits = p.probationAudits;
        _calibrated = p.calibrated;
    }

    // ---------------------------------------------------------------- how a case begins

    /// @inheritdoc IAuditCourt
    function convene(bytes32 jobId, uint32 round, uint16[] calldata shards) external {
        Draw memory d = rounds.drawOf(jobId, round);
        for (uint256 i; i < shards.length; ++i) {
            uint16 shard = shards[i];
            if (shard > 255 || (d.sampledMap >> shard) & 1 == 0) revert NotSampled(jobId, round, shard);
            (Claim memory claim, ClaimStatus status) = rounds.claimOf(jobId, round, shard);
            if (status != ClaimStatus.Accepted) revert NotSampled(jobId, round, shard); // its checkpoint was replaced
            (bytes32 caseId, Case storage c) = _openCase(CaseKind.Sampled, jobId, round, shard, claim.owner);
            (c.tickets, c.closedAt) = (d.tickets, d.closedAt);
            c.seed = d.seed; // pinned at the close: nobody knew the first seat before
            _startLevel(caseId, 1);
            _fill(caseId);
        }
    }

    /// @inheritdoc IAuditCourt
    function challenge(
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        bytes32 commitment
    ) external returns (bytes32 caseId) {
        Draw memory d = rounds.drawOf(jobId, round);
        (Claim memory claim, ClaimStatus status) = rounds.claimOf(jobId, round, shard);
        bool sampled = (d.sampledMap >> shard) & 1 == 1;
        bool open = status == ClaimStatus.Accepted && rounds.isChallengeable(jobId, round);
        if (!open || !d.drawn || sampled) revert NotChallengeable(jobId, round, shard);
        if (commitment != claim.commitment) revert OtherCommitment(commitment, claim.commitment);
        address owner = registry.ownerFor(msg.sender, SCOPE_CHALLENGE);
        if (owner == claim.owner) revert OwnClaim(owner);
        Case storage c;
        (caseId, c) = _openCase(CaseKind.Challenged, jobId, round, shard, claim.owner);
        (c.tickets, c.closedAt) = (d.tickets, d.closedAt);
        _postBond(caseId, owner, CHALLENGE_FEES, Outcome.None);
        _pin(c); // whoever challenges must not know the panel
        _startLevel(caseId, PANEL_LEVEL);
    }

    /// @inheritdoc IAuditCourt
    function demandAudit(bytes32 jobId, uint32 round, uint16 shard) external returns (bytes32 caseId) {
        (Claim memory claim, ClaimStatus status) = rounds.claimOf(jobId, round, shard);
        if (claim.operator != msg.sender) revert NotTheClaimant(msg.sender, claim.operator);
        registry.ownerFor(msg.sender, SCOPE_TRAIN); // a revoked key spends no stake
        if (status != ClaimStatus.Excluded || !rounds.isChallengeable(jobId, round)) {
            revert NotDemandable(jobId, round, shard);
        }
        Case storage c;
        (caseId, c) = _openCase(CaseKind.Demanded, jobId, round, shard, claim.owner);
        (c.tickets, c.closedAt) = (tickets.ticketCount(), uint40(block.timestamp));
        _postBond(caseId, claim.owner, DEMAND_FEES, Outcome.None);
        _pin(c);
        _startLevel(caseId, 1);
    }

    function _openCase(
        CaseKind kind,
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        address accused
    ) private returns (bytes32 caseId, Case storage c) {
        caseId = caseIdOf(jobId, round, shard);
        c = _open(caseId, kind, jobId, round, shard);
        c.accused = accused;
    }

    // ---------------------------------------------------------------- standing

    /// @inheritdoc IAuditCourt
    function standingOf(bytes32 jobId, address owner) external view returns (bool onProbation, bool barred) {
        return (passedOf[owner] < _probationAudits, _rejects[jobId][owner] >= REJECTS_TO_BAR);
    }

    /// @inheritdoc IAuditCourt
    function outcomeOf(
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) external view returns (bool exists, bool done, Outcome outcome, CaseKind kind) {
        Case storage c = _cases[caseIdOf(jobId, round, shard)];
        return (c.phase != CasePhase.None, c.phase == CasePhase.Done, c.outcome, c.kind);
    }

    /// @inheritdoc IAuditCourt
    function caseIdOf(bytes32 jobId, uint32 round, uint16 shard) public pure returns (bytes32) {
        return keccak256(abi.encode("case", jobId, round, shard));
    }

    // ---------------------------------------------------------------- the ladder

    function _outcomeOf(bytes32 caseId, Case storage c) internal view override returns (Outcome) {
        Votes memory v = _count(_seats[caseId]);
        if (c.level == 1) {
            if (v.vacant == 1) return Outcome.Unsampled;
            return v.matches == 1 ? Outcome.Match : Outcome.None;
        }
        if (c.level == 2) {
            if (v.matches >= 2) return Outcome.Match;
            if (v.frauds > 0) return Outcome.None;
            if (v.rejects >= 2) return Outcome.Reject;
            return v.inputs >= 2 ? Outcome.Excused : Outcome.None;
        }
        uint256 panel = _seats[caseId].length;
        uint256 spoke = panel - v.vacant;
        uint256 need = _shareOf(c.level, spoke);
        bool convicting = v.frauds >= need && v.frauds >= _slashNeeded;
        if (convicting && spoke >= _slashPanel) return Outcome.Fraud; // INV-COURT-2
        if (need < 2) need = 2; // one seat alone decides nothing
        if (v.frauds + v.rejects >= need) return Outcome.Reject;
        // An appeal from three seats that nobody comes to hear changes nothing.
        if (v.vacant > 0 && v.matches <= v.frauds + v.rejects && _appealedFromReject(caseId)) return Outcome.Reject;
        if (2 * v.inputs > panel) return Outcome.Excused;
        // Silence is no Match: nobody is blamed for having found something that too few others looked at.
        return v.matches == 0 && v.vacant > 0 ? Outcome.Unsampled : Outcome.Match;
    }

    function _appealedFromReject(bytes32 caseId) private view returns (bool) {
        uint256 count = _bonds[caseId].length;
        return count > 0 && _bonds[caseId][count - 1].against == Outcome.Reject;
    }

    function _count(Seat[] storage seats) private view returns (Votes memory v) {
        unchecked {
            for (uint256 i; i < seats.length; ++i) {
                Finding f = seats[i].finding;
                if (seats[i].state != SeatState.Revealed) ++v.vacant;
                else if (f == Finding.Match) ++v.matches;
                else if (f == Finding.Fraud) ++v.frauds;
                else if (f == Finding.UnavailableInputs) ++v.inputs;
                else ++v.rejects;
            }
        }
    }

    // ---------------------------------------------------------------- the verdict

    function _conclude(bytes32 caseId, Case storage c, Outcome outcome) internal override {
        CourtTerms memory t = _termsOf(c.jobId);
        _recordStanding(c, outcome);
        uint256 bond;
        // Without a calibration record a verdict is unpaid work at most.
        if (outcome == Outcome.Fraud && (!_calibrated || market.calibrationOf(c.jobId) != 0)) {
            bond = rounds.slashBond(c.jobId, c.round, c.shard, caseId);
        }
        uint256 winners = _judgeSeats(caseId, outcome);
        _endBonds(caseId, c, outcome, winners);
        _collectFees(caseId, c, outcome, winners * t.fee, t);
        _paySeats(caseId, outcome, winners, t.fee);
        if (outcome == Outcome.Fraud) _payProvers(caseId, c, winners, bond, t.fee);
        _emptyPot(caseId, outcome);
    }

    function _recordStanding(Case storage c, Outcome outcome) private {
        if (outcome == Outcome.Match && c.kind == CaseKind.Sampled) ++passedOf[c.accused];
        if (outcome != Outcome.Reject && outcome != Outcome.Fraud) return;
        passedOf[c.accused] = 0;
        _rejects[c.jobId][c.accused] += outcome == Outcome.Fraud ? REJECTS_TO_BAR : 1;
    }

    /// Between a finding and the verdict: Match 0, Reject 1, Fraud 2. What says nothing about the work is 1 from all
    /// but its own outcome.
    function _distanceOf(bytes32 caseId, uint16 seat, Outcome outcome) internal view override returns (uint256) {
        Finding f = _seats[caseId][seat].finding;
        if (f == Finding.UnavailableInputs) return outcome == Outcome.Excused ? 0 : 1;
        if (outcome == Outcome.Excused || outcome == Outcome.Unsampled) return 1;
        uint256 found = 1;
        if (f == Finding.Match) found = 0;
        else if (f == Finding.Fraud) found = 2;
        uint256 judged = 1;
        if (outcome == Outcome.Match) judged = 0;
        else if (outcome == Outcome.Fraud) judged = 2;
        return found > judged ? found - judged : judged - found;
    }

    /// Brings up to `need` wei into the case's pot: the reserve, the forfeited reward, what was slashed, the court fund.
    function _collectFees(bytes32 caseId, Case storage c, Outcome outcome, uint256 need, CourtTerms memory t) private {
        if (need == 0) return;
        bytes32 pot = rounds.potOf(c.jobId, c.round);
        uint256 rest = need;
        bool reserved = c.kind == CaseKind.Sampled;
        if (c.kind == CaseKind.Demanded) {
            rest -= Math.min(need, ledger.potOf(caseId)); // who asked in vain pays before the job does
            reserved = rest > 0 && rounds.takeReserve(c.jobId, c.round, 1) == 1;
        }
        if (reserved) rest -= _pull(pot, caseId, rest, SEATS_RESERVED * t.fee);
        rest -= _pull(pot, caseId, rest, _forfeited(c, outcome, t.reward));
        _pullFromFund(caseId, need);
    }

    /// What of a claim's reward its operator does not get.
    function _forfeited(Case storage c, Outcome outcome, uint256 reward) private view returns (uint256) {
        if (outcome == Outcome.Reject || outcome == Outcome.Fraud) return reward;
        bool paid = outcome == Outcome.Match || outcome == Outcome.Excused;
        return paid && c.kind == CaseKind.Demanded ? reward - reward / 2 : 0;
    }

    /// A share of the slashed bond for each who said Fraud, or made the panel sit that said it; a part to the court fund.
    function _payProvers(bytes32 caseId, Case storage c, uint256 winners, uint256 bond, uint256 fee) private {
        Bond[] storage bonds = _bonds[caseId];
        uint256 provers = winners;
        for (uint256 i; i < bonds.length; ++i) if (_isProver(c, bonds[i])) ++provers;
        uint256 rest = ledger.potOf(caseId);
        uint256 share = (bond * PROVER_BPS) / BPS / provers; // rounded down, in favour of what is burnt
        if (share > PROVER_FEES * fee) share = PROVER_FEES * fee;
        if (share > rest / provers) share = rest / provers;
        if (share > 0) {
            for (uint256 i; i < bonds.length; ++i) {
                if (_isProver(c, bonds[i])) ledger.credit(caseId, registry.payoutOf(bonds[i].operator), share);
            }
            Seat[] storage seats = _seats[caseId];
            for (uint256 i; i < seats.length; ++i) {
                if (seats[i].state != SeatState.Revealed || seats[i].finding != Finding.Fraud) continue;
                ledger.credit(caseId, registry.payoutOf(seats[i].operator), share);
            }
        }
        _pull(caseId, COURT_FUND, (bond * FUND_BPS) / BPS, rest - share * provers);
    }

    function _isProver(Case storage c, Bond storage b) private view returns (bool) {
        return b.owner != c.accused && b.against != Outcome.Fraud;
    }

    /// INV-COURT-3: what is left is burnt after Fraud and the court fund's otherwise. Nothing of it goes to the accused: it
    /// could have challenged itself, for the fines of seats that slept.
    function _emptyPot(bytes32 caseId, Outcome outcome) private {
        uint256 rest = ledger.potOf(caseId);
        if (rest == 0) return;
        if (outcome == Outcome.Fraud)
            ledger.burn(caseId, rest); // INV-COURT-4
        else ledger.move(caseId, COURT_FUND, rest);
    }

    function _openedInVain(CaseKind kind, Outcome outcome) internal pure override returns (bool) {
        if (kind == CaseKind.Challenged) return outcome == Outcome.Match;
        return outcome == Outcome.Reject || outcome == Outcome.Fraud; // demanded by the operator
    }

    function _isAccused(Case storage c, address owner) internal view override returns (bool) {
        return c.accused == owner;
    }
}
