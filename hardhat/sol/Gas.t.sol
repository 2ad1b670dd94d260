// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {Case, CasePhase, Finding, Outcome, RoundStatus, Seat, Terms} from "../contracts/types/Types.sol";

/// The part of the court that says where its checker is.
interface Checked {
    function checker() external view returns (address);
}

/// What every external call costs in a typical round of six shards: one traced claim has 64 steps, one claim is
/// fraudulent, one is challenged, and the checkpoint is doubted. `docs/contracts/gas.md` is written from this by tests/contract/gas_table.py.
contract GasTest is Doubts {
    uint256 private constant PEOPLE = 13; // five attest to the checkpoint, one doubts it, seven can judge it
    uint256 private constant DEPLOYED_MOST = 24_576; // EIP-170
    address private constant CONSOLE = address(0x000000000000000000636F6e736F6c652e6c6f67);

    function setUp() public {
        deploy();
    }

    function test_every_contract_fits_the_code_size_limit() public view {
        fits("StakeVault", address(vault));
        fits("RewardLedger", address(ledger));
        fits("OperatorRegistry", address(registry));
        fits("JobMarket", address(market));
        fits("RoundBook", address(rounds));
        fits("TicketBook", address(tickets));
        fits("AuditCourt", address(court));
        fits("TraceChecker", address(Checked(address(court)).checker()));
        fits("CheckpointCourt", address(checkpoints));
    }

    function fits(string memory name, address at) private view {
        print(string.concat("size|", name, "|"), at.code.length);
        yes(at.code.length <= DEPLOYED_MOST, "EIP-170");
    }

    function print(string memory line, uint256 value) private view {
        (bool ok, ) = CONSOLE.staticcall(abi.encodeWithSignature("log(string,uint256)", line, value));
        yes(ok, "printed");
    }

    /// Make a call as a transaction of `who` and print what its receipt would say.
    function pay(string memory call, string memory when, address who, address target, bytes memory data) private {
        vm.prank(who);
        (bool ok, bytes memory answer) = target.call(data);
        uint256 gas = vm.lastCallGas().gasTotalUsed;
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        print(string.concat("gas|", call, "|", when, "|"), gas);
    }

    /// What calls cost when `count` owners are registered and enrolled.
    function costs(uint256 count) private returns (uint256 claimed, uint256 closed, uint256 convened) {
        deploy();
        delete actors;
        addActors(count);
        post(terms(), 1);
        uint32 round = rounds.open(jobId);
        uint256 before = gasleft();
        claim(0, round, 0);
        claimed = before - gasleft();
        commit(0, round, 0);
        for (uint16 s = 1; s < 6; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        bytes32 next = keccak256("next");
        for (uint256 i; i < 4; ++i) attest(i, round, 63, next);
        before = gasleft();
        attest(4, round, 63, next);
        closed = before - gasleft();
        draw(round);
        before = gasleft();
        court.convene(jobId, round, one(0));
        convened = before - gasleft();
    }

    function test_a_call_costs_the_same_however_many_take_part() public {
        (uint256 claimed, uint256 closed, uint256 convened) = costs(8);
        (uint256 claimed2, uint256 closed2, uint256 convened2) = costs(100);
        yes(claimed2 < claimed + claimed / 20, "claim");
        yes(closed2 < closed + closed / 20, "close");
        yes(convened2 < 2 * convened, "a draw is by chance, and looks at 64 tickets a call");
    }

    function typical() private pure returns (Terms memory t) {
        t = terms();
        t.innerSteps = 64;
        t.auditRateBps = 2_000;
        t.probationSlots = 6;
    }

    /// Each call is a transaction of its own: storage is cold, and refunds count.
    /// forge-config: default.isolate = true
    function test_a_typical_round_call_by_call() public {
        people();
        graduate6();
        uint32 round = trainRound();
        uint16[] memory sampled = drawRound(round);
        judgeMatch(round, sampled[0]);
        judgeFraud(round, sampled[1]);
        doubtOne(round);
        doubtCheckpoint(round);
        settleAll(round);
        leave();
    }

    function people() private {
        for (uint256 i; i < PEOPLE; ++i) {
            uint256 key = 0xB0B + i;
            Actor memory a = Actor(address(uint160(0x100000 + i)), vm.addr(key), address(uint160(0x200000 + i)), key);
            actors.push(a);
            mint(a.owner, STAKE);
            vm.prank(a.owner);
            token.approve(address(vault), STAKE);
            bool show = i == PEOPLE - 1;
            bytes memory data = abi.encodeCall(vault.deposit, (a.owner, STAKE));
            act(show, "StakeVault.deposit", "first of an owner", a.owner, address(vault), data);
            bytes memory consented = consent(a.owner, a.operator, a.payout, key, type(uint256).max);
            data = abi.encodeCall(
                registry.register,
                (
                    a.operator,
                    a.payout,
                    7,
                    type(uint64).max,
                    "http://203.0.113.7:8700",
                    "key",
                    "class",
                    type(uint256).max,
                    consented
                )
            );
            act(show, "OperatorRegistry.register", "new operator", a.owner, address(registry), data);
            data = abi.encodeCall(tickets.enroll, (a.operator, TICKETS));
            act(show, "TicketBook.enroll", "ten tickets, the first of an owner", a.owner, address(tickets), data);
        }
    }

    function act(bool show, string memory c, string memory w, address who, address to, bytes memory data) private {
        if (show) return pay(c, w, who, to, data);
        vm.prank(who);
        (bool ok, ) = to.call(data);
        yes(ok, c);
    }

    /// Six owners pass an audit, so that the round shown is one of known operators.
    function graduate6() private {
        post(terms(), 1);
        graduate();
        Terms memory t = typical();
        uint256 amount = 2 * reservation(t);
        mint(POSTER, amount);
        vm.prank(POSTER);
        token.approve(address(ledger), amount);
        bytes memory data = abi.encodeCall(market.post, (t, "salt", amount, "http://203.0.113.7:8700"));
        pay("JobMarket.post", "terms of 20 words", POSTER, address(market), data);
        jobId = market.jobIdOf(POSTER, t.specDigest, "salt");
    }

    function trainRound() private returns (uint32 round) {
        pay("RoundBook.open", "", address(1), address(rounds), abi.encodeCall(rounds.open, (jobId)));
        for (uint16 s; s < 6; ++s) {
            address who = actors[s].operator;
            bytes memory data = abi.encodeCall(rounds.claim, (jobId, round, one(s)));
            act(s == 5, "RoundBook.claim", "one shard", who, address(rounds), data);
            data = abi.encodeCall(rounds.commit, (jobId, round, s, baseOf(round), openingOf(round, s)));
            act(s > 3, "RoundBook.commit", s == 5 ? "the last shard: seals" : "", who, address(rounds), data);
        }
        bytes32 next = keccak256("next");
        for (uint256 i; i < 5; ++i) {
            bytes memory data = abi.encodeCall(rounds.attest, (jobId, round, baseOf(round), 63, next));
            string memory when = i == 4 ? "the fifth of six: closes and pins" : "";
            act(i > 2, "RoundBook.attest", when, actors[i].operator, address(rounds), data);
        }
        yes(statusOf(round) == RoundStatus.Closed, "closed");
    }

    function drawRound(uint32 round) private returns (uint16[] memory sampled) {
        mine(2);
        pay("RoundBook.draw", "two of six", address(1), address(rounds), abi.encodeCall(rounds.draw, (jobId, round)));
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        sampled = new uint16[](2);
        uint256 n;
        for (uint16 s; s < 6; ++s) if ((map >> s) & 1 == 1) sampled[n++] = s;
        for (uint256 i; i < 2; ++i) {
            bytes memory data = abi.encodeCall(court.convene, (jobId, round, one(sampled[i])));
            act(i == 0, "AuditCourt.convene", "one case", address(1), address(court), data);
        }
    }

    function judgeMatch(uint32 round, uint16 shard) private {
        bytes32 id = court.caseIdOf(jobId, round, shard);
        address who = seatsOf(id)[0].operator;
        bytes memory data = abi.encodeCall(court.commitAudit, (id, 0, auditRoot(id, 0, 0)));
        pay("AuditCourt.commitAudit", "the last seat: pins the rows", who, address(court), data);
        pay("AuditCourt.demandTrace", "", who, address(court), abi.encodeCall(court.demandTrace, (id)));
        mine(2);
        data = abi.encodeCall(court.openTrace, (id, openingOf(round, shard), rowsOf(round, shard, 0)));
        pay("AuditCourt.openTrace", "64 rows", actors[shard].operator, address(court), data);
        data = abi.encodeCall(court.reveal, (id, 0, revealOf(id, 0, Finding.Match, 0)));
        pay("AuditCourt.reveal", "Match of 64-step traces: decides level one", who, address(court), data);
        yes(outcomeOf(id) == Outcome.Match, "judged");
    }

    function judgeFraud(uint32 round, uint16 shard) private {
        bytes32 id = court.caseIdOf(jobId, round, shard);
        judge(id, say(Finding.Fraud));
        mine(2);
        bytes memory data = abi.encodeCall(court.advance, (id));
        pay("AuditCourt.advance", "seats two auditors", address(1), address(court), data);
        judge(id, say(Finding.Fraud, Finding.Fraud));
        seatAll(id);
        commitAll(id);
        mine(2);
        reveal(id, 3, Finding.Fraud);
        address who = seatsOf(id)[4].operator;
        data = abi.encodeCall(court.reveal, (id, 4, revealOf(id, 4, Finding.Fraud, 0)));
        pay("AuditCourt.reveal", "Fraud: the last of five, slashes and pays", who, address(court), data);
        yes(outcomeOf(id) == Outcome.Fraud, "judged");
    }

    function doubtOne(uint32 round) private {
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        uint16 shard;
        while ((map >> shard) & 1 == 1) ++shard;
        bytes memory data = challengeOf(round, shard);
        pay("AuditCourt.challenge", "", actors[7].operator, address(court), data);
        bytes32 id = court.caseIdOf(jobId, round, shard);
        mine(2);
        data = abi.encodeCall(court.advance, (id));
        pay("AuditCourt.advance", "seats five auditors", address(1), address(court), data);
        judge(id, say(5, Finding.Match));
    }

    function doubtCheckpoint(uint32 round) private {
        bytes memory data = stepChallengeOf(round);
        pay("CheckpointCourt.challenge", "", actors[7].operator, address(checkpoints), data);
        bytes32 id = checkpoints.caseIdOf(jobId, round);
        mine(2);
        data = abi.encodeCall(checkpoints.advance, (id));
        pay("CheckpointCourt.advance", "seats five auditors", address(1), address(checkpoints), data);
        (, Seat[] memory seats) = checkpoints.caseOf(id);
        bytes32 next = rounds.checkpointOf(jobId, round + 1);
        StepFinding memory found = StepFinding(false, 63, next, next, SALT);
        for (uint16 i; i < 5; ++i) {
            data = abi.encodeCall(
                checkpoints.commitAudit,
                (id, i, checkpoints.rootOf(id, i, seats[i].operator, found))
            );
            act(i == 0, "CheckpointCourt.commitAudit", "", seats[i].operator, address(checkpoints), data);
        }
        for (uint16 i; i < 5; ++i) {
            data = abi.encodeCall(checkpoints.reveal, (id, i, found));
            string memory when = i == 4 ? "the last of five equal ones: it stands" : "";
            act(i == 0 || i == 4, "CheckpointCourt.reveal", when, seats[i].operator, address(checkpoints), data);
        }
        (Case memory c, ) = checkpoints.caseOf(id);
        yes(c.phase == CasePhase.Done && c.outcome == Outcome.Match, "judged");
    }

    function settleAll(uint32 round) private {
        pass(31);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, one(0)));
        pay("RoundBook.settle", "one shard", address(1), address(rounds), data);
        data = abi.encodeCall(rounds.settle, (jobId, round, range(1, 6)));
        pay("RoundBook.settle", "five shards and the round", address(1), address(rounds), data);
        yes(statusOf(round) == RoundStatus.Settled, "settled");
    }

    /// What is asked for beyond it: a demand, an appeal, a false checkpoint.
    /// forge-config: default.isolate = true
    function test_a_dispute_call_by_call() public {
        settle14(2);
        bytes memory data = abi.encodeCall(market.calibrate, (jobId, keccak256("record")));
        pay("JobMarket.calibrate", "", POSTER, address(market), data);
        uint32 round = closedRound(31, LIE);
        draw(round);
        bytes32 step = doubt(round);
        judgeStep(step, times(5, found(31, TRUTH)));
        data = abi.encodeCall(court.demandAudit, (jobId, round, 5));
        pay("AuditCourt.demandAudit", "", actors[5].operator, address(court), data);
        bytes32 id = court.caseIdOf(jobId, round, 5);
        judge(id, say(Finding.Reject));
        judge(id, say(2, Finding.Reject));
        data = abi.encodeCall(court.appeal, (id));
        pay("AuditCourt.appeal", "from three seats", actors[5].operator, address(court), data);
        judge(id, say(2, Finding.Match));
        finish(round);
        data = abi.encodeCall(checkpoints.distribute, (step));
        pay("CheckpointCourt.distribute", "five bonds, six provers", address(1), address(checkpoints), data);
    }

    function leave() private {
        mint(POSTER, TOKEN);
        vm.prank(POSTER);
        token.approve(address(ledger), TOKEN);
        pay("JobMarket.fund", "", POSTER, address(market), abi.encodeCall(market.fund, (jobId, TOKEN)));
        pay("JobMarket.refund", "", POSTER, address(market), abi.encodeCall(market.refund, (jobId, TOKEN)));
        pay("JobMarket.pause", "", POSTER, address(market), abi.encodeCall(market.pause, (jobId)));
        pay("JobMarket.resume", "", POSTER, address(market), abi.encodeCall(market.resume, (jobId)));
        address payout = actors[1].payout;
        pay("RewardLedger.withdraw", "", payout, address(ledger), abi.encodeCall(ledger.withdraw, (payout, 0)));
        pay("JobMarket.cancel", "", POSTER, address(market), abi.encodeCall(market.cancel, (jobId)));
        pay("JobMarket.close", "refunds", POSTER, address(market), abi.encodeCall(market.close, (jobId)));
        address owner = actors[1].owner;
        pay("TicketBook.exit", "", owner, address(tickets), abi.encodeCall(tickets.exit, (TICKETS)));
        pass(601);
        pay("TicketBook.release", "", owner, address(tickets), abi.encodeCall(tickets.release, (TICKETS)));
        pay("StakeVault.withdraw", "", owner, address(vault), abi.encodeCall(vault.withdraw, (0)));
    }
}
