// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {CrowdJudges} from "./CrowdJudges.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {
    Bond,
    Case,
    CasePhase,
    Claim,
    ClaimStatus,
    COURT_FUND,
    JobStatus,
    Outcome,
    Progress,
    Round,
    RoundStatus,
    Seat,
    SeatState,
    Ticket
} from "../contracts/types/Types.sol";

/// Owners, operators, auditors, a poster and a stranger who do one thing after another, in any order, for or against
/// the others. What the contracts refuse changes nothing; what they let through must keep every invariant.
contract Crowd is CrowdJudges {
    constructor() {
        for (uint16 s; s < 6; ++s) list(court.caseIdOf(jobs[0], 0, s), court);
    }

    /// One move of somebody. `seed` decides who and what.
    function turn(uint256 seed) external {
        dice = seed;
        jobId = jobs[roll(jobs.length)];
        uint256 kind = roll(18);
        if (kind < 7) work();
        else if (kind < 13) judgeSome();
        else if (kind == 13) people();
        else if (kind == 14) money();
        else if (kind == 15) steer();
        else if (kind == 16) doubt(anyRound());
        else later(1 + roll(roll(3) == 0 ? 200 : 20));
    }

    /// The same call again, by whoever made it, or anything else.
    function moveWithin(Move memory last) internal override {
        uint256 kind = ending ? 0 : roll(12);
        if (kind < 5) {
            attempt("again", last.who, last.target, last.data);
            return;
        }
        jobId = jobs[roll(jobs.length)];
        if (kind < 7) money();
        else if (kind == 7) people();
        else if (kind == 8) steer();
        else if (kind == 9) judgeOne();
        else if (kind == 10) work();
        else finish(anyRound());
    }

    // ---------------------------------------------------------------- money

    /// deposits = wallets + stake + pots and credits + burnt, each part counted by itself.
    function checkMoney() external view {
        checkConservation();
        uint256 pots = ledger.potOf(COURT_FUND);
        for (uint256 i; i < jobs.length; ++i) {
            pots += ledger.potOf(jobs[i]);
            uint32 opened = rounds.progressOf(jobs[i]).opened;
            for (uint32 r; r < opened; ++r) pots += ledger.potOf(rounds.potOf(jobs[i], r));
        }
        for (uint256 i; i < caseIds.length; ++i) {
            uint256 inCase = ledger.potOf(caseIds[i]);
            if (caseOf(caseIds[i]).phase == CasePhase.Done) eq(inCase, 0, "INV-COURT-3");
            pots += inCase;
        }
        for (uint256 i; i < stepIds.length; ++i) {
            uint256 inCase = ledger.potOf(stepIds[i]);
            (Case memory c, ) = checkpoints.caseOf(stepIds[i]);
            // what a conviction slashes waits there to be shared out
            if (c.phase == CasePhase.Done && c.outcome != Outcome.Fraud) eq(inCase, 0, "INV-STEP-3");
            pots += inCase;
        }
        uint256 credits = ledger.creditOf(POSTER);
        uint256 wallets = token.balanceOf(POSTER) + token.balanceOf(STRANGER);
        for (uint256 i; i < actors.length; ++i) {
            credits += ledger.creditOf(actors[i].payout);
            wallets += token.balanceOf(actors[i].payout) + token.balanceOf(actors[i].owner);
        }
        eq(ledger.held(), pots + credits, "INV-LEDGER-1");
        uint256 vaults = token.balanceOf(address(vault)) + token.balanceOf(address(ledger));
        eq(minted, wallets + vaults + token.balanceOf(BURN), "INV-MONEY");
    }

    // ---------------------------------------------------------------- locks

    /// Every locked wei lies under a lock that somebody can still free. Its parts are calls of their own: together they
    /// need more stack than there is.
    function checkLocks() external view {
        (uint256 locked, uint256 used) = ticketLocks();
        for (uint256 i; i < caseIds.length; ++i) {
            (uint256 bonds, uint256 behind) = this.caseLocks(IPanels(court), caseIds[i]);
            (locked, used) = (locked + bonds, used - behind);
        }
        for (uint256 i; i < stepIds.length; ++i) {
            (uint256 bonds, uint256 behind) = this.caseLocks(IPanels(checkpoints), stepIds[i]);
            (locked, used) = (locked + bonds, used - behind);
        }
        eq(used, 0, "tickets are used by open seats only");
        for (uint256 j; j < jobs.length; ++j) locked += this.claimLocks(jobs[j]);
        for (uint256 i; i < actors.length; ++i) locked -= vault.lockedOf(actors[i].owner);
        eq(locked, 0, "INV-STAKE-1");
    }

    function ticketLocks() private view returns (uint256 locked, uint256 used) {
        uint32 count = tickets.ticketCount();
        uint256 live;
        for (uint32 i; i < count; ++i) {
            Ticket memory t = tickets.ticketOf(i);
            yes(t.used <= t.amount, "INV-TICKET-1");
            (, uint256 amount) = vault.lockOf(address(tickets), keccak256(abi.encode("ticket", i)));
            eq(amount, t.released ? 0 : t.amount, "a ticket's lock");
            if (t.released) eq(t.used, 0, "a released ticket has no seat");
            locked += amount;
            used += t.used;
            bool first = t.exitAt == 0;
            for (uint32 o; o < i && first; ++o) {
                Ticket memory other = tickets.ticketOf(o);
                first = other.owner != t.owner || other.exitAt != 0;
            }
            if (first) ++live;
        }
        eq(tickets.liveOwners(), live, "INV-TICKET-2");
    }

    /// What a case's bonds lock, and what its seats lock of tickets.
    function caseLocks(IPanels panel, bytes32 id) external view returns (uint256 locked, uint256 behind) {
        (Case memory c, Seat[] memory seats) = panel.caseOf(id);
        Bond[] memory bonds = panel.bondsOf(id);
        bool over = c.phase == CasePhase.Done;
        uint256 fee = market.termsOf(c.jobId).auditFee;
        for (uint256 b; b < bonds.length; ++b) {
            (, uint256 amount) = vault.lockOf(address(panel), keccak256(abi.encode("bond", id, b)));
            eq(amount, over ? 0 : bonds[b].fees * fee, "INV-COURT-5");
            locked += amount;
        }
        for (uint256 s; s < seats.length; ++s) {
            address owner = seats[s].owner;
            behind += seats[s].locked;
            bool open = !over && seats[s].state > SeatState.Empty && seats[s].state < SeatState.Vacant;
            if (!open) eq(seats[s].locked, 0, "INV-CASE-3");
            if (owner == address(0)) continue;
            for (uint256 o; o < s; ++o) yes(owner != seats[o].owner, "INV-CASE-1: one seat");
            yes(owner != c.accused, "INV-CASE-1: the accused");
            // who already sat may appeal; who opened the case may not sit
            bool opened = bonds.length > 0 && bonds[0].against == Outcome.None && bonds[0].owner == owner;
            yes(!opened, "INV-CASE-1: who opened the case");
            bool step = address(panel) == address(checkpoints);
            yes(!step || over || !rounds.attestedTo(c.jobId, c.round, owner), "INV-CASE-1: who attested");
        }
    }

    function claimLocks(bytes32 job) external view returns (uint256 locked) {
        uint256 bond = market.termsOf(job).bondPerShard;
        uint32 opened = rounds.progressOf(job).opened;
        for (uint32 r; r < opened; ++r) for (uint16 s; s < 6; ++s) locked += claimLock(job, r, s, bond);
    }

    function claimLock(bytes32 job, uint32 round, uint16 shard, uint256 bond) private view returns (uint256) {
        bytes32 id = keccak256(abi.encode("claim", job, round, shard));
        (address owner, uint256 amount) = vault.lockOf(address(rounds), id);
        (Claim memory c, ClaimStatus status) = rounds.claimOf(job, round, shard);
        bool settled = c.settled == ClaimStatus.Paid || c.settled == ClaimStatus.Unpaid;
        if (settled || status == ClaimStatus.Free) yes(owner == address(0), "a settled claim locks nothing");
        bool live = !settled && status != ClaimStatus.Free && status != ClaimStatus.Lapsed;
        (, bool judged, Outcome outcome, ) = court.outcomeOf(job, round, shard);
        if (live) eq(amount, judged && outcome == Outcome.Fraud ? 0 : bond, "a claim's bond");
        return amount;
    }

    // ---------------------------------------------------------------- rounds

    function checkRounds() external view {
        for (uint256 j; j < jobs.length; ++j) checkProgress(jobs[j]);
    }

    /// Checkpoints form one chain, what left it is orphaned, and nothing was paid that could still be taken back.
    function checkProgress(bytes32 job) private view {
        Progress memory p = rounds.progressOf(job);
        uint32 unsettled;
        uint32 closed;
        bytes32 base = market.termsOf(job).genesisDigest;
        for (uint32 n; n < p.opened; ++n) {
            (Round memory r, RoundStatus status) = rounds.roundOf(job, n);
            bool orphaned = rounds.isOrphaned(job, n);
            if (status != RoundStatus.Settled) ++unsettled;
            else eq(ledger.potOf(rounds.potOf(job, n)), 0, "INV-ROUND-5");
            checkPay(job, n, p, orphaned);
            if (orphaned) continue;
            eq(r.base, base, "a round starts from the checkpoint before it");
            if (r.closedAt == 0 || r.voided) continue;
            base = r.next;
            eq(r.checkpoint, ++closed, "a checkpoint's number");
            eq(rounds.checkpointOf(job, closed), r.next, "a checkpoint's digest");
            bool doubtful = rounds.isChallengeable(job, n) || checkpoints.isOpen(job, n);
            yes(n >= p.finalRounds || !doubtful, "what is final is beyond doubt");
        }
        eq(p.closed, closed, "closed rounds");
        eq(p.unsettled, unsettled, "unsettled rounds");
        eq(rounds.checkpointOf(job, closed + 1), 0, "no checkpoint beyond the last");
    }

    function checkPay(bytes32 job, uint32 round, Progress memory p, bool orphaned) private view {
        for (uint16 s; s < 6; ++s) {
            (Claim memory c, ) = rounds.claimOf(job, round, s);
            bool settled = c.commitment != 0 && c.settled != ClaimStatus.Free;
            (bool exists, bool judged, , ) = court.outcomeOf(job, round, s);
            yes(!settled || !exists || judged, "INV-ROUND-7: its own case");
            yes(!settled || orphaned || p.finalRounds > round, "INV-ROUND-7: every checkpoint up to its own");
            yes(!orphaned || c.settled != ClaimStatus.Paid, "nothing is paid in an orphaned round");
        }
    }

    // ---------------------------------------------------------------- the way out

    /// Everybody is gone but one stranger, who calls what anyone may call. Nothing may stay locked or reserved.
    function drain() external {
        yes(msg.sender == creator, "at the end only");
        ending = true;
        for (uint256 j; j < jobs.length; ++j) {
            vm.prank(POSTER);
            (bool ok, ) = address(market).call(abi.encodeCall(market.cancel, (jobs[j])));
            yes(ok, "cancel");
        }
        for (uint32 i; i < tickets.ticketCount(); ++i) {
            Ticket memory t = tickets.ticketOf(i);
            if (t.exitAt != 0) continue;
            vm.prank(t.owner);
            tickets.exit(i);
        }
        for (uint256 i; i < 40; ++i) {
            pass(200);
            for (uint256 j; j < jobs.length; ++j) sweep(jobs[j]);
        }
        for (uint256 i; i < stepIds.length; ++i) {
            share("-", stepIds[i]);
            eq(ledger.potOf(stepIds[i]), 0, "INV-STEP-3");
        }
        for (uint32 i; i < tickets.ticketCount(); ++i) if (!tickets.ticketOf(i).released) tickets.release(i);
        for (uint256 j; j < jobs.length; ++j) {
            (JobStatus status, ) = market.statusOf(jobs[j]);
            yes(status == JobStatus.Closable || status == JobStatus.Closed, "every job comes to its end");
            if (status == JobStatus.Closable) market.close(jobs[j]);
            eq(ledger.potOf(jobs[j]), 0, "INV-JOB-2");
        }
        uint256 credits = ledger.creditOf(POSTER) + ledger.potOf(COURT_FUND);
        for (uint256 i; i < actors.length; ++i) {
            eq(vault.lockedOf(actors[i].owner), 0, "every lock ends");
            credits += ledger.creditOf(actors[i].payout);
        }
        eq(ledger.held(), credits, "everything is somebody's, or the court fund's");
        leave();
    }

    /// Whoever the token paid nothing is paid once it does.
    function leave() private {
        collect(POSTER);
        for (uint256 i; i < actors.length; ++i) {
            collect(actors[i].payout);
            isBlocked[actors[i].owner] = false;
            if (vault.balanceOf(actors[i].owner) == 0) continue;
            bytes memory data = abi.encodeCall(vault.withdraw, (0));
            yes(attempt("-", actors[i].owner, address(vault), data), "stake is withdrawn");
        }
        eq(vault.staked(), 0, "no stake is left");
        eq(ledger.held(), ledger.potOf(COURT_FUND), "no credit is left");
    }

    function collect(address account) private {
        isBlocked[account] = false;
        if (ledger.creditOf(account) == 0) return;
        bytes memory data = abi.encodeCall(ledger.withdraw, (account, 0));
        yes(attempt("-", STRANGER, address(ledger), data), "a credit is paid");
    }

    function sweep(bytes32 job) private {
        jobId = job;
        uint32 opened = rounds.progressOf(job).opened;
        for (uint256 i; i < caseIds.length; ++i) goOn(IPanels(court), caseIds[i]);
        for (uint256 i; i < stepIds.length; ++i) goOn(IPanels(checkpoints), stepIds[i]);
        for (uint32 r; r < opened; ++r) {
            if (statusOf(r) == RoundStatus.Settled) continue;
            attempt("-", STRANGER, address(rounds), abi.encodeCall(rounds.advance, (job, r)));
            attempt("-", STRANGER, address(rounds), abi.encodeCall(rounds.draw, (job, r)));
            for (uint16 s; s < 6; ++s) convene("-", r, s);
            settle("-", r);
        }
    }

    /// As far as it goes at this second.
    function goOn(IPanels panel, bytes32 id) private {
        bytes memory data = abi.encodeCall(panel.advance, (id));
        for (uint256 k; k < 12; ++k) {
            (Case memory c, ) = panel.caseOf(id);
            if (c.phase == CasePhase.Done || !attempt("-", STRANGER, address(panel), data)) return;
        }
    }
}
