// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {RoundStatus} from "../contracts/types/Types.sol";

contract AttackTest is World {
    function setUp() public {
        deploy();
        addActors(7);
        post(terms(), 3);
    }

    function test_a_pair_of_the_first_window_adds_nothing_to_a_digest_of_the_second() public {
        uint32 round = fullRound();
        bytes32 next = keccak256("next");
        for (uint256 i; i < 4; ++i) attest(i, round, 63, next);
        pass(61);
        rounds.advance(jobId, round);
        attest(5, round, 63, keccak256(abi.encode(uint256(63), next)));
        yes(statusOf(round) == RoundStatus.Tallied, "one of six cannot close a round");
    }
}
