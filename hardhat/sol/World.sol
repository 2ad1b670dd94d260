// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Deployment} from "./Deployment.sol";
import {Traces} from "./Traces.sol";
import {Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {
    Case,
    CasePhase,
    Claim,
    ClaimOpening,
    ClaimStatus,
    Finding,
    Outcome,
    Round,
    RoundStatus,
    RowOpening,
    SCOPE_ALL,
    Seat,
    SeatState,
    Terms,
    Ticket,
    TraceRow
} from "../contracts/types/Types.sol";

/// Owners with operators and stake, a poster with a job, and the moves they make.
abstract contract World is Deployment {
    struct Actor {
        address owner;
        address operator;
        address payout;
        uint256 key;
    }

    uint256 internal constant STAKE = 5_000 * TOKEN;
    uint256 internal constant TICKET = 40 * TOKEN; // of the preset: a seat of the usual job
    uint32 internal constant TICKETS = 10; // each owner's
    uint256 internal constant ENROLLED = TICKETS * TICKET; // what they lock
    bytes32 internal constant SALT = keccak256("auditor's salt");
    address internal constant POSTER = address(0xA11CE);

    Actor[] internal actors;
    bytes32 internal jobId;
    uint256 internal minted;

    // ---------------------------------------------------------------- people

    function mint(address to, uint256 amount) internal {
        token.mint(to, amount);
        minted += amount;
    }

    /// Another owner with one operator and stake, without a ticket.
    function addActor() internal returns (Actor memory a) {
        uint256 key = 0xB0B + actors.length;
        address owner = address(uint160(0x100000 + actors.length));
        a = Actor(owner, vm.addr(key), address(uint160(0x200000 + actors.length)), key);
        actors.push(a);
        stake(a.owner, STAKE);
        register(a, a.operator, key);
    }

    /// `count` owners, each with its tickets: owner i of them has the numbers from i * TICKETS on.
    function addActors(uint256 count) internal {
        for (uint256 i; i < count; ++i) enroll(addActor(), TICKETS);
    }

    function stake(address owner, uint256 amount) internal {
        mint(owner, amount);
        vm.startPrank(owner);
        token.approve(address(vault), amount);
        vault.deposit(owner, amount);
        vm.stopPrank();
    }

    function register(Actor memory a, address operator, uint256 key) internal {
        bytes memory signature = consent(a.owner, operator, a.payout, key, type(uint256).max);
        vm.prank(a.owner);
        registry.register(
            operator,
            a.payout,
            SCOPE_ALL,
            type(uint64).max,
            "http://peer",
            0,
            0,
            type(uint256).max,
            signature
        );
    }

    /// The operator's EIP-712 consent to an owner.
    function consent(
        address owner,
        address operator,
        address payout,
        uint256 key,
        uint256 deadline
    ) internal view returns (bytes memory) {
        bytes32 digest = registry.registrationDigest(owner, operator, payout, registry.nonceOf(operator), deadline);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// The same signature's other form, which the curve accepts and nobody else should.
    function highS(bytes memory signature) internal pure returns (bytes memory) {
        bytes32 r;
        bytes32 s;
        assembly {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
        }
        uint256 order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
        return abi.encodePacked(r, order - uint256(s), uint8(signature[64]) == 27 ? uint8(28) : uint8(27));
    }

    /// The last ticket's number.
    function enroll(Actor memory a, uint256 count) internal returns (uint32) {
        vm.prank(a.owner);
        return tickets.enroll(a.operator, count)[count - 1];
    }

    /// All of an owner's tickets begin to leave.
    function exitAll(Actor memory a) internal {
        uint32 count = tickets.ticketCount();
        vm.startPrank(a.owner);
        for (uint32 i; i < count; ++i) {
            Ticket memory t = tickets.ticketOf(i);
            if (t.owner == a.owner && t.exitAt == 0) tickets.exit(i);
        }
        vm.stopPrank();
    }

    /// A verdict cost the ticket a token: it fits no seat of the usual job any more.
    function shrink(uint32 ticket) internal {
        vm.startPrank(address(court));
        tickets.occupy(ticket, TOKEN);
        tickets.slash(ticket, TOKEN, keccak256("court fund"));
        vm.stopPrank();
    }

    function actorOf(address operator) internal view returns (Actor memory) {
        for (uint256 i; i < actors.length; ++i) if (actors[i].operator == operator) return actors[i];
        revert NotTrue("an actor with that operator");
    }

    // ---------------------------------------------------------------- jobs and rounds

    function post(Terms memory t, uint256 roundsFunded) internal returns (bytes32) {
        uint256 amount = reservation(t) * roundsFunded;
        mint(POSTER, amount);
        vm.startPrank(POSTER);
        token.approve(address(ledger), amount);
        jobId = market.post(t, bytes32(market.jobCount()), amount, "http://seed");
        vm.stopPrank();
        return jobId;
    }

    /// Worked out again, by the words of the specification.
    function reservation(Terms memory t) internal pure returns (uint256) {
        uint256 share = (uint256(t.shardsPerRound) * t.auditRateBps + 9_999) / 10_000;
        uint256 sampled = share + t.probationSlots;
        if (sampled > t.shardsPerRound) sampled = t.shardsPerRound;
        return uint256(t.shardsPerRound) * t.rewardPerShard + 3 * uint256(t.auditFee) * sampled;
    }

    function claim(uint256 actor, uint32 round, uint16 shard) internal {
        vm.prank(actors[actor].operator);
        rounds.claim(jobId, round, one(shard));
    }

    function commit(uint256 actor, uint32 round, uint16 shard) internal {
        ClaimOpening memory o = openingOf(round, shard);
        bytes32 base = baseOf(round);
        vm.prank(actors[actor].operator);
        rounds.commit(jobId, round, shard, base, o);
    }

    function attest(uint256 actor, uint32 round, uint256 bitmap, bytes32 next) internal {
        bytes32 base = baseOf(round);
        vm.prank(actors[actor].operator);
        rounds.attest(jobId, round, base, bitmap, next);
    }

    /// Open a round; the actor with the shard's number claims and commits each of the six.
    function fullRound() internal returns (uint32 round) {
        round = rounds.open(jobId);
        for (uint16 s; s < 6; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
    }

    /// Everybody attests to the same pair until the round closes.
    function close(uint32 round, uint256 bitmap) internal {
        bytes32 next = keccak256(abi.encode("checkpoint", round));
        for (uint256 i; i < actors.length; ++i) {
            if (statusOf(round) != RoundStatus.Sealed) return;
            (uint256 weight, bool attested) = rounds.weightOf(jobId, round, actors[i].operator);
            if (weight > 0 && !attested) attest(i, round, bitmap, next);
        }
    }

    function draw(uint32 round) internal {
        mine(2);
        rounds.draw(jobId, round);
    }

    /// A round that is closed and drawn, with all six shards accepted.
    function drawnRound() internal returns (uint32 round) {
        round = fullRound();
        close(round, 63);
        draw(round);
    }

    /// After the challenge window: the round's checkpoint is final if nobody doubts it.
    function finalise(uint32 round) internal {
        (Round memory r, ) = rounds.roundOf(jobId, round);
        uint256 ends = uint256(r.closedAt) + market.termsOf(jobId).windows.challenge + 1;
        if (clock() < ends) passTo(ends);
    }

    function baseOf(uint32 round) internal view returns (bytes32) {
        (Round memory r, ) = rounds.roundOf(jobId, round);
        return r.base;
    }

    function isOnProbation(uint256 actor) internal view returns (bool probation) {
        (probation, ) = court.standingOf(jobId, actors[actor].owner);
    }

    function isBarred(uint256 actor) internal view returns (bool barred) {
        (, barred) = court.standingOf(jobId, actors[actor].owner);
    }

    function statusOf(uint32 round) internal view returns (RoundStatus status) {
        (, status) = rounds.roundOf(jobId, round);
    }

    function claimStatus(uint32 round, uint16 shard) internal view returns (ClaimStatus status) {
        (, status) = rounds.claimOf(jobId, round, shard);
    }

    // ---------------------------------------------------------------- doubts

    /// A challenge of what the chain holds now.
    function challengeOf(uint32 round, uint16 shard) internal view returns (bytes memory) {
        (Claim memory c, ) = rounds.claimOf(jobId, round, shard);
        return abi.encodeCall(court.challenge, (jobId, round, shard, c.commitment));
    }

    function stepChallengeOf(uint32 round) internal view returns (bytes memory) {
        (Round memory r, ) = rounds.roundOf(jobId, round);
        return abi.encodeCall(checkpoints.challenge, (jobId, round, r.base, r.acceptedMap, r.next));
    }

    function doubt(uint256 actor, uint32 round) internal returns (bytes32) {
        (Round memory r, ) = rounds.roundOf(jobId, round);
        vm.prank(actors[actor].operator);
        return checkpoints.challenge(jobId, round, r.base, r.acceptedMap, r.next);
    }

    // ---------------------------------------------------------------- work and its traces

    function rowsOf(uint32 round, uint16 shard, uint64 deviation) internal view returns (TraceRow[] memory) {
        uint256 steps = market.termsOf(jobId).innerSteps;
        return Traces.rows(keccak256(abi.encode(jobId, round, shard)), steps, deviation);
    }

    function openingOf(uint32 round, uint16 shard) internal view returns (ClaimOpening memory) {
        bytes32 root = Traces.root(Traces.leaves(rowsOf(round, shard, 0)));
        return ClaimOpening(keccak256(abi.encode("payload", round, shard)), root, keccak256("state"));
    }

    // ---------------------------------------------------------------- the court

    function convene(uint32 round, uint16 shard) internal returns (bytes32 caseId) {
        rounds.drawOf(jobId, round);
        court.convene(jobId, round, one(shard));
        return court.caseIdOf(jobId, round, shard);
    }

    function seatsOf(bytes32 caseId) internal view returns (Seat[] memory seats) {
        (, seats) = court.caseOf(caseId);
    }

    function caseOf(bytes32 caseId) internal view returns (Case memory c) {
        (c, ) = court.caseOf(caseId);
    }

    function outcomeOf(bytes32 caseId) internal view returns (Outcome) {
        Case memory c = caseOf(caseId);
        yes(c.phase == CasePhase.Done, "the case is done");
        return c.outcome;
    }

    function auditRoot(bytes32 caseId, uint16 seat, uint64 deviation) internal view returns (bytes32) {
        (Case memory c, Seat[] memory seats) = court.caseOf(caseId);
        TraceRow[] memory own = rowsOf(c.round, c.shard, deviation);
        return Traces.root(Traces.auditLeaves(own, caseId, seat, seats[seat].operator, SALT));
    }

    function commitAudit(bytes32 caseId, uint16 seat) internal {
        bytes32 root = auditRoot(caseId, seat, 0);
        address operator = seatsOf(caseId)[seat].operator;
        vm.prank(operator);
        court.commitAudit(caseId, seat, root);
    }

    /// All seats that wait commit.
    function commitAll(bytes32 caseId) internal {
        Seat[] memory seats = seatsOf(caseId);
        for (uint16 i; i < seats.length; ++i) if (seats[i].state == SeatState.Seated) commitAudit(caseId, i);
    }

    /// What a seat shows for a finding: its rows raised by `deviation`, and the operator's for a Match.
    function revealOf(
        bytes32 caseId,
        uint16 seat,
        Finding finding,
        uint64 deviation
    ) internal view returns (Reveal memory r) {
        (Case memory c, Seat[] memory seats) = court.caseOf(caseId);
        r.finding = finding;
        r.salt = SALT;
        if (finding != Finding.Match && finding != Finding.Reject && finding != Finding.Fraud) return r;
        uint32[3] memory steps = court.stepsOf(caseId);
        TraceRow[] memory own = rowsOf(c.round, c.shard, deviation);
        r.own = Traces.open(own, Traces.auditLeaves(own, caseId, seat, seats[seat].operator, SALT), steps);
        if (finding != Finding.Match) return r;
        TraceRow[] memory theirs = rowsOf(c.round, c.shard, 0);
        r.claim = openingOf(c.round, c.shard);
        r.theirs = Traces.open(theirs, Traces.leaves(theirs), steps);
    }

    function reveal(bytes32 caseId, uint16 seat, Finding finding) internal {
        Reveal memory r = revealOf(caseId, seat, finding, 0);
        address operator = seatsOf(caseId)[seat].operator;
        vm.prank(operator);
        court.reveal(caseId, seat, r);
    }

    /// Draw the seats that are empty, once the pinned block is there.
    function seatAll(bytes32 caseId) internal {
        mine(2);
        if (caseOf(caseId).phase == CasePhase.Seating) court.advance(caseId);
    }

    /// The waiting seats of a level commit and reveal, in order, what `findings` says.
    function judge(bytes32 caseId, Finding[] memory findings) internal {
        seatAll(caseId);
        commitAll(caseId);
        mine(2);
        Seat[] memory seats = seatsOf(caseId);
        uint256 next;
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state == SeatState.Committed) reveal(caseId, i, findings[next++]);
        }
    }

    /// Six owners pass an audit each and leave probation.
    function graduate() internal {
        uint32 round = drawnRound();
        for (uint16 s; s < 6; ++s) judge(convene(round, s), say(Finding.Match));
        finalise(round);
        rounds.settle(jobId, round, range(0, 6));
        eq(uint8(statusOf(round)), uint8(RoundStatus.Settled), "settled");
        for (uint256 i; i < 6; ++i) yes(!isOnProbation(i), "passed");
    }

    function say(Finding a) internal pure returns (Finding[] memory f) {
        f = new Finding[](1);
        f[0] = a;
    }

    function say(Finding a, Finding b) internal pure returns (Finding[] memory f) {
        f = new Finding[](2);
        (f[0], f[1]) = (a, b);
    }

    /// `count` times the same.
    function say(uint256 count, Finding a) internal pure returns (Finding[] memory f) {
        f = new Finding[](count);
        for (uint256 i; i < count; ++i) f[i] = a;
    }

    /// First `first` times `a`, then `b` until there are `count`.
    function say(uint256 count, uint256 first, Finding a, Finding b) internal pure returns (Finding[] memory f) {
        f = new Finding[](count);
        for (uint256 i; i < count; ++i) f[i] = i < first ? a : b;
    }

    // ---------------------------------------------------------------- money

    /// INV-MONEY: minted = wallets + stake + pots and credits + burnt, and the two vaults own what they owe.
    function checkConservation() internal view {
        eq(token.totalSupply(), minted, "supply");
        uint256 balances;
        for (uint256 i; i < actors.length; ++i) {
            uint256 balance = vault.balanceOf(actors[i].owner);
            yes(vault.lockedOf(actors[i].owner) <= balance, "INV-STAKE-1");
            balances += balance;
        }
        eq(vault.staked(), balances, "INV-STAKE-2");
        eq(token.balanceOf(address(vault)), balances, "INV-STAKE-2");
        eq(token.balanceOf(address(ledger)), ledger.held(), "INV-LEDGER-2");
    }

    /// Wei of all tickets that lie behind open seats.
    function ticketsUsed() internal view returns (uint256 used) {
        uint32 count = tickets.ticketCount();
        for (uint32 i; i < count; ++i) used += tickets.ticketOf(i).used;
    }

    function credit(uint256 actor) internal view returns (uint256) {
        return ledger.creditOf(actors[actor].payout);
    }

    function pot(uint32 round) internal view returns (uint256) {
        return ledger.potOf(rounds.potOf(jobId, round));
    }
}
