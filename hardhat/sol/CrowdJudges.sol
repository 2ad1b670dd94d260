// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {CrowdMoves} from "./CrowdMoves.sol";
import {Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {
    Case,
    CasePhase,
    Claim,
    ClaimOpening,
    Finding,
    Outcome,
    Round,
    Seat,
    SeatState,
    TraceRow
} from "../contracts/types/Types.sol";

/// What the crowd does in both courts: doubt, demand, judge, lie, stay silent, appeal, share out.
abstract contract CrowdJudges is CrowdMoves {
    bytes32[] internal caseIds; // about claims
    bytes32[] internal stepIds; // about checkpoints
    mapping(bytes32 caseId => bool) private listed;
    mapping(bytes32 caseId => mapping(uint16 seat => StepFinding)) private found;

    /// Remember a case, if there is one.
    function list(bytes32 id, IPanels panel) internal {
        (Case memory c, ) = panel.caseOf(id);
        if (listed[id] || c.phase == CasePhase.None) return;
        listed[id] = true;
        if (address(panel) == address(court)) caseIds.push(id);
        else stepIds.push(id);
    }

    // ---------------------------------------------------------------- rounds

    function finish(uint32 round) internal override {
        blocks(1 + roll(3));
        attempt("draw", STRANGER, address(rounds), abi.encodeCall(rounds.draw, (jobId, round)));
        if (roll(4) == 0) doubt(round);
        settle("settle", round);
        convene("convene", round, uint16(roll(6)));
        share("distribute", checkpoints.caseIdOf(jobId, round));
    }

    function convene(string memory move, uint32 round, uint16 shard) internal {
        attempt(move, STRANGER, address(court), abi.encodeCall(court.convene, (jobId, round, one(shard))));
        list(court.caseIdOf(jobId, round, shard), court);
    }

    /// Orphaned rounds cost nobody anything, but for those who swore to a false step of theirs.
    function settle(string memory move, uint32 round) internal {
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, round, range(0, 6)));
        if (!rounds.isOrphaned(jobId, round)) {
            attempt(move, STRANGER, address(rounds), data);
            return;
        }
        uint256 stakes = token.balanceOf(address(vault));
        uint256 job = ledger.potOf(jobId) + pot(round);
        uint256 before = entries;
        if (!attempt(move, STRANGER, address(rounds), data)) return;
        ++done["settle orphaned"];
        if (entries != before) return; // others moved money meanwhile
        (Case memory c, ) = checkpoints.caseOf(checkpoints.caseIdOf(jobId, round));
        if (c.outcome != Outcome.Fraud) eq(token.balanceOf(address(vault)), stakes, "an orphaned round's bonds return");
        eq(ledger.potOf(jobId) + pot(round), job, "and so does its reservation");
    }

    function share(string memory move, bytes32 id) internal {
        uint256 credits = ledger.potOf(id);
        if (!attempt(move, STRANGER, address(checkpoints), abi.encodeCall(checkpoints.distribute, (id)))) return;
        yes(credits > 0 && ledger.potOf(id) == 0, "INV-STEP-3");
    }

    // ---------------------------------------------------------------- doubts

    function doubt(uint32 round) internal {
        for (uint16 shard; shard < 6; ++shard) {
            (Claim memory c, ) = rounds.claimOf(jobId, round, shard);
            bytes memory data = challengeOf(round, shard);
            attempt("challenge", anyone().operator, address(court), data);
            address who = roll(8) == 0 ? anyHand() : c.operator;
            data = abi.encodeCall(court.demandAudit, (jobId, round, shard));
            if (roll(2) == 0) attempt("demand audit", who, address(court), data);
            list(court.caseIdOf(jobId, round, shard), court);
        }
        if (roll(2) == 0) doubtStep(round);
    }

    function doubtStep(uint32 round) internal override {
        address who = roll(8) == 0 ? anyHand() : anAuditor();
        bytes memory data = stepChallengeOf(round);
        if (attempt("challenge step", who, address(checkpoints), data)) {
            attempt("open", STRANGER, address(rounds), abi.encodeCall(rounds.open, (jobId))); // training does not wait
        }
        list(checkpoints.caseIdOf(jobId, round), checkpoints);
    }

    // ---------------------------------------------------------------- seats

    function judgeSome() internal {
        for (uint256 i = 1 + roll(3); i > 0; --i) judgeOne();
    }

    /// All seats of one case do what they can, each honest, lazy, silent or lying.
    function judgeOne() internal {
        bool step = roll(5) < 2;
        bytes32[] storage ids = step ? stepIds : caseIds;
        if (ids.length == 0 || roll(5) == 0) return finish(anyRound());
        IPanels panel = step ? IPanels(checkpoints) : IPanels(court);
        bytes32 id = ids[roll(ids.length)];
        (Case memory c, ) = panel.caseOf(id);
        for (uint256 i; i < 8 && c.phase == CasePhase.Done; ++i) {
            id = ids[roll(ids.length)];
            (c, ) = panel.caseOf(id);
        }
        bytes32 job = jobId;
        jobId = c.jobId;
        for (uint256 i = 1 + roll(6); i > 0; --i) push(panel, id, step);
        jobId = job;
    }

    function push(IPanels panel, bytes32 id, bool step) private {
        (Case memory c, Seat[] memory seats) = panel.caseOf(id);
        blocks(2);
        bytes memory next = abi.encodeCall(panel.advance, (id));
        if (c.phase == CasePhase.Appealable) return appeal(panel, id, next);
        if (c.phase == CasePhase.Seating || roll(6) == 0) {
            if (roll(16) == 0) later(181);
            attempt("advance case", STRANGER, address(panel), next);
        }
        for (uint16 i; i < seats.length; ++i) {
            if (roll(9) == 0) continue;
            address who = seats[i].operator;
            if (c.phase == CasePhase.Committing && seats[i].state == SeatState.Seated) {
                bytes32 root = step ? commitStep(id, c, i, who) : auditRoot(id, i, 0);
                attempt(
                    step ? "commit step" : "commit audit",
                    who,
                    address(panel),
                    abi.encodeCall(panel.commitAudit, (id, i, root))
                );
            } else if (c.phase == CasePhase.Revealing && seats[i].state == SeatState.Committed) {
                if (step) {
                    bytes memory data = abi.encodeCall(checkpoints.reveal, (id, i, found[id][i]));
                    attempt("reveal step", who, address(checkpoints), data);
                } else {
                    if (roll(4) == 0) demand(id, c, who);
                    speak(id, i, who);
                }
            }
        }
        if (roll(16) == 0) later(roll(130));
    }

    function appeal(IPanels panel, bytes32 id, bytes memory next) private {
        if (roll(2) == 0) {
            address who = roll(3) == 0 ? anyHand() : anyone().operator;
            attempt("appeal", who, address(panel), abi.encodeCall(panel.appeal, (id)));
        } else {
            later(1 + roll(60));
            attempt("advance case", STRANGER, address(panel), next);
        }
    }

    /// The truth is what most find: either bitmap may be it. Some lie, some cannot tell, some contradict themselves.
    function commitStep(bytes32 id, Case memory c, uint16 seat, address who) private returns (bytes32) {
        (Round memory r, ) = rounds.roundOf(c.jobId, c.round);
        StepFinding memory f;
        uint256 kind = roll(16);
        f.abstain = kind == 0;
        f.bitmap = uint256(id) % 2 == 0 ? r.acceptedMap : r.committedMap;
        if (kind == 1) f.bitmap = dice % 64;
        f.digest = stepOf(c.round, f.bitmap, kind == 2 ? 3 : 0);
        f.contested = f.bitmap == r.acceptedMap ? f.digest : stepOf(c.round, r.acceptedMap, 0);
        if (kind == 3) f.contested = 0;
        f.salt = SALT;
        found[id][seat] = f;
        return checkpoints.rootOf(id, seat, who, f);
    }

    function speak(bytes32 id, uint16 seat, address operator) private {
        if (caseOf(id).phase != CasePhase.Revealing) return;
        Finding f = Finding(1 + roll(6));
        // most cases have a truth that most seats see
        if (roll(5) > 0 && uint256(id) % 4 > 0) f = Finding(uint256(id) % 4);
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
        (ClaimOpening memory o, TraceRow[] memory all) = (openingOf(c.round, c.shard), rowsOf(c.round, c.shard, 0));
        if (roll(2) == 0)
            attempt("open trace", STRANGER, address(court), abi.encodeCall(court.openTrace, (id, o, all)));
    }
}
