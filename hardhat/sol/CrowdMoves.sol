// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {CrowdHooks, CrowdToken} from "./CrowdHooks.sol";
import {Claim, Preset, Round, RoundStatus, Terms, Ticket} from "../contracts/types/Types.sol";

/// Who is in the crowd, and what trainers, owners, a poster and a stranger do. What the contracts refuse changes nothing.
abstract contract CrowdMoves is CrowdHooks {
    address internal constant STRANGER = address(0x5757);
    uint256 private constant TRAINERS = 8;
    uint256 private constant SECOND_HANDS = 3; // of the first owners
    uint256 private constant AUDITORS = 7; // they never train: a doubted checkpoint needs a panel that did not attest to it

    bytes32[] public jobs;
    address[] internal hands; // operators that train
    address internal creator = msg.sender;

    constructor() {
        deploy(address(new CrowdToken()), preset());
        for (uint256 i; i < TRAINERS; ++i) {
            addActor();
            // tickets of one to three seats: some are busy when they are needed
            enroll(actors[i], 1 + (i % 3));
            hands.push(actors[i].operator);
        }
        for (uint256 i; i < SECOND_HANDS; ++i) {
            uint256 key = 0xF00D + i;
            register(actors[i], vm.addr(key), key);
            hands.push(vm.addr(key));
        }
        for (uint256 i; i < AUDITORS; ++i) enroll(addActor(), 3);
        jobs.push(post(terms(), 2));
        graduate(); // six owners leave probation: their claims are sampled and challenged
        jobs.push(post(hard(), 6));
    }

    /// An appeal panel that a crowd of fifteen can fill.
    function preset() internal view override returns (Preset memory p) {
        p = super.preset();
        (p.appealPanel, p.appealNeeded) = (7, 5);
    }

    /// An audit rate below one leaves claims to challenge; few slots make probation matter.
    function hard() private pure returns (Terms memory t) {
        t = terms();
        t.rounds = 9;
        t.auditRateBps = 5_000;
        t.probationSlots = 3;
        t.minShards = 2;
    }

    /// Draw and settle what a round needs.
    function finish(uint32 round) internal virtual;

    /// Doubt the checkpoint that a round ended in.
    function doubtStep(uint32 round) internal virtual;

    // ---------------------------------------------------------------- who

    function anyone() internal returns (Actor memory) {
        return actors[roll(actors.length)];
    }

    function anyHand() internal returns (address) {
        return hands[roll(hands.length)];
    }

    /// Somebody who never trains.
    function anAuditor() internal returns (address) {
        return actors[TRAINERS + roll(AUDITORS)].operator;
    }

    function lastRound() internal view returns (uint32) {
        uint32 opened = rounds.progressOf(jobId).opened;
        return opened == 0 ? 0 : opened - 1;
    }

    function anyRound() internal returns (uint32) {
        uint32 last = lastRound();
        return roll(2) == 0 ? last : uint32(roll(uint256(last) + 1));
    }

    // ---------------------------------------------------------------- training

    /// What the round needs next, by anyone or by the wrong one.
    function work() internal {
        uint32 round = lastRound();
        (Round memory r, RoundStatus status) = rounds.roundOf(jobId, round);
        if (status == RoundStatus.Open) {
            for (uint256 i = 8 + roll(24); i > 0; --i) train(round);
            return;
        }
        if (status == RoundStatus.Sealed || status == RoundStatus.Tallied) return vote(round, r);
        if (status == RoundStatus.Closed && roll(2) == 0) finish(round);
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
            address who = anyHand();
            uint16[] memory shards = range(shard, shard + uint16(1 + roll(5) / 4));
            attempt("claim", who, address(rounds), abi.encodeCall(rounds.claim, (jobId, round, shards)));
        } else {
            address who = roll(8) == 0 ? anyHand() : c.operator;
            bytes32 base = roll(20) == 0 ? bytes32(dice) : baseOf(round);
            bytes memory data = abi.encodeCall(rounds.commit, (jobId, round, shard, base, openingOf(round, shard)));
            if (attempt("commit", who, address(rounds), data)) yes(base == baseOf(round), "the round's own base");
        }
        if (roll(60) == 0) later(roll(130));
    }

    /// The checkpoint that follows from payloads, and others for `lie` above zero.
    function stepOf(uint32 round, uint256 map, uint256 lie) internal view returns (bytes32) {
        return keccak256(abi.encode("step", jobId, round, map, lie));
    }

    /// Most speak, most for the same pair; now and then that is a lie.
    function vote(uint32 round, Round memory r) private {
        uint256 map = r.talliedAt == 0 ? r.committedMap : r.acceptedMap;
        if (roll(6) == 0) map &= dice;
        uint256 lie = roll(4) == 0 ? 1 + roll(2) : 0;
        for (uint256 i; i < hands.length; ++i) {
            if (roll(8) == 0) continue;
            bytes32 next = stepOf(round, map, roll(16) == 0 ? 1 : lie);
            bytes memory data = abi.encodeCall(rounds.attest, (jobId, round, r.base, map, next));
            attempt("attest", hands[i], address(rounds), data);
        }
        if (statusOf(round) != RoundStatus.Closed) return later(roll(3) * 31);
        if (roll(5) < (lie == 0 ? 1 : 4)) doubtStep(round);
    }

    // ---------------------------------------------------------------- tickets, money, orders

    function people() internal {
        uint32 ticket = uint32(roll(tickets.ticketCount()));
        Ticket memory t = tickets.ticketOf(ticket);
        uint256 kind = roll(4);
        if (kind == 0) attempt("exit", t.owner, address(tickets), abi.encodeCall(tickets.exit, (ticket)));
        if (kind == 1) {
            for (ticket = 0; ticket < tickets.ticketCount(); ++ticket) {
                attempt("release", STRANGER, address(tickets), abi.encodeCall(tickets.release, (ticket)));
            }
        }
        if (kind > 1) {
            address operator = roll(3) == 0 ? anyHand() : anyone().operator;
            bytes memory data = abi.encodeCall(tickets.enroll, (operator, roll(4)));
            attempt("enroll", registry.ownerOf(operator), address(tickets), data);
        }
    }

    function money() internal {
        Actor memory a = anyone();
        uint256 amount = roll(3) == 0 ? 0 : roll(50 * TOKEN);
        uint256 kind = roll(5);
        if (kind == 4) isBlocked[roll(2) == 0 ? a.owner : a.payout] = roll(4) == 0;
        if (kind == 0) attempt("withdraw", a.owner, address(vault), abi.encodeCall(vault.withdraw, (amount)));
        if (kind == 1) {
            address account = roll(4) == 0 ? POSTER : a.payout;
            attempt("collect", STRANGER, address(ledger), abi.encodeCall(ledger.withdraw, (account, amount)));
        }
        if (kind == 2) {
            mint(a.owner, amount + 1);
            vm.prank(a.owner);
            token.approve(address(vault), amount + 1);
            attempt("deposit", a.owner, address(vault), abi.encodeCall(vault.deposit, (a.owner, amount + 1)));
        }
        if (kind == 3) {
            mint(STRANGER, amount + 1);
            vm.prank(STRANGER);
            token.approve(address(ledger), amount + 1);
            attempt("fund", STRANGER, address(market), abi.encodeCall(market.fund, (jobId, amount + 1)));
        }
    }

    function steer() internal {
        uint256 kind = roll(11);
        address who = roll(4) == 0 ? STRANGER : POSTER;
        if (kind < 2) attempt("refund", who, address(market), abi.encodeCall(market.refund, (jobId, roll(9 * TOKEN))));
        if (kind == 2) attempt("pause", who, address(market), abi.encodeCall(market.pause, (jobId)));
        if (kind > 2 && kind < 6) attempt("resume", who, address(market), abi.encodeCall(market.resume, (jobId)));
        if (kind == 6 && roll(4) == 0) attempt("cancel", who, address(market), abi.encodeCall(market.cancel, (jobId)));
        if (kind > 6 && kind < 10) attempt("close", STRANGER, address(market), abi.encodeCall(market.close, (jobId)));
        if (jobs.length < 3 && roll(3) == 0 && !isWithin()) jobs.push(post(hard(), 4));
        if (kind < 10 && rounds.progressOf(jobId).opened > 0) return;
        attempt("calibrate", who, address(market), abi.encodeCall(market.calibrate, (jobId, bytes32(dice))));
    }
}
