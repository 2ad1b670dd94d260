// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {ClaimOpening, RoundStatus, Terms} from "../contracts/types/Types.sol";

/// What a round costs at 1, 32 and 256 shards, each call a transaction of its own. A part of `docs/contracts/gas.md`.
contract ScaleTest is World {
    uint256 private constant MOST = 16_777_216; // gas of a transaction, EIP-7825
    address private constant CONSOLE = address(0x000000000000000000636F6e736F6c652e6c6f67);

    uint16 private n;

    function setUp() public {
        deploy();
        addActors(8);
        post(terms(), 1);
        graduate();
    }

    function sized(uint16 shards) private pure returns (Terms memory t) {
        t = terms();
        t.specDigest = keccak256(abi.encode("spec", shards));
        t.shardsPerRound = shards;
        t.minShards = shards > 1 ? shards / 2 : 1;
        t.auditRateBps = 1_000;
        t.probationSlots = 1;
    }

    function pay(string memory call, address who, address target, bytes memory data) private returns (uint256 gas) {
        vm.prank(who);
        (bool ok, bytes memory answer) = target.call(data);
        gas = vm.lastCallGas().gasTotalUsed;
        if (!ok) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        yes(gas < MOST, call);
    }

    function print(string memory call, uint256 gas) private view {
        string memory line = string.concat(
            "scale|",
            call,
            "|",
            n == 1
                ? "1"
                : n == 32
                    ? "32"
                    : "256",
            "|"
        );
        (bool ok, ) = CONSOLE.staticcall(abi.encodeWithSignature("log(string,uint256)", line, gas));
        yes(ok, "printed");
    }

    /// forge-config: default.isolate = true
    function test_a_round_of_one_shard() public {
        round(1);
    }

    /// forge-config: default.isolate = true
    function test_a_round_of_32_shards() public {
        round(32);
    }

    /// forge-config: default.isolate = true
    function test_a_round_of_256_shards() public {
        round(256);
    }

    /// Six owners train it: each holds up to a sixth, an operator's claims after the first come one by one.
    function round(uint16 shards) private {
        n = shards;
        post(sized(n), 2);
        rounds.open(jobId); // the job's first round copies the terms; the one that is shown is its second
        pass(121);
        rounds.advance(jobId, 0);
        pass(121);
        rounds.advance(jobId, 0);
        pass(121);
        print("open", pay("open", address(1), address(rounds), abi.encodeCall(rounds.open, (jobId))));
        train();
        vote();
        mine(2);
        print("draw", pay("draw", address(1), address(rounds), abi.encodeCall(rounds.draw, (jobId, 1))));
        judgeSample();
        settleAll();
    }

    function train() private {
        uint256 claims;
        uint256 commits;
        uint256 counted;
        for (uint16 s; s < n; ++s) {
            address who = actors[s % 6].operator;
            uint256 gas = pay("claim", who, address(rounds), abi.encodeCall(rounds.claim, (jobId, 1, one(s))));
            ClaimOpening memory o = openingOf(1, s);
            bytes memory data = abi.encodeCall(rounds.commit, (jobId, 1, s, baseOf(1), o));
            uint256 commitGas = pay("commit", who, address(rounds), data);
            (claims, commits, counted) = (claims + gas, commits + commitGas, counted + 1);
        }
        print("claim, one shard a call", claims / counted);
        print("commit", commits / counted);
        uint256 limit = n < 64 ? n : 64;
        (uint16 lapsed, uint32 again) = (uint16(limit), 2);
        if (n == 1) return;
        print("claim, a quarter in one call, a shard", batch(lapsed, again));
    }

    /// In a copy of the state: the same round once more, claimed by the quarter.
    function batch(uint16 most, uint32) private returns (uint256 each) {
        uint256 id = vm.snapshotState();
        Terms memory t = sized(n);
        t.specDigest = keccak256("again");
        bytes32 job = jobId;
        post(t, 1);
        rounds.open(jobId);
        uint16 quarter = n / 4 < most ? n / 4 : most;
        bytes memory data = abi.encodeCall(rounds.claim, (jobId, 0, range(0, quarter)));
        each = pay("claims", actors[0].operator, address(rounds), data) / quarter;
        jobId = job;
        vm.revertToState(id);
    }

    function vote() private {
        bytes32 next = keccak256("next");
        uint256 map = n == 256 ? type(uint256).max : (uint256(1) << n) - 1;
        for (uint256 i; statusOf(1) == RoundStatus.Sealed; ++i) {
            bytes memory data = abi.encodeCall(rounds.attest, (jobId, 1, baseOf(1), map, next));
            uint256 gas = pay("attest", actors[i].operator, address(rounds), data);
            bool closed = statusOf(1) == RoundStatus.Closed;
            if (closed) print("attest, closes the round", gas);
            else if (i == 0) print("attest, the first", gas);
            else if (i == 1) print("attest", gas);
        }
    }

    function judgeSample() private {
        uint256 map = rounds.drawOf(jobId, 1).sampledMap;
        bool printed;
        for (uint16 s; s < n; ++s) {
            if ((map >> s) & 1 == 0) continue;
            uint256 gas = pay("convene", address(1), address(court), abi.encodeCall(court.convene, (jobId, 1, one(s))));
            if (!printed) print("convene, one case", gas);
            printed = true;
            bytes32 id = court.caseIdOf(jobId, 1, s);
            // a seat may wait for a busy ticket; it is never judged here, and stays silent to the end
            for (uint256 i; i < 12 && !over(id); ++i) {
                pass(181);
                try court.advance(id) {} catch {}
            }
            yes(over(id), "nobody came");
        }
    }

    function over(bytes32 id) private view returns (bool done) {
        return uint8(caseOf(id).phase) == 5;
    }

    function settleAll() private {
        finalise(1);
        bytes memory data = abi.encodeCall(rounds.settle, (jobId, 1, range(0, n)));
        uint256 gas = pay("settle", address(1), address(rounds), data);
        print("settle, all in one call", gas);
        print("settle, a shard of it", gas / n);
        yes(statusOf(1) == RoundStatus.Settled, "settled");
    }
}
