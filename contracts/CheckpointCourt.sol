// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {ICheckpointCourt, StepFinding} from "./interfaces/ICheckpointCourt.sol";
import {Panels} from "./court/Panels.sol";
import {
    Addresses,
    Bond,
    Case,
    CaseKind,
    CasePhase,
    COURT_FUND,
    Draw,
    Finding,
    Outcome,
    Preset,
    Round,
    RoundStatus,
    SCOPE_CHALLENGE,
    SEATS_RESERVED,
    Seat,
    SeatState
} from "./types/Types.sol";

/// @title CheckpointCourt
/// @notice Whether an attested checkpoint is the exact outer step of its base: a panel recomputes it, and enough equal
/// results fix it. Outcomes: Match, it stands; Reject, another bitmap was right; Fraud, the attested digest is not what
/// the attested payloads give.
/// Assumes: the outer step gives the same bytes everywhere; at most a fifth of the ticket stake colludes.
/// Assumes for liveness: somebody calls `advance` and `distribute`; anyone may.
///
/// INV-STEP-1: a checkpoint is replaced only by what slashNeeded distinct owners found, each by itself.
/// INV-STEP-2: only who attested to the convicted choice is slashed, once for each of its claims in that round.
/// INV-STEP-3: when a case is done and its round is settled and distributed, its pot is empty.
contract CheckpointCourt is Panels, ICheckpointCourt {
    uint256 private constant PROVER_FEES = 10; // at most so many fees a prover

    /// What was proven about an attested digest, and by whom it was not.
    struct Conviction {
        bytes32 digest; // what the attested payloads give, as enough seats found
        uint256 bonds; // bit i: bond i is of an owner that attested to the false one
    }

    mapping(bytes32 caseId => mapping(uint16 seat => StepFinding)) private _found;
    mapping(bytes32 caseId => Conviction) private _convictions;
    mapping(bytes32 caseId => uint16 seat) private _right; // a seat that found what the panel agreed on

    constructor(Addresses memory a, Preset memory p) Panels(a, p) {}

    /// @inheritdoc ICheckpointCourt
    function challenge(
        bytes32 jobId,
        uint32 round,
        bytes32 base,
        uint256 bitmap,
        bytes32 digest
    ) external returns (bytes32 caseId) {
        (Round memory r, RoundStatus status) = rounds.roundOf(jobId, round);
        if (status != RoundStatus.Closed || !rounds.isChallengeable(jobId, round)) {
            revert NotChallengeable(jobId, round);
        }
        if (base != r.base || bitmap != r.acceptedMap || digest != r.next) {
            revert OtherCheckpoint(r.base, r.acceptedMap, r.next);
        }
        address owner = registry.ownerFor(msg.sender, SCOPE_CHALLENGE);
        if (rounds.attestedTo(jobId, round, owner)) revert OwnAttestation(owner);
        caseId = caseIdOf(jobId, round);
        Case storage c = _open(caseId, CaseKind.Checkpoint, jobId, round, 0);
        Draw memory d = rounds.drawOf(jobId, round);
        (c.tickets, c.closedAt) = (d.tickets, d.closedAt);
        _postBond(caseId, owner, CHALLENGE_FEES, Outcome.None);
        _pin(c); // whoever challenges must not know the panel
        _startLevel(caseId, PANEL_LEVEL);
    }

    /// @inheritdoc ICheckpointCourt
    function reveal(bytes32 caseId, uint16 seat, StepFinding calldata r) external {
        Case storage c = _cases[caseId];
        Seat storage s = _seatOf(caseId, c, seat, CasePhase.Revealing, SeatState.Committed);
        bytes32 root = rootOf(caseId, seat, msg.sender, r);
        if (root != s.root) revert WrongRoot(root, s.root);
        emit StepRevealed(caseId, seat, msg.sender, r.bitmap, r.digest, r.contested);
        if (r.abstain) return _revealed(caseId, c, s, Finding.Abstain);
        (Round memory round, ) = rounds.roundOf(c.jobId, c.round);
        bool same = r.bitmap == round.acceptedMap;
        if (r.digest == 0 || (same && r.contested != r.digest)) revert WrongDigest(r.digest, r.contested);
        if (r.bitmap & ~round.committedMap != 0) revert BitmapOutOfRange(r.bitmap, round.committedMap);
        _found[caseId][seat] = r;
        _revealed(caseId, c, s, _findingOf(r, round));
    }

    /// @inheritdoc ICheckpointCourt
    function distribute(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        if (c.phase != CasePhase.Done || c.outcome != Outcome.Fraud) revert NoSuchCase(caseId);
        (, RoundStatus status) = rounds.roundOf(c.jobId, c.round);
        uint256 pot = ledger.potOf(caseId);
        // what the round slashes comes in as it is settled
        if (status != RoundStatus.Settled || pot == 0) revert NotYetSlashed(caseId);
        uint256 share = _payProvers(caseId, pot, _termsOf(c.jobId).fee);
        uint256 rest = ledger.potOf(caseId);
        uint256 toFund = _pull(caseId, COURT_FUND, rest, (pot * 2) / 5); // of a bond: half is burnt, a fifth for the fund
        emit ProversPaid(caseId, share, rest - toFund);
        if (rest > toFund) ledger.burn(caseId, rest - toFund); // INV-STEP-3
    }

    /// @inheritdoc ICheckpointCourt
    function rootOf(
        bytes32 caseId,
        uint16 seat,
        address operator,
        StepFinding calldata r
    ) public pure returns (bytes32) {
        return keccak256(abi.encode("step", caseId, seat, operator, r));
    }

    /// @inheritdoc ICheckpointCourt
    function caseIdOf(bytes32 jobId, uint32 round) public pure returns (bytes32) {
        return keccak256(abi.encode("checkpoint", jobId, round));
    }

    /// @inheritdoc ICheckpointCourt
    function isOpen(bytes32 jobId, uint32 round) external view returns (bool) {
        CasePhase phase = _cases[caseIdOf(jobId, round)].phase;
        return phase != CasePhase.None && phase != CasePhase.Done;
    }

    // ---------------------------------------------------------------- the verdict

    function _findingOf(StepFinding calldata r, Round memory round) private pure returns (Finding) {
        if (r.contested != 0 && r.contested != round.next) return Finding.Fraud;
        bool same = r.bitmap == round.acceptedMap && r.digest == round.next;
        return same ? Finding.Match : Finding.Reject;
    }

    function _outcomeOf(bytes32 caseId, Case storage c) internal view override returns (Outcome) {
        (uint256 need, uint16 seat, uint256 equal) = _largestAgreement(caseId, c);
        if (equal < need) return Outcome.Unsampled; // too few agree on anything: it stands, and nobody was wrong
        (Round memory round, ) = rounds.roundOf(c.jobId, c.round);
        StepFinding storage f = _found[caseId][seat];
        if (f.bitmap == round.acceptedMap && f.digest == round.next) return Outcome.Match;
        (, uint256 convicting) = _convicting(caseId, round.next);
        return convicting >= need ? Outcome.Fraud : Outcome.Reject;
    }

    /// Seats that found the same pair as `seat`, the largest such group, and how many it takes.
    function _largestAgreement(
        bytes32 caseId,
        Case storage c
    ) private view returns (uint256 need, uint16 seat, uint256 equal) {
        Seat[] storage seats = _seats[caseId];
        need = _shareOf(c.level, _countOf(caseId, SeatState.Revealed));
        if (need < _slashNeeded) need = _slashNeeded; // INV-STEP-1
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed) continue;
            uint256 count;
            for (uint16 j; j < seats.length; ++j) if (_agree(caseId, i, j)) ++count;
            if (count > equal) (seat, equal) = (i, count);
        }
    }

    /// Seats that got the same other digest from the attested bitmap, the largest such group.
    function _convicting(bytes32 caseId, bytes32 attested) private view returns (bytes32 digest, uint256 most) {
        uint256 size = _seats[caseId].length;
        for (uint16 i; i < size; ++i) {
            bytes32 other = _found[caseId][i].contested;
            if (other == 0 || other == attested || other == digest) continue;
            uint256 count;
            for (uint16 j; j < size; ++j) if (_isProver(caseId, j, other)) ++count;
            if (count > most) (digest, most) = (other, count);
        }
    }

    /// Remember what convicts before the checkpoint is another one: who attested to it proves nothing.
    function _recordConviction(bytes32 caseId, Case storage c) private {
        (Round memory round, ) = rounds.roundOf(c.jobId, c.round);
        Conviction storage v = _convictions[caseId];
        (v.digest, ) = _convicting(caseId, round.next);
        Bond[] storage bonds = _bonds[caseId];
        for (uint256 i; i < bonds.length; ++i) if (_isAccused(c, bonds[i].owner)) v.bonds |= uint256(1) << i;
    }

    /// Equal results are right; another result for the same payloads is not, whoever computed it.
    function _distanceOf(bytes32 caseId, uint16 seat, Outcome outcome) internal view override returns (uint256) {
        if (outcome == Outcome.Unsampled) return 1;
        uint16 right = _right[caseId];
        if (_agree(caseId, right, seat)) return 0;
        return _found[caseId][right].bitmap == _found[caseId][seat].bitmap ? 2 : 1;
    }

    function _agree(bytes32 caseId, uint16 i, uint16 j) private view returns (bool) {
        if (_seats[caseId][j].state != SeatState.Revealed) return false;
        StepFinding storage a = _found[caseId][i];
        StepFinding storage b = _found[caseId][j];
        return a.bitmap == b.bitmap && a.digest == b.digest;
    }

    function _conclude(bytes32 caseId, Case storage c, Outcome outcome) internal override {
        uint256 fee = _termsOf(c.jobId).fee;
        (, uint16 seat, ) = _largestAgreement(caseId, c);
        _right[caseId] = seat;
        if (outcome == Outcome.Reject || outcome == Outcome.Fraud) {
            if (outcome == Outcome.Fraud) _recordConviction(caseId, c);
            StepFinding storage f = _found[caseId][seat];
            rounds.replaceCheckpoint(c.jobId, c.round, f.bitmap, f.digest, outcome == Outcome.Fraud);
        }
        uint256 winners = _judgeSeats(caseId, outcome);
        _endBonds(caseId, c, outcome, winners);
        uint256 need = winners * fee;
        if (need > 0) {
            // who doubted in vain pays before the job does
            uint256 rest = need - Math.min(need, ledger.potOf(caseId));
            uint256 slot = SEATS_RESERVED * fee;
            uint16 granted = rounds.takeReserve(c.jobId, c.round, uint16(Math.ceilDiv(rest, slot)));
            _pull(rounds.potOf(c.jobId, c.round), caseId, rest, granted * slot);
            _pullFromFund(caseId, need);
            _paySeats(caseId, outcome, winners, fee);
        }
        uint256 left = ledger.potOf(caseId);
        if (left > 0) ledger.move(caseId, COURT_FUND, left);
    }

    /// Credits every prover its share of three fifths of the pot, which holds half of each slashed bond.
    function _payProvers(bytes32 caseId, uint256 pot, uint256 fee) private returns (uint256 share) {
        Seat[] storage seats = _seats[caseId];
        Bond[] storage bonds = _bonds[caseId];
        bytes32 digest = _convictions[caseId].digest;
        uint256 provers;
        for (uint16 i; i < seats.length; ++i) if (_isProver(caseId, i, digest)) ++provers;
        for (uint256 i; i < bonds.length; ++i) if (_isProverBond(caseId, i)) ++provers;
        share = (pot * 3) / 5 / provers; // rounded down, in favour of what is burnt
        if (share > PROVER_FEES * fee) share = PROVER_FEES * fee;
        if (share == 0) return 0;
        for (uint16 i; i < seats.length; ++i) {
            if (!_isProver(caseId, i, digest)) continue;
            ledger.credit(caseId, registry.payoutOf(seats[i].operator), share);
        }
        for (uint256 i; i < bonds.length; ++i) {
            if (_isProverBond(caseId, i)) ledger.credit(caseId, registry.payoutOf(bonds[i].operator), share);
        }
    }

    /// Whether a seat got that digest from the attested payloads; any other proves nothing.
    function _isProver(bytes32 caseId, uint16 seat, bytes32 digest) private view returns (bool) {
        return _seats[caseId][seat].state == SeatState.Revealed && _found[caseId][seat].contested == digest;
    }

    function _isProverBond(bytes32 caseId, uint256 i) private view returns (bool) {
        return _bonds[caseId][i].against != Outcome.Fraud && (_convictions[caseId].bonds >> i) & 1 == 0;
    }

    function _openedInVain(CaseKind, Outcome outcome) internal pure override returns (bool) {
        return outcome == Outcome.Match;
    }

    /// Who attested to the doubted checkpoint does not judge it.
    function _isAccused(Case storage c, address owner) internal view override returns (bool) {
        return rounds.attestedTo(c.jobId, c.round, owner);
    }
}
