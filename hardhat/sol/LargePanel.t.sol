// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {Reveal} from "../contracts/interfaces/IAuditCourt.sol";
import {StepFinding} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IPanels} from "../contracts/interfaces/IPanels.sol";
import {Case, CasePhase, COURT_FUND, Finding, Outcome, Seat} from "../contracts/types/Types.sol";

/// The largest panel of the preset: 21 seats, of which 14 decide. Who pays them, and what the calls cost.
contract LargePanelTest is Doubts {
    uint256 private constant MOST_GAS = 16_000_000; // of a transaction
    uint256 private constant ACCUSED = 0;

    uint32 private round;

    function setUp() public {
        deploy();
        addActors(30);
        post(terms(), 2);
        round = drawnRound();
    }

    /// What a call costs as a transaction of its own; the costliest is remembered.
    function cost(address who, address target, bytes memory data) private returns (uint256 gas) {
        vm.prank(who);
        (bool done, bytes memory answer) = target.call(data);
        gas = vm.lastCallGas().gasTotalUsed;
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    function seatMeasured(IPanels panels, bytes32 caseId) private {
        mine(2);
        for (uint256 i; i < 40; ++i) {
            (Case memory c, ) = panels.caseOf(caseId);
            if (c.phase != CasePhase.Seating) return;
            uint256 gas = cost(POSTER, address(panels), abi.encodeCall(IPanels.advance, (caseId)));
            yes(gas < MOST_GAS, "seating fits");
        }
    }

    /// Five findings that take three levels, and an appeal by `who`.
    function appealed(Finding[5] memory first, uint256 who) private returns (bytes32 caseId) {
        caseId = convene(round, 0);
        judge(caseId, say(first[0]));
        judge(caseId, say(first[1], first[2]));
        judge(caseId, say(first[3], first[4]));
        eq(uint8(caseOf(caseId).phase), uint8(CasePhase.Appealable), "thirty owners are more than 21");
        vm.prank(actors[who].operator);
        court.appeal(caseId);
    }

    /// Sixteen more say the same; what the last of them costs.
    function sixteen(bytes32 caseId, Finding finding) private returns (uint256 gas) {
        seatMeasured(court, caseId);
        eq(seatsOf(caseId).length, 21, "seats");
        commitAll(caseId);
        mine(2);
        for (uint16 i = 5; i < 20; ++i) reveal(caseId, i, finding);
        Reveal memory r = revealOf(caseId, 20, finding, 0);
        bytes memory data = abi.encodeCall(court.reveal, (caseId, 20, r));
        gas = cost(seatsOf(caseId)[20].operator, address(court), data);
        yes(caseOf(caseId).phase == CasePhase.Done, "there is no level above");
    }

    /// Each call is a transaction of its own: storage is cold.
    /// forge-config: default.isolate = true
    function test_the_last_of_21_reveals_convicts_slashes_and_pays_within_the_gas_of_a_transaction() public {
        Finding f = Finding.Fraud;
        bytes32 caseId = appealed([f, f, f, f, Finding.Match], ACCUSED);
        Money memory was = money(round);
        uint256 gas = sixteen(caseId, f);
        yes(gas < MOST_GAS, "fits");
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "twenty of 21");
        uint256 share = (BOND * 30) / 100 / 20;
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 21; ++i) eq(gained(was, seats[i].owner), i == 4 ? 0 : FEE + share, "a fee and a share");
        eq(was.pot - pot(round), 3 * FEE + TOKEN, "reserve, then reward");
        eq(ledger.potOf(COURT_FUND) - was.fund, BOND / 5, "a fifth of the bond");
        uint256 collected = 3 * FEE + TOKEN + BOND + 14 * FEE + SEAT / 4;
        eq(token.balanceOf(BURN) - was.burnt, collected - 20 * (FEE + share) - BOND / 5, "the rest");
        checkConservation();
    }

    function test_a_lost_appeal_from_a_match_pays_all_and_the_rest_goes_to_the_fund() public {
        Finding m = Finding.Match;
        bytes32 caseId = appealed([Finding.Reject, m, Finding.Fraud, m, m], 29);
        Money memory was = money(round);
        sixteen(caseId, m);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "nineteen of 21");
        eq(was.pot - pot(round), 3 * FEE, "the reserve first");
        eq(lost(was, actors[29].owner), 14 * FEE, "the bond");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 21; ++i) {
            bool right = seats[i].finding == m;
            eq(gained(was, seats[i].owner), right ? FEE : 0, "a Match is paid");
        }
        eq(ledger.potOf(COURT_FUND) - was.fund, 17 * FEE + SEAT / 4 - 19 * FEE, "what is over");
        checkConservation();
    }

    function test_21_seats_share_in_equal_parts_what_reserve_reward_bond_and_fund_do_not_cover() public {
        Finding r = Finding.Reject;
        bytes32 caseId = appealed([r, r, Finding.Fraud, r, r], ACCUSED);
        Money memory was = money(round);
        eq(was.fund, 0, "an empty fund");
        sixteen(caseId, r);
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Reject), "21 of 21");
        uint256 all = 3 * FEE + TOKEN + 14 * FEE;
        yes(all < 20 * FEE, "less than twenty fees");
        Seat[] memory seats = seatsOf(caseId);
        for (uint256 i; i < 21; ++i) eq(gained(was, seats[i].owner), i == 2 ? 0 : all / 20, "in equal parts");
        eq(ledger.potOf(COURT_FUND), all % 20, "the dust");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        checkConservation();
    }

    /// Half of the larger panel is silent: the share that spoke decides, and not without a supermajority of it.
    function test_thirteen_of_21_convict_nobody() public {
        Finding f = Finding.Fraud;
        bytes32 caseId = appealed([f, f, f, f, Finding.Match], ACCUSED);
        seatMeasured(court, caseId);
        commitAll(caseId);
        mine(2);
        for (uint16 i = 5; i < 14; ++i) reveal(caseId, i, f); // thirteen Frauds
        for (uint16 i = 14; i < 21; ++i) reveal(caseId, i, Finding.Match); // eight Matches
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Match), "thirteen are not fourteen");
        eq(vault.balanceOf(actors[ACCUSED].owner), STAKE, "whole");
        checkConservation();
    }

    // ---------------------------------------------------------------- checkpoints

    function appealedStep(StepFinding[] memory five) private returns (bytes32 caseId) {
        round = closedRound(63, LIE);
        caseId = doubt(round);
        judgeStep(caseId, five);
        eq(uint8(stepCase(caseId).phase), uint8(CasePhase.Appealable), "phase");
        vm.prank(actors[0].operator);
        checkpoints.appeal(caseId);
    }

    /// forge-config: default.isolate = true
    function test_the_last_of_21_findings_about_a_checkpoint_fits_a_transaction() public {
        bytes32 caseId = appealedStep(times(5, 4, found(63, TRUTH), found(63, LIE)));
        seatMeasured(checkpoints, caseId);
        StepFinding memory f = found(63, TRUTH);
        for (uint16 i = 5; i < 21; ++i) commitStep(caseId, i, f);
        mine(2);
        for (uint16 i = 5; i < 20; ++i) revealStep(caseId, i, f);
        bytes memory data = abi.encodeCall(checkpoints.reveal, (caseId, 20, f));
        uint256 gas = cost(stepSeats(caseId)[20].operator, address(checkpoints), data);
        yes(gas < MOST_GAS, "fits");
        expectStep(caseId, Outcome.Fraud);
        finish(round);
        gas = cost(POSTER, address(checkpoints), abi.encodeCall(checkpoints.distribute, (caseId)));
        yes(gas < MOST_GAS, "fits");
        checkConservation();
    }

    /// The worst case of counting: no two seats agree on anything.
    /// forge-config: default.isolate = true
    function test_21_different_findings_fit_a_transaction_and_decide_nothing() public {
        bytes32 caseId = appealedStep(times(5, 4, found(63, TRUTH), found(63, LIE)));
        seatMeasured(checkpoints, caseId);
        for (uint16 i = 5; i < 21; ++i) commitStep(caseId, i, found(63, keccak256(abi.encode(i))));
        mine(2);
        for (uint16 i = 5; i < 20; ++i) revealStep(caseId, i, found(63, keccak256(abi.encode(i))));
        StepFinding memory f = found(63, keccak256(abi.encode(uint16(20))));
        bytes memory data = abi.encodeCall(checkpoints.reveal, (caseId, 20, f));
        uint256 gas = cost(stepSeats(caseId)[20].operator, address(checkpoints), data);
        yes(gas < MOST_GAS, "fits");
        expectStep(caseId, Outcome.Unsampled);
        eq(ticketsUsed(), 0, "INV-CASE-3");
    }
}
