// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Base} from "./Base.sol";
import {Crowd} from "./Crowd.sol";

/// After any sequence of moves by anybody: the money adds up, every lock has an owner, and a stranger can end it all.
contract InvariantsTest is Base {
    struct Target {
        address addr;
        bytes4[] selectors;
    }

    Crowd private crowd;

    function setUp() public {
        crowd = new Crowd();
    }

    function targetContracts() public view returns (address[] memory list) {
        list = new address[](1);
        list[0] = address(crowd);
    }

    /// Without this a runner would spend half of its calls on `drain`, which refuses them.
    function targetSelectors() public view returns (Target[] memory list) {
        list = new Target[](1);
        list[0].addr = address(crowd);
        list[0].selectors = new bytes4[](1);
        list[0].selectors[0] = Crowd.turn.selector;
    }

    function invariant_the_money_adds_up_and_every_lock_has_its_reason() public view {
        crowd.checkMoney();
        crowd.checkLocks();
        crowd.checkRounds();
    }

    /// forge-config: default.fuzz.runs = 24
    /// forge-config: full.fuzz.runs = 100
    function testFuzz_a_stranger_can_end_whatever_was_begun(uint256 seed) public {
        for (uint256 i; i < 150; ++i) {
            crowd.turn(uint256(keccak256(abi.encode(seed, i))));
            if (i % 15 == 0) {
                crowd.checkMoney();
                crowd.checkLocks();
                crowd.checkRounds();
            }
        }
        crowd.drain();
        crowd.checkMoney();
        crowd.checkLocks();
        crowd.checkRounds();
    }

    /// The suite would prove nothing if its moves were all refused.
    function test_the_crowd_reaches_every_move() public {
        Crowd[14] memory crowds;
        for (uint256 c; c < crowds.length; ++c) {
            crowds[c] = new Crowd();
            for (uint256 i; i < 300; ++i) crowds[c].turn(uint256(keccak256(abi.encode("reach", c, i))));
        }
        string[36] memory moves = [
            "open",
            "claim",
            "commit",
            "attest",
            "advance round",
            "draw",
            "convene",
            "commit audit",
            "reveal",
            "advance case",
            "demand",
            "open trace",
            "challenge",
            "demand audit",
            "challenge step",
            "commit step",
            "reveal step",
            "appeal",
            "distribute",
            "settle",
            "settle orphaned",
            "enroll",
            "exit",
            "release",
            "deposit",
            "withdraw",
            "collect",
            "fund",
            "refund",
            "pause",
            "resume",
            "cancel",
            "close",
            "calibrate",
            "refused",
            "within"
        ];
        for (uint256 i; i < moves.length; ++i) {
            uint256 times;
            for (uint256 c; c < crowds.length; ++c) times += crowds[c].done(moves[i]);
            yes(times > 0, moves[i]);
        }
    }
}
