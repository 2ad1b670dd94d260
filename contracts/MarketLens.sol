// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IAuditCourt} from "./interfaces/IAuditCourt.sol";
import {ICheckpointCourt} from "./interfaces/ICheckpointCourt.sol";
import {IJobMarket} from "./interfaces/IJobMarket.sol";
import {IOperatorRegistry, Operator} from "./interfaces/IOperatorRegistry.sol";
import {IRewardLedger} from "./interfaces/IRewardLedger.sol";
import {IRoundBook} from "./interfaces/IRoundBook.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITicketBook} from "./interfaces/ITicketBook.sol";
import {
    Addresses,
    Case,
    CasePhase,
    Claim,
    ClaimStatus,
    Draw,
    JobStatus,
    PauseReason,
    Progress,
    Round,
    RoundStatus,
    Seat,
    Ticket
} from "./types/Types.sol";

struct CaseView {
    uint16 shard;
    Case state;
    Seat[] seats;
}

struct RoundView {
    uint32 number;
    Round state;
    RoundStatus status;
    Claim[] claims;
    ClaimStatus[] statuses;
    Draw sample;
    CaseView[] cases;
    CaseView doubt; // about the checkpoint that the round ended in
}

struct JobView {
    JobStatus status;
    PauseReason reason;
    uint256 escrow;
    uint256 funded;
    uint256 refunded;
    Progress progress;
    uint32[] unsettled;
}

struct OperatorView {
    address operator;
    Operator entry;
}

struct OwnerView {
    address owner;
    uint256 freeStake;
    uint256 lockedStake;
    uint256 passedAudits;
    bool onProbation;
    bool barred;
}

/// @title MarketLens
/// @notice Reads what a service decides upon, a job and a round at a time. Holds nothing and changes nothing.
contract MarketLens {
    IStakeVault private immutable _vault;
    IRewardLedger private immutable _ledger;
    IOperatorRegistry private immutable _registry;
    IJobMarket private immutable _market;
    IRoundBook private immutable _rounds;
    ITicketBook private immutable _tickets;
    IAuditCourt private immutable _court;
    ICheckpointCourt private immutable _checkpoints;

    constructor(Addresses memory a) {
        _vault = IStakeVault(a.vault);
        _ledger = IRewardLedger(a.ledger);
        _registry = IOperatorRegistry(a.registry);
        _market = IJobMarket(a.market);
        _rounds = IRoundBook(a.rounds);
        _tickets = ITicketBook(a.tickets);
        _court = IAuditCourt(a.court);
        _checkpoints = ICheckpointCourt(a.checkpoints);
    }

    /// A job with the numbers of its rounds from `from` on that are not settled: at most `most`, oldest first, and the
    /// newest round always among them.
    function jobView(bytes32 jobId, uint32 from, uint32 most) external view returns (JobView memory v) {
        (v.status, v.reason) = _market.statusOf(jobId);
        v.escrow = _ledger.potOf(jobId);
        (v.funded, v.refunded) = _market.totalsOf(jobId);
        v.progress = _rounds.progressOf(jobId);
        uint32 opened = v.progress.opened;
        uint32[] memory numbers = new uint32[](most);
        uint256 found;
        for (uint32 r = from; r < opened && found < most; ++r) {
            if (found + 1 == most) r = opened - 1;
            (, RoundStatus status) = _rounds.roundOf(jobId, r);
            if (status != RoundStatus.Settled) numbers[found++] = r;
        }
        v.unsettled = new uint32[](found);
        for (uint256 i; i < found; ++i) v.unsettled[i] = numbers[i];
    }

    /// One round with its claims, sample and cases.
    function roundView(bytes32 jobId, uint32 number) external view returns (RoundView memory v) {
        v.number = number;
        (v.state, v.status) = _rounds.roundOf(jobId, number);
        (v.claims, v.statuses) = _rounds.claimsOf(jobId, number);
        v.sample = _rounds.drawOf(jobId, number);
        uint256 n = v.claims.length;
        CaseView[] memory cases = new CaseView[](n);
        uint256 found;
        for (uint16 shard; shard < n; ++shard) {
            CaseView memory c;
            c.shard = shard;
            (c.state, c.seats) = _court.caseOf(_court.caseIdOf(jobId, number, shard));
            if (c.state.phase != CasePhase.None) cases[found++] = c;
        }
        (v.doubt.state, v.doubt.seats) = _checkpoints.caseOf(_checkpoints.caseIdOf(jobId, number));
        v.cases = new CaseView[](found);
        for (uint256 i; i < found; ++i) v.cases[i] = cases[i];
    }

    /// The registered operators from number `from` on, at most `most` of them.
    function operators(uint256 from, uint256 most) external view returns (OperatorView[] memory list) {
        uint256 total = _registry.operatorCount();
        uint256 count = from >= total ? 0 : total - from;
        if (count > most) count = most;
        list = new OperatorView[](count);
        for (uint256 i; i < count; ++i) {
            address operator = _registry.operatorAt(from + i);
            list[i] = OperatorView(operator, _registry.operatorOf(operator));
        }
    }

    /// The list of tickets from number `from` on, at most `most` of them.
    function tickets(uint32 from, uint32 most) external view returns (Ticket[] memory list) {
        uint32 total = _tickets.ticketCount();
        uint32 count = from >= total ? 0 : total - from;
        if (count > most) count = most;
        list = new Ticket[](count);
        for (uint32 i; i < count; ++i) list[i] = _tickets.ticketOf(from + i);
    }

    /// What an operator's owner may do in a job.
    function ownerView(bytes32 jobId, address operator) external view returns (OwnerView memory v) {
        v.owner = _registry.operatorOf(operator).owner;
        v.freeStake = _vault.freeOf(v.owner);
        v.lockedStake = _vault.lockedOf(v.owner);
        v.passedAudits = _court.passedOf(v.owner);
        (v.onProbation, v.barred) = _court.standingOf(jobId, v.owner);
    }
}
