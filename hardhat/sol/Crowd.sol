// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {
    Case,
    CasePhase,
    Claim,
    ClaimOpening,
    Finding,
    JobStatus,
    Preset,
    Round,
    RoundStatus,
    Seat,
    SeatState,
    Terms,
    Ticket,
    TraceRow
} from "../contracts/types/Types.sol";

/// Owners, operators, auditors, a poster and a stranger who do one thing after another, in any order, for or against
/// the others. What the contracts refuse changes nothing; what they let through must keep every invariant.
contract Crowd is World {
    address private constant STRANGER = address(0x5757);

    bytes32[] public jobs;
    bytes32[] private caseIds;
    mapping(string move => uint256) public done;
    uint256 private dice;
    address private creator = msg.sender;

    constructor() {
        deploy();
        for (uint256 i; i < 8; ++i) {
            addActor();
            // tickets of one to three seats: some are busy when they are needed
            enroll(actors[i], (1 + (i % 3)) * 40 * TOKEN);
        }
        jobs.push(post(terms(), 2));
        graduate(); // six owners leave probation: their claims are sampled and challenged
        for (uint16 s; s < 6; ++s) caseIds.push(court.caseIdOf(jobId, 0, s));
        jobs.push(post(hard(), 3));
    }

    /// An audit rate below one leaves claims to challenge; few slots make probation matter.
    function hard() private pure returns (Terms memory t) {
        t = terms();
        t.rounds = 4;
        t.auditRateBps = 5_000;
        t.probationSlots = 3;
        t.minShards = 2;
    }

    // ---------------------------------------------------------------- dice

    function roll(uint256 sides) private returns (uint256) {
        dice = uint256(keccak256(abi.encode(dice)));
        return dice % sides;
    }

    function anyone() private returns (Actor memory) {
        return actors[roll(actors.length)];
    }

    function attempt(string memory move, address who, address target, bytes memory data) private {
        vm.prank(who);
        (bool ok, ) = target.call(data);
        if (ok) ++done[move];
    }

    function lastRound() private view returns (uint32) {
        uint32 opened = rounds.progressOf(jobId).opened;
        return opened == 0 ? 0 : opened - 1;
    }

    function anyRound() private returns (uint32) {
        return uint32(roll(uint256(lastRound()) + 1));
    }

    // ---------------------------------------------------------------- moves

    /// One move of somebody. `seed` decides who and what.
    function turn(uint256 seed) external {
        dice = seed;
        jobId = jobs[roll(jobs.length)];
        uint256 kind = roll(16);
        if (kind < 5) work();
        else if (kind < 11) judgeSome();
        else if (kind == 11) people();
        else if (kind == 12) money();
        else if (kind == 13) steer();
        else if (kind == 14) doubt(anyRound());
        else later(1 + roll(roll(3) == 0 ? 200 : 20));
    }

    function later(uint256 time) private {
        pass(time);
    }

    /// What the round needs next, by anyone or by the wrong one.
    function work() private {
        uint32 round = lastRound();
        (Round memory r, RoundStatus status) = rounds.roundOf(jobId, round);
        if (status == RoundStatus.Open) {
            for (uint256 i = 4 + roll(16); i > 0; --i) train(round);
            return;
        }
        if (status == RoundStatus.Sealed || status == RoundStatus.Tallied) return vote(round, r);
        if (status == RoundStatus.Due) {
            attempt("advance round", STRANGER, address(rounds), abi.encodeCall(rounds.advance, (jobId, round)));
        } else if (roll(2) == 0) {
            attempt("open", STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId)));
        } else {
            finish(anyRound());
        }
    }

    function train(uint32 round) private {
        uint16 shard = uint16(roll(7));
        (Claim memory c, ) = rounds.claimOf(jobId, round, shard);
        if (c.operator == address(0) || roll(8) == 0) {
            address who = anyone().operator;
            uint16[] memory shards = range(shard, shard + uint16(1 + roll(5) / 4));
            attempt("claim", who, address(rounds), abi.encodeCall(rounds.claim, (jobId, round, shards)));
        } else {
            address who = roll(8) == 0 ? anyone().operator : c.operator;
            bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, shard, openingOf(round, shard)));
            attempt("commit", who, address(rounds), data);
        }
        if (roll(40) == 0) later(roll(130));
    }

    function vote(uint32 round, Round memory r) private {
        uint256 map = r.talliedAt == 0 ? r.committedMap : r.acceptedMap;
        if (roll(6) == 0) map &= dice;
        bytes32 next = keccak256(abi.encode(round, roll(8) == 0 ? roll(3) : 0));
        for (uint256 i; i < actors.length; ++i) {
            if (roll(5) == 0) continue;
            bytes memory data = abi.encodeCall(rounds.attest, (jobId, round, map, next));
            attempt("attest", actors[i].operator, address(rounds), data);
        }
        if (roll(2) == 0) later(61);
    }

    function finish(uint32 round) private {
        mine(1 + roll(3));
        attempt("draw", STRANGER, address(rounds), abi.encodeCall(rounds.draw, (jobId, round)));
        if (roll(4) == 0) doubt(round);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(0, 6)));
        attempt("settle", STRANGER, address(rounds), data);
        uint16 shard = uint16(roll(6));
        bytes32 id = court.caseIdOf(jobId, round, shard);
        bool known = caseOf(id).phase != CasePhase.None;
        attempt("convene", STRANGER, address(court), abi.encodeCall(court.convene, (jobId, round, one(shard))));
        if (!known && caseOf(id).phase != CasePhase.None) caseIds.push(id);
    }

    function doubt(uint32 round) private {
        for (uint16 shard; shard < 6; ++shard) {
            bytes memory data = abi.encodeCall(court.challenge, (jobId, round, shard));
            bytes32 id = court.caseIdOf(jobId, round, shard);
            bool known = caseOf(id).phase != CasePhase.None;
            attempt("challenge", anyone().operator, address(court), data);
            if (!known && caseOf(id).phase != CasePhase.None) caseIds.push(id);
        }
    }

    /// All seats of one case do what they can, each honest, lazy, silent or lying.
    function judgeSome() private {
        if (caseIds.length == 0 || roll(4) == 0) return finish(anyRound());
        bytes32 id = caseIds[roll(caseIds.length)];
        for (uint256 i; i < 8 && caseOf(id).phase == CasePhase.Done; ++i) id = caseIds[roll(caseIds.length)];
        bytes32 job = jobId;
        for (uint256 i = roll(4); i > 0; --i) push(id);
        jobId = job;
    }

    function push(bytes32 id) private {
        (Case memory c, Seat[] memory seats) = court.caseOf(id);
        jobId = c.jobId;
        mine(2);
        if (c.phase == CasePhase.Seating || roll(6) == 0) {
            if (roll(3) == 0) later(181);
            attempt("advance case", STRANGER, address(court), abi.encodeCall(court.advance, (id)));
        }
        for (uint16 i; i < seats.length; ++i) {
            if (roll(7) == 0) continue;
            if (c.phase == CasePhase.Committing && seats[i].state == SeatState.Seated) {
                bytes memory data = abi.encodeCall(court.commitAudit, (id, i, auditRoot(id, i, 0)));
                attempt("commit audit", seats[i].operator, address(court), data);
            } else if (c.phase == CasePhase.Revealing && seats[i].state == SeatState.Committed) {
                if (roll(4) == 0) demand(id, c, seats[i].operator);
                speak(id, i, seats[i].operator);
            }
        }
        if (roll(8) == 0) later(roll(130));
    }

    function speak(bytes32 id, uint16 seat, address operator) private {
        if (caseOf(id).phase != CasePhase.Revealing) return;
        Finding f = Finding(1 + roll(6));
        // most cases have a truth that most seats see
        if (roll(5) > 0 && uint256(id) % 3 > 0) f = uint256(id) % 3 == 1 ? Finding.Match : Finding.Fraud;
        try this.showRows(id, seat, f) returns (Reveal memory r) {
            attempt("reveal", operator, address(court), abi.encodeCall(court.reveal, (id, seat, r)));
        } catch {
            attempt("advance case", STRANGER, address(court), abi.encodeCall(court.advance, (id)));
        }
    }

    function showRows(bytes32 id, uint16 seat, Finding f) external view returns (Reveal memory) {
        return revealOf(id, seat, f, 0);
    }

    function demand(bytes32 id, Case memory c, address operator) private {
        attempt("demand", operator, address(court), abi.encodeCall(court.demandTrace, (id)));
        (ClaimOpening memory o, TraceRow[] memory list) = (openingOf(c.round, c.shard), rowsOf(c.round, c.shard, 0));
        if (roll(2) == 0)
            attempt("open trace", STRANGER, address(court), abi.encodeCall(court.openTrace, (id, o, list)));
    }

    function people() private {
        uint32 ticket = uint32(roll(court.ticketCount()));
        Ticket memory t = court.ticketOf(ticket);
        uint256 kind = roll(4);
        if (kind == 0) attempt("exit", t.owner, address(court), abi.encodeCall(court.exit, (ticket)));
        if (kind == 1) {
            for (ticket = 0; ticket < court.ticketCount(); ++ticket) {
                attempt("release", STRANGER, address(court), abi.encodeCall(court.release, (ticket)));
            }
        }
        if (kind > 1) {
            Actor memory a = anyone();
            bytes memory data = abi.encodeCall(court.enroll, (a.operator, (1 + roll(90)) * TOKEN));
            attempt("enroll", a.owner, address(court), data);
        }
    }

    function money() private {
        Actor memory a = anyone();
        uint256 amount = roll(3) == 0 ? 0 : roll(50 * TOKEN);
        uint256 kind = roll(4);
        if (kind == 0) attempt("withdraw", a.owner, address(vault), abi.encodeCall(vault.withdraw, (amount)));
        if (kind == 1) {
            address account = roll(4) == 0 ? POSTER : a.payout;
            attempt("collect", STRANGER, address(ledger), abi.encodeCall(ledger.withdraw, (account, amount)));
        }
        if (kind == 2) stake(a.owner, amount + 1);
        if (kind == 3) {
            mint(STRANGER, amount + 1);
            vm.prank(STRANGER);
            token.approve(address(ledger), amount + 1);
            attempt("fund", STRANGER, address(market), abi.encodeCall(market.fund, (jobId, amount + 1)));
        }
    }

    function steer() private {
        uint256 kind = roll(10);
        address who = roll(4) == 0 ? STRANGER : POSTER;
        if (kind < 2) attempt("refund", who, address(market), abi.encodeCall(market.refund, (jobId, roll(9 * TOKEN))));
        if (kind == 2) attempt("pause", who, address(market), abi.encodeCall(market.pause, (jobId)));
        if (kind > 2 && kind < 6) attempt("resume", who, address(market), abi.encodeCall(market.resume, (jobId)));
        if (kind == 6 && roll(4) == 0) attempt("cancel", who, address(market), abi.encodeCall(market.cancel, (jobId)));
        if (kind > 6) attempt("close", STRANGER, address(market), abi.encodeCall(market.close, (jobId)));
        if (jobs.length < 3 && roll(3) == 0) jobs.push(post(hard(), 2));
    }

    // ---------------------------------------------------------------- what must hold

    /// deposits = wallets + stake + pots + credits + burnt, each part counted by itself.
    function checkMoney() external view {
        checkConservation();
        uint256 pots = ledger.potOf(court.COURT_FUND());
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

    /// Every locked wei lies under a lock that somebody can still free.
    function checkLocks() external view {
        uint256 locked;
        uint256 used;
        uint256 live;
        uint32 count = court.ticketCount();
        for (uint32 i; i < count; ++i) {
            Ticket memory t = court.ticketOf(i);
            yes(t.used <= t.amount, "INV-TICKET-1");
            (, uint256 amount) = vault.lockOf(address(court), keccak256(abi.encode("ticket", i)));
            eq(amount, t.released ? 0 : t.amount, "a ticket's lock");
            if (t.released) eq(t.used, 0, "a released ticket has no seat");
            locked += amount;
            used += t.used;
        }
        for (uint256 i; i < caseIds.length; ++i) {
            (Case memory c, Seat[] memory seats) = court.caseOf(caseIds[i]);
            (, uint256 bond) = vault.lockOf(address(court), keccak256(abi.encode("challenge", caseIds[i])));
            if (c.phase == CasePhase.Done) eq(bond, 0, "a challenge's bond is freed");
            locked += bond;
            for (uint256 s; s < seats.length; ++s) {
                used -= seats[s].locked;
                bool open =
                    c.phase != CasePhase.Done && seats[s].state > SeatState.Empty && seats[s].state < SeatState.Vacant;
                if (!open) eq(seats[s].locked, 0, "INV-CASE-3");
                for (uint256 o; o < s; ++o) {
                    yes(seats[s].owner == address(0) || seats[s].owner != seats[o].owner, "INV-CASE-1");
                }
            }
        }
        eq(used, 0, "tickets are used by open seats only");
        for (uint256 j; j < jobs.length; ++j) locked += claimLocks(jobs[j]);
        for (uint256 i; i < actors.length; ++i) {
            locked -= vault.lockedOf(actors[i].owner);
            for (uint32 t; t < count; ++t) {
                Ticket memory k = court.ticketOf(t);
                if (k.owner == actors[i].owner && k.exitAt == 0) {
                    ++live;
                    break;
                }
            }
        }
        eq(locked, 0, "INV-STAKE-1");
        eq(court.liveOwners(), live, "INV-TICKET-2");
    }

    function claimLocks(bytes32 job) private view returns (uint256 locked) {
        uint32 opened = rounds.progressOf(job).opened;
        uint32 unsettled;
        for (uint32 r; r < opened; ++r) {
            (, RoundStatus status) = rounds.roundOf(job, r);
            if (status != RoundStatus.Settled) ++unsettled;
            else eq(ledger.potOf(rounds.potOf(job, r)), 0, "INV-ROUND-5");
            for (uint16 s; s < 6; ++s) {
                bytes32 id = keccak256(abi.encode("claim", job, r, s));
                (address owner, uint256 amount) = vault.lockOf(address(rounds), id);
                if (status == RoundStatus.Settled) yes(owner == address(0), "a settled claim locks nothing");
                locked += amount;
            }
        }
        eq(rounds.progressOf(job).unsettled, unsettled, "unsettled rounds");
    }

    // ---------------------------------------------------------------- the way out

    /// Everybody is gone but one stranger, who calls what anyone may call. Nothing may stay locked or reserved.
    function drain() external {
        yes(msg.sender == creator, "at the end only");
        for (uint256 j; j < jobs.length; ++j) {
            vm.prank(POSTER);
            (bool ok, ) = address(market).call(abi.encodeCall(market.cancel, (jobs[j])));
            yes(ok, "cancel");
        }
        for (uint32 i; i < court.ticketCount(); ++i) {
            Ticket memory t = court.ticketOf(i);
            if (t.exitAt != 0) continue;
            vm.prank(t.owner);
            court.exit(i);
        }
        for (uint256 i; i < 40; ++i) {
            pass(200);
            for (uint256 j; j < jobs.length; ++j) sweep(jobs[j]);
        }
        for (uint32 i; i < court.ticketCount(); ++i) {
            if (!court.ticketOf(i).released) court.release(i);
        }
        for (uint256 j; j < jobs.length; ++j) {
            (JobStatus status, ) = market.statusOf(jobs[j]);
            yes(status == JobStatus.Closable || status == JobStatus.Closed, "every job comes to its end");
            if (status == JobStatus.Closable) market.close(jobs[j]);
            eq(ledger.potOf(jobs[j]), 0, "INV-JOB-2");
        }
        uint256 credits = ledger.creditOf(POSTER) + ledger.potOf(court.COURT_FUND());
        for (uint256 i; i < actors.length; ++i) {
            eq(vault.lockedOf(actors[i].owner), 0, "every lock ends");
            credits += ledger.creditOf(actors[i].payout);
        }
        eq(ledger.held(), credits, "everything is somebody's, or the court fund's");
    }

    function sweep(bytes32 job) private {
        jobId = job;
        uint32 opened = rounds.progressOf(job).opened;
        for (uint32 r; r < opened; ++r) {
            if (statusOf(r) == RoundStatus.Settled) continue;
            attempt("-", STRANGER, address(rounds), abi.encodeCall(rounds.advance, (job, r)));
            attempt("-", STRANGER, address(rounds), abi.encodeCall(rounds.draw, (job, r)));
            for (uint16 s; s < 6; ++s) {
                attempt("-", STRANGER, address(court), abi.encodeCall(court.convene, (job, r, one(s))));
                bytes memory data = abi.encodeCall(court.advance, (court.caseIdOf(job, r, s)));
                for (uint256 k; k < 12; ++k) attempt("-", STRANGER, address(court), data);
            }
            attempt("-", STRANGER, address(rounds), abi.encodeCall(rounds.settle, (job, r, range(0, 6))));
        }
    }
}
