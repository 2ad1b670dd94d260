// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IPanels} from "../interfaces/IPanels.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IJobMarket} from "../interfaces/IJobMarket.sol";
import {IOperatorRegistry} from "../interfaces/IOperatorRegistry.sol";
import {IRewardLedger} from "../interfaces/IRewardLedger.sol";
import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {ITicketBook, Candidate} from "../interfaces/ITicketBook.sol";
import {
    Addresses,
    Bond,
    Case,
    CaseKind,
    CasePhase,
    COURT_FUND,
    CourtTerms,
    Finding,
    Outcome,
    Preset,
    SCOPE_CHALLENGE,
    SEAT_LOCK_REWARDS,
    Seat,
    SeatState
} from "../types/Types.sol";

/// Drawing panels, their phases and their pay. A case runs in cycles: seats are drawn, they commit, they reveal; silent
/// seats are drawn again, twice at most; then the level is decided, by the court that this is a part of.
///
/// INV-CASE-1: an owner has at most one seat in a case, and is drawn for none in a case that it is a party to.
/// INV-CASE-2: a seat's root is stored before anybody reveals, and before anybody knows what to reveal.
/// INV-CASE-3: seats of an open case lock SEAT_LOCK_REWARDS rewards each; a vacated or decided one locks nothing.
/// INV-COURT-1: a case has one verdict, and its seats are paid once.
/// INV-COURT-5: a bond is returned or lost once, with the verdict.
abstract contract Panels is IPanels {
    uint256 private constant TRIES_PER_CALL = 64; // tickets looked at in one transaction
    uint16 private constant MOST_TRIES = 512; // tickets looked at for one seat
    uint16 private constant LAST_TRIES = uint16(TRIES_PER_CALL); // looked at again while a seat waits
    uint8 internal constant MOST_DRAWS = 3; // the first and two redraws
    uint8 internal constant PANEL_LEVEL = 3;
    uint8 internal constant APPEAL_LEVEL = 4;
    uint8 internal constant CHALLENGE_FEES = 7;
    uint8 internal constant APPEAL_FEES = 14;
    uint256 private constant WRONG_SEAT_DIVISOR = 4; // a finding at distance 2 loses a quarter of the seat's lock

    IStakeVault public immutable vault;
    IOperatorRegistry public immutable registry;
    ITicketBook public immutable tickets;
    IBeacon public immutable beacon;
    IJobMarket public immutable market;
    IRoundBook public immutable rounds;
    IRewardLedger public immutable ledger;
    uint16 internal immutable _slashPanel;
    uint16 internal immutable _slashNeeded;
    uint16 internal immutable _appealPanel;
    uint16 internal immutable _appealNeeded;

    mapping(bytes32 caseId => Case) internal _cases;
    mapping(bytes32 caseId => Seat[]) internal _seats;
    mapping(bytes32 caseId => Bond[]) internal _bonds;

    constructor(Addresses memory a, Preset memory p) {
        vault = IStakeVault(a.vault);
        registry = IOperatorRegistry(a.registry);
        tickets = ITicketBook(a.tickets);
        beacon = IBeacon(a.beacon);
        market = IJobMarket(a.market);
        rounds = IRoundBook(a.rounds);
        ledger = IRewardLedger(a.ledger);
        _slashPanel = p.slashPanel;
        _slashNeeded = p.slashNeeded;
        _appealPanel = p.appealPanel;
        _appealNeeded = p.appealNeeded;
    }

    // ---------------------------------------------------------------- what a court adds

    /// The outcome that the seats' findings reach at the case's level; None: the next level decides.
    function _outcomeOf(bytes32 caseId, Case storage c) internal view virtual returns (Outcome);

    /// Do what the verdict says, and empty the case's pot.
    function _conclude(bytes32 caseId, Case storage c, Outcome outcome) internal virtual;

    /// How far a seat's finding lies from the verdict: 0 is paid, 2 loses a part of its lock.
    function _distanceOf(bytes32 caseId, uint16 seat, Outcome outcome) internal view virtual returns (uint256);

    /// Whether an owner is accused in a case.
    function _isAccused(Case storage c, address owner) internal view virtual returns (bool);

    /// Whether the verdict says that the case was opened in vain.
    function _openedInVain(CaseKind kind, Outcome outcome) internal pure virtual returns (bool);

    // ---------------------------------------------------------------- cases

    function _open(
        bytes32 caseId,
        CaseKind kind,
        bytes32 jobId,
        uint32 round,
        uint16 shard
    ) internal returns (Case storage c) {
        c = _cases[caseId];
        if (c.phase != CasePhase.None) revert CaseExists(caseId);
        (c.jobId, c.round, c.shard, c.kind) = (jobId, round, shard, kind);
        emit CaseOpened(caseId, jobId, round, shard, kind, msg.sender);
    }

    /// Lock the caller's stake behind what it says.
    function _postBond(bytes32 caseId, address owner, uint8 fees, Outcome against) internal {
        Bond[] storage bonds = _bonds[caseId];
        uint256 amount = fees * _termsOf(_cases[caseId].jobId).fee;
        bytes32 id = _bondId(caseId, bonds.length);
        bonds.push(Bond(msg.sender, fees, against, owner));
        emit BondPosted(caseId, msg.sender, owner, amount);
        vault.lock(owner, id, amount);
    }

    /// INV-COURT-5. Where nobody judged, nobody was wrong.
    function _endBonds(bytes32 caseId, Case storage c, Outcome outcome, uint256 winners) internal {
        Bond[] storage bonds = _bonds[caseId];
        if (bonds.length == 0) return;
        uint256 fee = _termsOf(c.jobId).fee;
        for (uint256 i; i < bonds.length; ++i) {
            Bond memory b = bonds[i];
            bool lost = b.against == Outcome.None ? _openedInVain(c.kind, outcome) : outcome == b.against;
            uint256 amount = lost && winners > 0 ? b.fees * fee : 0;
            emit BondEnded(caseId, b.operator, b.owner, amount);
            if (amount > 0) vault.slash(_bondId(caseId, i), amount, 0, caseId);
            vault.release(_bondId(caseId, i));
        }
    }

    // ---------------------------------------------------------------- seats

    /// Add the seats of a level, each waiting for its draw.
    function _startLevel(bytes32 caseId, uint8 level) internal {
        Case storage c = _cases[caseId];
        c.level = level;
        _startSeating(c);
        uint256 size = _sizeOf(level);
        for (uint256 i = _seats[caseId].length; i < size; ++i) _seats[caseId].push();
        emit LevelStarted(caseId, level, size);
    }

    function _sizeOf(uint8 level) private view returns (uint256) {
        if (level == PANEL_LEVEL) return _slashPanel;
        if (level == APPEAL_LEVEL) return _appealPanel;
        return level == 1 ? 1 : 3;
    }

    /// The same share of the seats that spoke as a full panel needs. Silence neither acquits nor convicts.
    function _shareOf(uint8 level, uint256 spoke) internal view returns (uint256) {
        if (level == APPEAL_LEVEL) return (_appealNeeded * spoke + _appealPanel - 1) / _appealPanel;
        return (_slashNeeded * spoke + _slashPanel - 1) / _slashPanel;
    }

    /// Seats wait for busy tickets as long as another case may need to free them.
    function _startSeating(Case storage c) private {
        CourtTerms memory t = _termsOf(c.jobId);
        c.phase = CasePhase.Seating;
        c.phaseEnds = uint40(block.timestamp + t.auditCommit + t.auditReveal);
    }

    /// Forget the seed and pin a new one: the next seats must not be known before this moment.
    function _pin(Case storage c) internal {
        c.beaconTicket = SafeCast.toUint80(beacon.pin());
        c.seed = 0;
    }

    /// Fetch the seed that was pinned; pins again when it was missed. False while there is none.
    function _fetchSeed(Case storage c) internal returns (bool) {
        if (c.seed != 0) return true;
        if (beacon.expired(c.beaconTicket)) {
            c.beaconTicket = SafeCast.toUint80(beacon.repin(c.beaconTicket));
            return false;
        }
        c.seed = beacon.seedOf(c.beaconTicket);
        return true;
    }

    /// Draw for every empty seat, as far as one transaction goes; then let them commit.
    function _fill(bytes32 caseId) internal {
        Case storage c = _cases[caseId];
        if (!_fetchSeed(c)) return;
        Seat[] storage seats = _seats[caseId];
        uint256 seatLock = SEAT_LOCK_REWARDS * _termsOf(c.jobId).reward;
        uint256 budget = TRIES_PER_CALL;
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Empty) continue;
            uint256 before = budget;
            budget = _drawSeat(caseId, c, i, seatLock, budget);
            if (seats[i].state != SeatState.Empty) continue;
            // resumed by the next call; one that would change nothing is refused
            if (before == TRIES_PER_CALL && _isWaiting(c)) revert NoFreeTicket(caseId, c.phaseEnds);
            return;
        }
        _startCommit(caseId, c);
    }

    function _drawSeat(
        bytes32 caseId,
        Case storage c,
        uint16 i,
        uint256 seatLock,
        uint256 budget
    ) private returns (uint256) {
        Seat storage s = _seats[caseId][i];
        for (; budget > 0; --budget) {
            if (c.tickets == 0 || c.tries == MOST_TRIES) {
                if (c.tickets == 0 || !_isWaiting(c)) {
                    _endDraw(c);
                    s.state = SeatState.Vacant;
                    emit SeatVacant(caseId, i);
                    return budget;
                }
                c.tries -= LAST_TRIES;
            }
            uint256 drawn = uint256(keccak256(abi.encode(c.seed, caseId, i, s.draws, c.tries++))) % c.tickets;
            (Candidate fit, address owner, address operator) = tickets.candidate(drawn, c.closedAt, seatLock);
            if (fit == Candidate.Unfit || _isParty(caseId, c, owner)) continue;
            if (fit == Candidate.Busy) {
                c.metBusy = true;
                continue;
            }
            _endDraw(c);
            (s.owner, s.operator, s.ticket, s.state) = (owner, operator, uint32(drawn), SeatState.Seated);
            s.locked = uint96(seatLock); // INV-CASE-3
            ++s.draws;
            emit Seated(caseId, i, operator, owner, s.ticket);
            tickets.occupy(s.ticket, seatLock);
            return budget - 1;
        }
        return 0;
    }

    function _endDraw(Case storage c) private {
        c.tries = 0;
        c.metBusy = false;
    }

    function _isWaiting(Case storage c) private view returns (bool) {
        return c.tries == MOST_TRIES && c.metBusy && block.timestamp <= c.phaseEnds;
    }

    /// INV-CASE-1: the accused, whoever has a bond here, and whoever has a seat or had the one being drawn.
    function _isParty(bytes32 caseId, Case storage c, address owner) private view returns (bool) {
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) if (seats[i].owner == owner) return true;
        Bond[] storage bonds = _bonds[caseId];
        for (uint256 i; i < bonds.length; ++i) if (bonds[i].owner == owner) return true;
        return _isAccused(c, owner);
    }

    // ---------------------------------------------------------------- commit and reveal

    function _startCommit(bytes32 caseId, Case storage c) private {
        if (_countOf(caseId, SeatState.Seated) == 0) return _decide(caseId); // nobody could be found
        c.phase = CasePhase.Committing;
        c.seed = 0; // all seats are drawn; what is cleared in the same transaction costs next to nothing
        c.phaseEnds = uint40(block.timestamp + _termsOf(c.jobId).auditCommit);
        emit CommitPhase(caseId, c.phaseEnds);
    }

    /// @inheritdoc IPanels
    function commitAudit(bytes32 caseId, uint16 seat, bytes32 root) external {
        Case storage c = _cases[caseId];
        Seat storage s = _seatOf(caseId, c, seat, CasePhase.Committing, SeatState.Seated);
        if (root == 0) revert ZeroRoot();
        s.root = root;
        s.state = SeatState.Committed;
        emit AuditCommitted(caseId, seat, msg.sender, root);
        if (_countOf(caseId, SeatState.Seated) == 0) _startReveal(caseId, c);
    }

    function _startReveal(bytes32 caseId, Case storage c) private {
        _pin(c); // INV-CASE-2: what the seats show comes from a seed that nobody knew when they committed
        c.phase = CasePhase.Revealing;
        c.phaseEnds = uint40(block.timestamp + _termsOf(c.jobId).auditReveal);
        emit RevealPhase(caseId, c.phaseEnds, c.beaconTicket);
    }

    /// A seat has said what it found; the last one ends the cycle.
    function _revealed(bytes32 caseId, Case storage c, Seat storage s, Finding finding) internal {
        if (finding == Finding.None) revert NoFinding();
        s.finding = finding;
        s.state = SeatState.Revealed;
        if (_countOf(caseId, SeatState.Committed) == 0) _endCycle(caseId, c);
    }

    // ---------------------------------------------------------------- time

    /// @inheritdoc IPanels
    function advance(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        if (c.phase == CasePhase.None || c.phase == CasePhase.Done) revert NoSuchCase(caseId);
        if (c.phase == CasePhase.Seating) return _fill(caseId);
        if (c.phase == CasePhase.Revealing && c.seed == 0 && block.timestamp <= c.phaseEnds) {
            _fetchSeed(c); // keeps the steps to open provable for as long as the phase lasts
            return;
        }
        if (block.timestamp <= c.phaseEnds) revert PhaseRunning(block.timestamp, c.phaseEnds);
        if (c.phase == CasePhase.Appealable) return _finish(caseId, c, c.outcome);
        if (c.phase == CasePhase.Committing) {
            _dropSilent(caseId, c, SeatState.Seated);
            if (_countOf(caseId, SeatState.Committed) > 0) return _startReveal(caseId, c);
        } else {
            if (c.demandedAt != 0 && !c.opened) c.withheld = true;
            _dropSilent(caseId, c, SeatState.Committed);
        }
        _endCycle(caseId, c);
    }

    /// Empty the seats that were still in `state`: one fee of their lock goes to the case.
    function _dropSilent(bytes32 caseId, Case storage c, SeatState state) private {
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != state) continue;
            uint256 penalty = _slashSeat(caseId, i, _termsOf(c.jobId).fee);
            emit SeatMissed(caseId, i, seats[i].operator, penalty);
            _vacate(seats[i]);
        }
    }

    /// Empty a seat for another draw, or leave it vacant after the last one. Its owner stays a party.
    function _vacate(Seat storage s) private {
        _freeSeat(s);
        s.state = s.draws < MOST_DRAWS ? SeatState.Empty : SeatState.Vacant;
        s.root = 0;
        s.finding = Finding.None;
    }

    /// All seats have spoken or were dropped: draw again for the empty ones, or decide the level.
    function _endCycle(bytes32 caseId, Case storage c) private {
        Seat[] storage seats = _seats[caseId];
        bool again;
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].state == SeatState.Revealed && seats[i].finding == Finding.Abstain) _vacate(seats[i]);
            again = again || seats[i].state == SeatState.Empty;
        }
        if (!again) return _decide(caseId);
        _pin(c);
        _startSeating(c);
    }

    // ---------------------------------------------------------------- levels

    function _decide(bytes32 caseId) private {
        Case storage c = _cases[caseId];
        Outcome outcome = _outcomeOf(caseId, c);
        if (outcome == Outcome.None) return _goOn(caseId, c);
        if (_appealFees(c, outcome) == 0) return _finish(caseId, c, outcome);
        c.outcome = outcome;
        c.phase = CasePhase.Appealable;
        c.phaseEnds = uint40(block.timestamp + _termsOf(c.jobId).challenge);
        emit Appealable(caseId, outcome, c.phaseEnds);
    }

    /// @inheritdoc IPanels
    function appeal(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        _checkPhase(c, CasePhase.Appealable);
        address owner = registry.ownerFor(msg.sender, SCOPE_CHALLENGE);
        Outcome against = c.outcome;
        c.outcome = Outcome.None;
        emit Appealed(caseId, msg.sender, against);
        _postBond(caseId, owner, c.level == PANEL_LEVEL ? APPEAL_FEES : CHALLENGE_FEES, against);
        _goOn(caseId, c);
    }

    /// Fees of an appeal; 0 where there is none. Three seats that leave work unpaid, and the panel where there are owners
    /// enough for a larger one.
    function _appealFees(Case storage c, Outcome outcome) private view returns (uint8) {
        // Where too few agreed about a checkpoint a larger panel may; a claim that nobody judged is paid.
        if (outcome == Outcome.Unsampled && c.kind != CaseKind.Checkpoint) return 0;
        if (c.level == PANEL_LEVEL) return tickets.liveOwners() > _appealPanel ? APPEAL_FEES : 0;
        return c.level == 2 && outcome == Outcome.Reject ? CHALLENGE_FEES : 0;
    }

    /// The next seats must not be known while this level judges.
    function _goOn(bytes32 caseId, Case storage c) private {
        _pin(c);
        _startLevel(caseId, c.level + 1);
    }

    function _finish(bytes32 caseId, Case storage c, Outcome outcome) private {
        c.phase = CasePhase.Done; // INV-COURT-1
        c.outcome = outcome;
        emit VerdictReached(caseId, c.jobId, c.accused, outcome, c.level);
        _conclude(caseId, c, outcome);
    }

    // ---------------------------------------------------------------- fees

    /// Frees all seats, slashes those at distance 2 and counts those at distance 0.
    function _judgeSeats(bytes32 caseId, Outcome outcome) internal returns (uint256 winners) {
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed) continue;
            uint256 distance = _distanceOf(caseId, i, outcome);
            if (distance == 0) ++winners;
            if (distance == 2) _slashSeat(caseId, i, seats[i].locked / WRONG_SEAT_DIVISOR);
            _freeSeat(seats[i]);
        }
    }

    function _pull(bytes32 from, bytes32 to, uint256 need, uint256 most) internal returns (uint256 amount) {
        amount = need < most ? need : most;
        if (amount > 0) ledger.move(from, to, amount);
    }

    /// What the case's own pot lacks comes from the court fund.
    function _pullFromFund(bytes32 caseId, uint256 need) internal {
        uint256 have = ledger.potOf(caseId);
        if (need > have) _pull(COURT_FUND, caseId, need - have, ledger.potOf(COURT_FUND));
    }

    /// A fee for each seat at distance 0, or the pot in equal parts when it is not enough.
    function _paySeats(bytes32 caseId, Outcome outcome, uint256 winners, uint256 fee) internal {
        if (winners == 0) return;
        uint256 part = ledger.potOf(caseId) / winners; // rounded down; the dust stays in the pot for `_conclude`
        if (part > fee) part = fee;
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Revealed || _distanceOf(caseId, i, outcome) != 0) continue;
            emit SeatPaid(caseId, i, seats[i].operator, part);
            ledger.credit(caseId, registry.payoutOf(seats[i].operator), part);
        }
    }

    /// Take `amount` wei of a seat's lock into the case's pot, or what the seat still locks if that is less.
    function _slashSeat(bytes32 caseId, uint16 seat, uint256 amount) private returns (uint256) {
        Seat storage s = _seats[caseId][seat];
        if (amount > s.locked) amount = s.locked;
        s.locked -= uint96(amount);
        emit SeatSlashed(caseId, seat, s.owner, amount);
        tickets.slash(s.ticket, amount, caseId);
        return amount;
    }

    /// Give a seat's lock back to its ticket.
    function _freeSeat(Seat storage s) private {
        uint256 amount = s.locked;
        s.locked = 0; // INV-CASE-3
        tickets.vacate(s.ticket, amount);
    }

    // ---------------------------------------------------------------- views and checks

    /// @inheritdoc IPanels
    function caseOf(bytes32 caseId) external view returns (Case memory, Seat[] memory) {
        return (_cases[caseId], _seats[caseId]);
    }

    /// @inheritdoc IPanels
    function bondsOf(bytes32 caseId) external view returns (Bond[] memory) {
        return _bonds[caseId];
    }

    function _termsOf(bytes32 jobId) internal view returns (CourtTerms memory) {
        return market.courtTermsOf(jobId);
    }

    function _countOf(bytes32 caseId, SeatState state) internal view returns (uint256 count) {
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) if (seats[i].state == state) ++count;
    }

    function _checkPhase(Case storage c, CasePhase need) internal view {
        if (c.phase != need) revert WrongPhase(uint8(c.phase), uint8(need));
        if (block.timestamp > c.phaseEnds) revert PhaseOver(block.timestamp, c.phaseEnds);
    }

    /// The caller's seat, if it is its turn.
    function _seatOf(
        bytes32 caseId,
        Case storage c,
        uint16 seat,
        CasePhase phase,
        SeatState state
    ) internal view returns (Seat storage s) {
        _checkPhase(c, phase);
        if (seat >= _seats[caseId].length) revert NotTheSeat(msg.sender, address(0));
        s = _seats[caseId][seat];
        if (s.operator != msg.sender) revert NotTheSeat(msg.sender, s.operator);
        if (s.state != state) revert SeatDone(seat);
    }

    function _bondId(bytes32 caseId, uint256 index) private pure returns (bytes32) {
        return keccak256(abi.encode("bond", caseId, index));
    }
}
