// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IAuditCourt, Reveal} from "../interfaces/IAuditCourt.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IJobMarket} from "../interfaces/IJobMarket.sol";
import {IRewardLedger} from "../interfaces/IRewardLedger.sol";
import {IRoundBook} from "../interfaces/IRoundBook.sol";
import {TraceLib} from "../libraries/TraceLib.sol";
import {MerklePosition} from "../libraries/MerklePosition.sol";
import {Tickets} from "./Tickets.sol";
import {
    Addresses,
    Case,
    CasePhase,
    Claim,
    ClaimOpening,
    Draw,
    Finding,
    Preset,
    Seat,
    SeatState,
    Terms,
    Ticket,
    TraceRow,
    Windows
} from "../types/Types.sol";

/// Drawing panels and taking their findings. A case runs in cycles: seats are drawn, they commit, they reveal; silent
/// seats are drawn again, twice at most; then the level is decided (`AuditCourt`).
///
/// INV-CASE-1: an owner has at most one seat in a case, and none in a case about its own claim or challenge.
/// INV-CASE-2: a seat's root is stored before the steps to open are known.
/// INV-CASE-3: seats of an open case lock SEAT_LOCK_REWARDS rewards each; a vacated or decided one locks nothing.
abstract contract Panels is Tickets {
    uint256 private constant TRIES_PER_CALL = 64; // tickets looked at in one transaction
    uint16 private constant MOST_TRIES = 512; // tickets looked at for one seat
    uint16 private constant LAST_TRIES = uint16(TRIES_PER_CALL); // looked at again while a seat waits
    uint8 internal constant MOST_DRAWS = 3; // the first and two redraws
    uint8 internal constant LEVELS = 3;

    IBeacon public immutable beacon;
    IJobMarket public immutable market;
    IRoundBook public immutable rounds;
    IRewardLedger public immutable ledger;
    uint16 internal immutable _slashPanel;

    mapping(bytes32 caseId => Case) internal _cases;
    mapping(bytes32 caseId => Seat[]) internal _seats;
    /// The seat being drawn met a ticket that had its whole lock behind other seats: it waits, it is not vacant.
    mapping(bytes32 caseId => bool) private _metBusy;

    constructor(Addresses memory a, Preset memory p) Tickets(a, p) {
        beacon = IBeacon(a.beacon);
        market = IJobMarket(a.market);
        rounds = IRoundBook(a.rounds);
        ledger = IRewardLedger(a.ledger);
        _slashPanel = p.slashPanel;
    }

    // ---------------------------------------------------------------- cases

    /// @inheritdoc IAuditCourt
    function convene(bytes32 jobId, uint32 round, uint16[] calldata shards) external {
        Draw memory d = rounds.drawOf(jobId, round);
        for (uint256 i; i < shards.length; ++i) {
            if (shards[i] > 255 || (d.sampledMap >> shards[i]) & 1 == 0) revert NotSampled(jobId, round, shards[i]);
            bytes32 caseId = _openCase(jobId, round, shards[i], d, address(0));
            _cases[caseId].seed = d.seed; // pinned at the close: nobody knew the first seat before
            _startLevel(caseId, 1);
            _fill(caseId);
        }
    }

    function _openCase(
        bytes32 jobId,
        uint32 round,
        uint16 shard,
        Draw memory d,
        address challenger
    ) internal returns (bytes32 caseId) {
        caseId = caseIdOf(jobId, round, shard);
        Case storage c = _cases[caseId];
        if (c.phase != CasePhase.None) revert CaseExists(caseId);
        (c.jobId, c.round, c.shard) = (jobId, round, shard);
        (c.sampled, c.challenger) = (challenger == address(0), challenger);
        (c.tickets, c.closedAt) = (d.tickets, d.closedAt);
        emit CaseOpened(caseId, jobId, round, shard, c.sampled, challenger);
    }

    // ---------------------------------------------------------------- seats

    /// Add the seats of a level, each waiting for its draw.
    function _startLevel(bytes32 caseId, uint8 level) internal {
        Case storage c = _cases[caseId];
        c.level = level;
        _startSeating(c);
        uint256 size =
            level == 1
                ? 1
                : level == 2
                    ? 3
                    : _slashPanel;
        for (uint256 i = _seats[caseId].length; i < size; ++i) _seats[caseId].push();
        emit LevelStarted(caseId, level, size);
    }

    /// Seats wait for busy tickets as long as another case may need to free them.
    function _startSeating(Case storage c) private {
        Windows memory w = _terms(c.jobId).windows;
        c.phase = CasePhase.Seating;
        c.phaseEnds = uint40(block.timestamp + w.auditCommit + w.auditReveal);
    }

    /// Forget the seed and pin a new one: the next seats must not be known before this moment.
    function _pin(Case storage c) internal {
        c.beaconTicket = beacon.pin();
        c.seed = 0;
    }

    /// Fetch the seed that was pinned; pins again when it was missed. False while there is none.
    function _fetchSeed(Case storage c) private returns (bool) {
        if (c.seed != 0) return true;
        if (beacon.expired(c.beaconTicket)) {
            c.beaconTicket = beacon.pin();
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
        uint256 budget = TRIES_PER_CALL;
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != SeatState.Empty) continue;
            uint256 before = budget;
            budget = _drawSeat(caseId, c, i, budget);
            if (seats[i].state != SeatState.Empty) continue;
            // resumed by the next call; one that would change nothing is refused
            if (before == TRIES_PER_CALL && _isWaiting(caseId, c)) revert NoFreeTicket(caseId, c.phaseEnds);
            return;
        }
        _startCommit(caseId, c);
    }

    function _drawSeat(bytes32 caseId, Case storage c, uint16 i, uint256 budget) private returns (uint256) {
        uint256 seatLock = _seatLock(c.jobId);
        Seat storage s = _seats[caseId][i];
        for (; budget > 0; --budget) {
            if (c.tickets == 0 || c.tries == MOST_TRIES) {
                if (c.tickets == 0 || !_isWaiting(caseId, c)) {
                    _endDraw(caseId, c);
                    s.state = SeatState.Vacant;
                    emit SeatVacant(caseId, i);
                    return budget;
                }
                c.tries -= LAST_TRIES;
            }
            uint256 drawn = uint256(keccak256(abi.encode(c.seed, caseId, i, s.draws, c.tries++))) % c.tickets;
            Ticket storage t = _tickets[drawn];
            if (!_isEligible(drawn, c.closedAt, seatLock) || _isParty(caseId, c, t.owner)) continue;
            if (t.used + seatLock > t.amount) {
                _metBusy[caseId] = true;
                continue;
            }
            _endDraw(caseId, c);
            t.used += uint96(seatLock); // INV-CASE-3
            (s.owner, s.operator, s.ticket, s.state) = (t.owner, t.operator, uint32(drawn), SeatState.Seated);
            s.locked = uint96(seatLock);
            ++s.draws;
            emit Seated(caseId, i, t.operator, t.owner, s.ticket);
            return budget - 1;
        }
        return 0;
    }

    function _endDraw(bytes32 caseId, Case storage c) private {
        c.tries = 0;
        _metBusy[caseId] = false;
    }

    function _isWaiting(bytes32 caseId, Case storage c) private view returns (bool) {
        return c.tries == MOST_TRIES && _metBusy[caseId] && block.timestamp <= c.phaseEnds;
    }

    /// INV-CASE-1: the claim's owner, the challenger's owner, and whoever has a seat or had the one being drawn.
    function _isParty(bytes32 caseId, Case storage c, address owner) private view returns (bool) {
        if (_claimOf(c).owner == owner) return true;
        if (c.challenger != address(0) && registry.operatorOf(c.challenger).owner == owner) return true;
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) if (seats[i].owner == owner) return true;
        return false;
    }

    // ---------------------------------------------------------------- commit

    function _startCommit(bytes32 caseId, Case storage c) private {
        (uint256 seated, ) = _waiting(caseId);
        if (seated == 0) return _decide(caseId); // nobody could be found
        c.phase = CasePhase.Committing;
        c.phaseEnds = uint40(block.timestamp + _terms(c.jobId).windows.auditCommit);
        emit CommitPhase(caseId, c.phaseEnds);
    }

    /// @inheritdoc IAuditCourt
    function commitAudit(bytes32 caseId, uint16 seat, bytes32 root) external {
        Case storage c = _cases[caseId];
        Seat storage s = _checkSeat(caseId, c, seat, CasePhase.Committing);
        if (s.state != SeatState.Seated) revert SeatDone(seat);
        if (root == 0) revert ZeroRoot();
        s.root = root;
        s.state = SeatState.Committed;
        emit AuditCommitted(caseId, seat, msg.sender, root);
        (uint256 seated, ) = _waiting(caseId);
        if (seated == 0) _startReveal(caseId, c);
    }

    // ---------------------------------------------------------------- open and reveal

    function _startReveal(bytes32 caseId, Case storage c) private {
        _pin(c); // INV-CASE-2
        c.phase = CasePhase.Revealing;
        c.phaseEnds = uint40(block.timestamp + _terms(c.jobId).windows.auditReveal);
        emit RevealPhase(caseId, c.phaseEnds, c.beaconTicket);
    }

    /// @inheritdoc IAuditCourt
    function demandTrace(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        _checkPhase(c, CasePhase.Revealing);
        if (c.demandedAt != 0) revert AlreadyDemanded(caseId);
        if (!_isSeated(caseId, msg.sender)) revert NotTheSeat(msg.sender, address(0));
        Terms memory t = _terms(c.jobId);
        c.demandedAt = uint40(block.timestamp);
        // the answer first, then time to use it
        c.phaseEnds = uint40(block.timestamp + t.windows.demand + t.windows.auditReveal);
        emit TraceDemanded(caseId, _claimOf(c).operator, block.timestamp + t.windows.demand);
    }

    /// @inheritdoc IAuditCourt
    function openTrace(bytes32 caseId, ClaimOpening calldata claim, TraceRow[] calldata rows) external {
        Case storage c = _cases[caseId];
        if (c.demandedAt == 0 || c.openedAt != 0) revert NotADemand(caseId);
        Terms memory t = _terms(c.jobId);
        uint256 until = uint256(c.demandedAt) + t.windows.demand;
        if (block.timestamp > until) revert PhaseOver(block.timestamp, until);
        if (rows.length != t.innerSteps) revert WrongRowCount(rows.length, t.innerSteps);
        rounds.checkOpening(c.jobId, c.round, c.shard, claim);
        bytes32[] memory leaves = new bytes32[](rows.length);
        for (uint256 i; i < rows.length; ++i) leaves[i] = TraceLib.rowHash(rows[i]);
        bytes32 root = MerklePosition.rootOf(leaves);
        if (root != claim.traceRoot) revert WrongRoot(root, claim.traceRoot);
        c.openedAt = uint40(block.timestamp);
        emit TraceOpened(caseId, rows);
    }

    /// @inheritdoc IAuditCourt
    function reveal(bytes32 caseId, uint16 seat, Reveal calldata r) external {
        Case storage c = _cases[caseId];
        Seat storage s = _checkSeat(caseId, c, seat, CasePhase.Revealing);
        if (s.state != SeatState.Committed) revert SeatDone(seat);
        if (r.finding == Finding.None) revert NoFinding();
        if (r.finding == Finding.Match || r.finding == Finding.Reject || r.finding == Finding.Fraud) {
            _checkRows(caseId, c, s, seat, r);
        }
        s.finding = r.finding;
        s.step = r.step;
        s.state = SeatState.Revealed;
        emit Revealed(caseId, seat, msg.sender, r.finding, r.step);
        (, uint256 committed) = _waiting(caseId);
        if (committed == 0) _endCycle(caseId, c);
    }

    function _checkRows(bytes32 caseId, Case storage c, Seat storage s, uint16 seat, Reveal calldata r) private {
        if (!_fetchSeed(c)) revert IBeacon.SeedExpired(c.beaconTicket, block.number);
        bool isMatch = r.finding == Finding.Match;
        uint256 need = TraceLib.ROWS_OPENED;
        if (r.own.length != need) revert WrongRowCount(r.own.length, need);
        if (r.theirs.length != (isMatch ? need : 0)) revert WrongRowCount(r.theirs.length, isMatch ? need : 0);
        if (isMatch) rounds.checkOpening(c.jobId, c.round, c.shard, r.claim);
        Terms memory t = _terms(c.jobId);
        for (uint256 i; i < need; ++i) {
            uint32 step = TraceLib.stepAt(_rowSeed(c.seed, caseId), i, t.innerSteps);
            bytes32 leaf = TraceLib.auditRowHash(r.own[i].row, caseId, seat, msg.sender, r.salt);
            if (!TraceLib.isRowOf(s.root, leaf, r.own[i], step, t.innerSteps)) revert WrongRow(step, true);
            if (!isMatch) continue;
            leaf = TraceLib.rowHash(r.theirs[i].row);
            if (!TraceLib.isRowOf(r.claim.traceRoot, leaf, r.theirs[i], step, t.innerSteps))
                revert WrongRow(step, false);
            (uint64 own, uint64 theirs) = (r.own[i].row.loss, r.theirs[i].row.loss);
            if (!TraceLib.isWithin(own, theirs, t.lossTolerance)) {
                revert LossOutOfTolerance(step, own, theirs, t.lossTolerance);
            }
        }
    }

    // ---------------------------------------------------------------- time

    /// @inheritdoc IAuditCourt
    function advance(bytes32 caseId) external {
        Case storage c = _cases[caseId];
        if (c.phase == CasePhase.None || c.phase == CasePhase.Done) revert NoSuchCase(caseId);
        if (c.phase == CasePhase.Seating) return _fill(caseId);
        if (c.phase == CasePhase.Revealing && c.seed == 0 && block.timestamp <= c.phaseEnds) {
            _fetchSeed(c); // keeps the steps to open provable for as long as the phase lasts
            return;
        }
        if (block.timestamp <= c.phaseEnds) revert PhaseRunning(block.timestamp, c.phaseEnds);
        if (c.phase == CasePhase.Committing) {
            _dropSilent(caseId, c, SeatState.Seated);
            (, uint256 committed) = _waiting(caseId);
            if (committed > 0) return _startReveal(caseId, c);
        } else {
            if (c.demandedAt != 0 && c.openedAt == 0) c.withheld = true;
            _dropSilent(caseId, c, SeatState.Committed);
        }
        _endCycle(caseId, c);
    }

    /// Empty the seats that were still in `state`: one fee of their lock goes to the case.
    function _dropSilent(bytes32 caseId, Case storage c, SeatState state) private {
        Seat[] storage seats = _seats[caseId];
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state != state) continue;
            uint256 penalty = _slashSeat(caseId, i, _terms(c.jobId).auditFee);
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

    // ---------------------------------------------------------------- shared

    /// Decide the level: a verdict, or the next level.
    function _decide(bytes32 caseId) internal virtual;

    /// Take `amount` wei of a seat's lock into the case's pot, or what the seat still locks if that is less.
    function _slashSeat(bytes32 caseId, uint16 seat, uint256 amount) internal returns (uint256) {
        Seat storage s = _seats[caseId][seat];
        if (amount > s.locked) amount = s.locked;
        s.locked -= uint96(amount);
        Ticket storage t = _tickets[s.ticket];
        t.amount -= uint96(amount);
        t.used -= uint96(amount);
        emit SeatSlashed(caseId, seat, s.owner, amount);
        vault.slash(_ticketLock(s.ticket), amount, 0, caseId);
        return amount;
    }

    /// Give a seat's lock back to its ticket.
    function _freeSeat(Seat storage s) internal {
        _tickets[s.ticket].used -= s.locked; // INV-CASE-3
        s.locked = 0;
    }

    function _terms(bytes32 jobId) internal view returns (Terms memory) {
        return market.termsOf(jobId);
    }

    function _seatLock(bytes32 jobId) internal view returns (uint256) {
        return SEAT_LOCK_REWARDS * _terms(jobId).rewardPerShard;
    }

    /// Seats that have not committed, and seats that have committed and not revealed.
    function _waiting(bytes32 caseId) private view returns (uint256 seated, uint256 committed) {
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].state == SeatState.Seated) ++seated;
            if (seats[i].state == SeatState.Committed) ++committed;
        }
    }

    function _isSeated(bytes32 caseId, address operator) private view returns (bool) {
        Seat[] storage seats = _seats[caseId];
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].operator == operator && seats[i].state == SeatState.Committed) return true;
        }
        return false;
    }

    function _claimOf(Case storage c) internal view returns (Claim memory claim) {
        (claim, ) = rounds.claimOf(c.jobId, c.round, c.shard);
    }

    function _checkPhase(Case storage c, CasePhase need) private view {
        if (c.phase != need) revert WrongPhase(uint8(c.phase), uint8(need));
        if (block.timestamp > c.phaseEnds) revert PhaseOver(block.timestamp, c.phaseEnds);
    }

    function _checkSeat(
        bytes32 caseId,
        Case storage c,
        uint16 seat,
        CasePhase phase
    ) private view returns (Seat storage s) {
        _checkPhase(c, phase);
        if (seat >= _seats[caseId].length) revert NotTheSeat(msg.sender, address(0));
        s = _seats[caseId][seat];
        if (s.operator != msg.sender) revert NotTheSeat(msg.sender, s.operator);
    }

    /// @inheritdoc IAuditCourt
    function stepsOf(bytes32 caseId) external view returns (uint32[3] memory steps) {
        Case storage c = _cases[caseId];
        if (c.phase != CasePhase.Revealing) revert WrongPhase(uint8(c.phase), uint8(CasePhase.Revealing));
        bytes32 seed = c.seed != 0 ? c.seed : beacon.seedOf(c.beaconTicket);
        uint256 innerSteps = _terms(c.jobId).innerSteps;
        for (uint256 i; i < 3; ++i) steps[i] = TraceLib.stepAt(_rowSeed(seed, caseId), i, innerSteps);
    }

    function _rowSeed(bytes32 seed, bytes32 caseId) internal pure returns (bytes32) {
        return keccak256(abi.encode(seed, caseId));
    }

    /// @inheritdoc IAuditCourt
    function caseIdOf(bytes32 jobId, uint32 round, uint16 shard) public pure returns (bytes32) {
        return keccak256(abi.encode("case", jobId, round, shard));
    }
}
