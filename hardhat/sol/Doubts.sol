// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {
    Case,
    CasePhase,
    COURT_FUND,
    Finding,
    Outcome,
    Round,
    RoundStatus,
    Seat,
    SeatState,
    Terms
} from "../contracts/types/Types.sol";

/// Six owners who train, others who judge, and what is said about a checkpoint.
abstract contract Doubts is World {
    /// What everybody and everything had at one time.
    struct Money {
        uint256 pot; // of the round
        uint256 fund;
        uint256 burnt;
        uint256[] credits;
        uint256[] stakes;
    }

    uint256 internal constant FEE = (TOKEN * 11) / 10;
    uint256 internal constant BOND = 25 * TOKEN; // of a claim
    uint256 internal constant SEAT = 40 * TOKEN; // of a ticket, behind a seat
    uint256 internal constant WINDOW = 30; // in which a claim or a checkpoint can be doubted
    uint256 internal constant DOUBTER = 13; // has a ticket, trains nothing
    bytes32 internal constant LIE = keccak256("what they attested to");
    bytes32 internal constant TRUTH = keccak256("what the payloads give");

    // ---------------------------------------------------------------- rounds

    /// Fourteen owners with tickets; six of them train and are known. Then a job of which a third is sampled.
    function settle14(uint256 roundsFunded) internal {
        deploy();
        addActors(14);
        post(terms(), 1);
        graduate();
        post(sampledTerms(), roundsFunded);
    }

    function sampledTerms() internal pure returns (Terms memory t) {
        t = terms();
        t.auditRateBps = 2_000;
        t.rounds = 5;
    }

    /// Who has weight attests, one after the other, until the round closes.
    function agree(uint32 round, uint256 bitmap, bytes32 next) internal {
        for (uint256 i; i < actors.length; ++i) {
            RoundStatus status = statusOf(round);
            if (status != RoundStatus.Sealed && status != RoundStatus.Tallied) return;
            (uint256 weight, bool attested) = rounds.weightOf(jobId, round, actors[i].operator);
            if (weight > 0 && !attested) attest(i, round, bitmap, next);
        }
    }

    /// Six commitments, of whose owners the first five agree on that.
    function closedRound(uint256 bitmap, bytes32 next) internal returns (uint32 round) {
        round = fullRound();
        agree(round, bitmap, next);
        expect(round, RoundStatus.Closed);
    }

    function expect(uint32 round, RoundStatus status) internal view {
        eq(uint8(statusOf(round)), uint8(status), "round status");
    }

    function closedAt(uint32 round) internal view returns (uint256) {
        (Round memory r, ) = rounds.roundOf(jobId, round);
        return r.closedAt;
    }

    function settle(uint32 round) internal {
        rounds.settle(jobId, round, range(0, 6));
    }

    function nothingToSettle(uint32 round) internal {
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(0, 6)));
        refused(POSTER, address(rounds), data, abi.encodeWithSelector(IRoundBook.NothingToSettle.selector));
    }

    /// Draw and judge what is sampled: everything is found to be honest work.
    function auditAll(uint32 round) internal {
        if (!rounds.drawOf(jobId, round).drawn) draw(round);
        uint256 map = rounds.drawOf(jobId, round).sampledMap;
        for (uint16 s; s < 6; ++s) {
            (bool exists, , , ) = court.outcomeOf(jobId, round, s);
            if ((map >> s) & 1 == 1 && !exists) judge(convene(round, s), say(Finding.Match));
        }
    }

    /// Audit what is to be audited, wait, settle: the round is over.
    function finish(uint32 round) internal {
        auditAll(round);
        finalise(round);
        settle(round);
        expect(round, RoundStatus.Settled);
        eq(pot(round), 0, "INV-ROUND-5");
    }

    // ---------------------------------------------------------------- a checkpoint's case

    function doubt(uint32 round) internal returns (bytes32) {
        return doubt(DOUBTER, round);
    }

    function refusedDoubt(uint256 actor, uint32 round, bytes memory error) internal {
        refused(actors[actor].operator, address(checkpoints), stepChallengeOf(round), error);
    }

    function stepCase(bytes32 caseId) internal view returns (Case memory c) {
        (c, ) = checkpoints.caseOf(caseId);
    }

    function stepSeats(bytes32 caseId) internal view returns (Seat[] memory seats) {
        (, seats) = checkpoints.caseOf(caseId);
    }

    /// A seat recomputed the attested bitmap, and got that.
    function found(uint256 bitmap, bytes32 digest) internal pure returns (StepFinding memory) {
        return StepFinding(false, bitmap, digest, digest, SALT);
    }

    /// A seat thinks that other payloads count; `contested` is what it got from the attested ones.
    function found(uint256 bitmap, bytes32 digest, bytes32 contested) internal pure returns (StepFinding memory) {
        return StepFinding(false, bitmap, digest, contested, SALT);
    }

    function times(uint256 count, StepFinding memory f) internal pure returns (StepFinding[] memory all) {
        all = new StepFinding[](count);
        for (uint256 i; i < count; ++i) all[i] = f;
    }

    /// First `first` times `a`, then `b` until there are `count`.
    function times(
        uint256 count,
        uint256 first,
        StepFinding memory a,
        StepFinding memory b
    ) internal pure returns (StepFinding[] memory all) {
        all = new StepFinding[](count);
        for (uint256 i; i < count; ++i) all[i] = i < first ? a : b;
    }

    /// Draw whoever can be drawn, in as many calls as it takes.
    function seatPanel(IPanels panels, bytes32 caseId) internal {
        mine(2);
        for (uint256 i; i < 200; ++i) {
            (Case memory c, ) = panels.caseOf(caseId);
            if (c.phase != CasePhase.Seating) return;
            panels.advance(caseId);
        }
        revert NotTrue("seats are drawn within 200 calls");
    }

    function commitStep(bytes32 caseId, uint16 seat, StepFinding memory f) internal {
        address operator = stepSeats(caseId)[seat].operator;
        bytes32 root = checkpoints.rootOf(caseId, seat, operator, f);
        vm.prank(operator);
        checkpoints.commitAudit(caseId, seat, root);
    }

    function revealStep(bytes32 caseId, uint16 seat, StepFinding memory f) internal {
        address operator = stepSeats(caseId)[seat].operator;
        vm.prank(operator);
        checkpoints.reveal(caseId, seat, f);
    }

    /// The empty seats are drawn, and say in turn what is given.
    function judgeStep(bytes32 caseId, StepFinding[] memory all) internal {
        seatPanel(checkpoints, caseId);
        Seat[] memory seats = stepSeats(caseId);
        uint256 next;
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state == SeatState.Seated) commitStep(caseId, i, all[next++]);
        }
        mine(2);
        next = 0;
        for (uint16 i; i < seats.length; ++i) {
            if (seats[i].state == SeatState.Seated) revealStep(caseId, i, all[next++]);
        }
    }

    function expectStep(bytes32 caseId, Outcome outcome) internal view {
        yes(stepCase(caseId).phase == CasePhase.Done, "the case is done");
        eq(uint8(stepCase(caseId).outcome), uint8(outcome), "outcome");
    }

    /// Phases run out, one after the other, until nobody has anything to say any more.
    function silence(IPanels panels, bytes32 caseId) internal {
        for (uint256 i; i < 50; ++i) {
            seatPanel(panels, caseId);
            (Case memory c, ) = panels.caseOf(caseId);
            if (c.phase == CasePhase.Done) return;
            passTo(uint256(c.phaseEnds) + 1);
            panels.advance(caseId);
        }
        revert NotTrue("silence ends a case");
    }

    // ---------------------------------------------------------------- money

    function money(uint32 round) internal view returns (Money memory m) {
        m.pot = pot(round);
        m.fund = ledger.potOf(COURT_FUND);
        m.burnt = token.balanceOf(BURN);
        m.credits = new uint256[](actors.length);
        m.stakes = new uint256[](actors.length);
        for (uint256 i; i < actors.length; ++i) {
            m.credits[i] = credit(i);
            m.stakes[i] = vault.balanceOf(actors[i].owner);
        }
    }

    function indexOf(address owner) internal view returns (uint256 i) {
        while (actors[i].owner != owner) ++i;
    }

    /// What the owner of a seat was credited since.
    function gained(Money memory m, address owner) internal view returns (uint256) {
        uint256 actor = indexOf(owner);
        return credit(actor) - m.credits[actor];
    }

    /// What the owner of a seat lost of its stake since.
    function lost(Money memory m, address owner) internal view returns (uint256) {
        return m.stakes[indexOf(owner)] - vault.balanceOf(owner);
    }

    function locked(uint256 actor) internal view returns (uint256) {
        return vault.lockedOf(actors[actor].owner);
    }
}
