// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Doubts} from "./Doubts.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {ClaimStatus, COURT_FUND, Finding, Outcome, Preset} from "../contracts/types/Types.sol";

/// A deployment whose verdicts slash only where the job carries a calibration record. INV-JOB-4.
contract CalibrationTest is Doubts {
    bytes32 private constant RECORD = keccak256("record");

    uint32 private round;

    function preset() internal view override returns (Preset memory p) {
        p = super.preset();
        p.calibrated = true;
    }

    function setUp() public {
        deploy();
        addActors(14);
        post(terms(), 2);
    }

    function calibrate() private {
        vm.prank(POSTER);
        market.calibrate(jobId, RECORD);
    }

    function refusedRecord(address who, bytes32 record, bytes memory error) private {
        refused(who, address(market), abi.encodeCall(market.calibrate, (jobId, record)), error);
    }

    function defraud() private returns (bytes32 caseId) {
        round = drawnRound();
        caseId = convene(round, 0);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Fraud));
        judge(caseId, say(Finding.Fraud, Finding.Match));
        eq(uint8(outcomeOf(caseId)), uint8(Outcome.Fraud), "fraud");
    }

    function test_without_a_record_a_fraud_is_unpaid_and_barred_and_not_slashed() public {
        bytes32 caseId = defraud();
        eq(vault.balanceOf(actors[0].owner), STAKE, "not slashed");
        yes(isBarred(0), "barred");
        eq(vault.balanceOf(seatsOf(caseId)[4].owner), STAKE - SEAT / 4, "a wrong seat pays all the same");
        eq(ledger.potOf(COURT_FUND), 0, "no bond, no fifth of it");
        eq(ledger.potOf(caseId), 0, "INV-COURT-3");
        finalise(round);
        rounds.settle(jobId, round, one(0));
        yes(claimStatus(round, 0) == ClaimStatus.Unpaid, "unpaid");
        eq(locked(0), ENROLLED, "and its bond is free");
        checkConservation();
    }

    function test_with_a_record_it_is_slashed() public {
        calibrate();
        eq(market.calibrationOf(jobId), RECORD, "record");
        defraud();
        eq(vault.balanceOf(actors[0].owner), STAKE - BOND, "slashed");
        eq(ledger.potOf(COURT_FUND), BOND / 5, "a fifth");
    }

    function test_a_record_is_attached_once_by_the_poster_and_is_not_zero() public {
        refusedRecord(
            actors[0].owner,
            RECORD,
            abi.encodeWithSelector(IJobMarket.NotThePoster.selector, actors[0].owner, POSTER)
        );
        refusedRecord(POSTER, 0, abi.encodeWithSelector(IJobMarket.ZeroRecord.selector));
        calibrate();
        refusedRecord(
            POSTER,
            keccak256("another"),
            abi.encodeWithSelector(IJobMarket.AlreadyCalibrated.selector, jobId, RECORD)
        );
    }

    /// A poster that waits for a false verdict and then makes it slash.
    function test_no_record_is_attached_while_a_bond_is_locked() public {
        bytes memory error = abi.encodeWithSelector(IJobMarket.RoundsUnsettled.selector, jobId, 1);
        round = rounds.open(jobId);
        refusedRecord(POSTER, RECORD, error);
        for (uint16 s; s < 6; ++s) {
            claim(s, round, s);
            commit(s, round, s);
        }
        refusedRecord(POSTER, RECORD, error);
        agree(round, 63, TRUTH);
        auditAll(round);
        refusedRecord(POSTER, RECORD, error);
        finalise(round);
        rounds.settle(jobId, round, range(0, 5));
        refusedRecord(POSTER, RECORD, error);
        settle(round);
        calibrate();
    }
}
