// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {BeaconWorld} from "./BeaconWorld.sol";
import {IBeacon} from "../contracts/interfaces/IBeacon.sol";
import {IProvenBeacon} from "../contracts/interfaces/IProvenBeacon.sol";
import {BlockhashBeacon} from "../contracts/beacons/BlockhashBeacon.sol";
import {DrandBeacon} from "../contracts/beacons/DrandBeacon.sol";
import {PrevrandaoBeacon} from "../contracts/beacons/PrevrandaoBeacon.sol";
import {BlsG1} from "../contracts/libraries/BlsG1.sol";
import {HeaderRlp} from "../contracts/libraries/HeaderRlp.sol";

/// What callers may rely on with every beacon: tickets, replacements, the last resort.
contract BeaconsTest is BeaconWorld {
    uint256 private constant NOW = 1_800_000_000;

    function all() private view returns (IBeacon[3] memory) {
        return [IBeacon(byHash), IBeacon(byRandao), IBeacon(byDrand)];
    }

    /// Let a ticket's moment and its time to be proved pass. `step` counts up.
    function lapse(IBeacon beacon, uint256 step) private {
        at(20_000 + 10_000 * step);
        vm.warp(NOW + 2 days * step);
        if (beacon != byDrand) withoutHistory();
    }

    function test_all_pins_of_one_block_share_a_ticket_and_store_nothing() public {
        for (uint256 i; i < 3; ++i) {
            IBeacon beacon = all()[i];
            uint256 ticket = pin(beacon);
            eq(pin(beacon), ticket, "another call");
            (bool done, bytes memory answer) = address(beacon).staticcall(abi.encodeCall(beacon.pin, ()));
            yes(done && uint256(bytes32(answer)) == ticket, "a pin writes nothing");
            print("gas of pin, beacon ", vm.lastCallGas().gasTotalUsed);
        }
    }

    function test_later_blocks_pin_later_moments() public {
        uint256[3] memory before = [pin(byHash), pin(byRandao), pin(byDrand)];
        at(20_001);
        vm.warp(NOW + 3);
        for (uint256 i; i < 3; ++i) eq(pin(all()[i]), before[i] + 1, "the next moment");
    }

    function test_no_seed_can_be_read_in_the_block_of_its_pin() public {
        refusedSeed(byHash, pin(byHash), notReady(pin(byHash), 20_000));
        refusedSeed(byRandao, pin(byRandao), notReady(pin(byRandao), 20_000));
        refusedSeed(byDrand, pin(byDrand), notReady(pin(byDrand), NOW));
    }

    function test_a_seed_depends_on_what_happens_after_the_pin(bytes32 one, bytes32 other) public {
        vm.assume(one != other && one != 0 && other != 0);
        uint256 ticket = pin(byRandao);
        uint256 hashed = pin(byHash);
        uint256 fork = vm.snapshotState();
        bytes32[2] memory seeds = futures(ticket, hashed, one);
        vm.revertToState(fork);
        bytes32[2] memory others = futures(ticket, hashed, other);
        yes(seeds[0] != others[0], "same state at the pin, another randomness, another seed");
        yes(seeds[1] != others[1], "same state at the pin, another hash, another seed");
    }

    function futures(uint256 ticket, uint256 hashed, bytes32 chance) private returns (bytes32[2] memory seeds) {
        at(20_002);
        recent(hashed, chance);
        seeds[1] = byHash.seedOf(hashed);
        at(ticket + 1);
        recent(ticket, keccak256(header(ticket, chance)));
        byRandao.prove(ticket, header(ticket, chance));
        seeds[0] = byRandao.seedOf(ticket);
    }

    function test_a_seed_is_bound_to_beacon_chain_and_ticket() public {
        at(20_100);
        recent(20_050, keccak256("hash"));
        bytes32 seed = byHash.seedOf(20_050);
        eq(seed, keccak256(abi.encode(address(byHash), block.chainid, 20_050, keccak256("hash"))), "what is hashed");
        recent(20_051, keccak256("hash"));
        yes(byHash.seedOf(20_051) != seed, "another ticket, same hash");
        yes(new BlockhashBeacon().seedOf(20_050) != seed, "another beacon");
        uint256 last = LAST | 20_050;
        bytes32 resort = byRandao.seedOf(last);
        eq(resort, keccak256(abi.encode(address(byRandao), block.chainid, last, keccak256("hash"))), "a last resort");
        vm.chainId(777);
        yes(byHash.seedOf(20_050) != seed, "another chain");
        yes(byRandao.seedOf(last) != resort, "another chain");
    }

    function test_tickets_that_share_a_moment_share_its_proof_and_not_its_seed() public {
        uint256 moment = 20_050;
        at(moment + 1);
        recent(moment, keccak256(header(moment, keccak256("randao"))));
        byRandao.prove(moment, header(moment, keccak256("randao")));
        uint256 replaced = (1 << 64) | moment;
        yes(byRandao.seedOf(moment) != byRandao.seedOf(replaced), "the replacements are part of the seed");
        yes(byRandao.seedOf(replaced) != byRandao.seedOf((2 << 64) | moment), "each of them");
        yes(byRandao.seedOf(replaced) != byRandao.seedOf(LAST | moment), "a last resort has another source");
    }

    function test_only_an_expired_ticket_is_replaced() public {
        refusedRepin(byHash, pin(byHash), 20_000);
        refusedRepin(byRandao, pin(byRandao), 20_000);
        refusedRepin(byDrand, pin(byDrand), NOW);
        refusedRepin(byDrand, LAST | 20_000, 20_000);
    }

    function test_the_third_replacement_and_all_after_it_are_last_resorts() public {
        for (uint256 i = 1; i < 3; ++i) {
            IBeacon beacon = all()[i];
            setUpClock();
            uint256 ticket = pin(beacon);
            for (uint256 step = 1; step < 6; ++step) {
                lapse(beacon, step);
                yes(beacon.expired(ticket), "nobody proved it");
                ticket = beacon.repin(ticket);
                eq(ticket >> 64, step < 3 ? step : 3, "replacements, counted to three");
                if (step < 3) eq(uint64(ticket), pin(beacon), "what a pin would fix now");
                else eq(uint64(ticket), 20_000 + 10_000 * step + LAST_LEAD, "a block that nobody has made");
                yes(!beacon.expired(ticket), "a new moment");
            }
        }
    }

    function setUpClock() private {
        at(20_000);
        vm.warp(NOW);
    }

    function test_a_last_resort_is_the_hash_of_the_block_that_its_repin_named() public {
        uint256 ticket = (2 << 64) | (20_000 + LEAD);
        at(30_000);
        withoutHistory();
        ticket = byRandao.repin(ticket);
        uint256 moment = 30_000 + LAST_LEAD;
        eq(ticket, LAST | moment, "128 blocks on");
        refusedSeed(byRandao, ticket, notReady(ticket, 30_000));
        at(moment);
        refusedSeed(byRandao, ticket, notReady(ticket, moment));
        at(moment + 1);
        recent(moment, keccak256("of the last resort"));
        bytes32 seed = byRandao.seedOf(ticket);
        eq(
            seed,
            keccak256(abi.encode(address(byRandao), block.chainid, ticket, keccak256("of the last resort"))),
            "it"
        );
        at(moment + REACH);
        eq(byRandao.seedOf(ticket), seed, "the last block that sees it");
        refusedRepin(byRandao, ticket, moment + REACH);
        at(moment + REACH + 1);
        yes(byRandao.expired(ticket), "out of reach");
        refusedSeed(byRandao, ticket, gone(ticket, moment + REACH + 1));
        eq(byRandao.repin(ticket), LAST | (moment + REACH + 1 + LAST_LEAD), "another last resort");
    }

    function test_a_last_resort_needs_no_proof() public {
        bytes memory error = abi.encodeWithSelector(IProvenBeacon.NothingToProve.selector, LAST | 20_000);
        refused(ANYONE, address(byRandao), abi.encodeCall(byRandao.prove, (LAST | 20_000, "")), error);
        refused(ANYONE, address(byDrand), abi.encodeCall(byDrand.prove, (LAST | 20_000, "")), error);
    }

    function test_whoever_lets_tickets_expire_gets_no_second_look_at_one() public {
        bytes32 randao = keccak256("randao");
        uint256 first = pin(byRandao);
        at(first + 1);
        recent(first, keccak256(header(first, randao)));
        refusedRepin(byRandao, first, first + 1); // it is known now, and cannot be exchanged
        withoutHistory();
        at(first + REACH);
        refusedRepin(byRandao, first, first + REACH);
        at(first + REACH + 1);
        uint256 second = byRandao.repin(first);
        bytes memory late = abi.encodeCall(byRandao.prove, (first, header(first, randao)));
        refused(ANYONE, address(byRandao), late, gone(first, first + REACH + 1));
        refusedSeed(byRandao, second, notReady(second, first + REACH + 1));
        eq(byRandao.repin(first), second, "all who replace it in this block get the same");
        uint256 moment = uint64(second);
        at(moment + 1);
        recent(moment, keccak256(header(moment, randao)));
        vm.prank(ANYONE); // one who proves is enough
        byRandao.prove(second, header(moment, randao));
        at(moment + 1_000_000);
        yes(!byRandao.expired(second), "for ever");
        refusedRepin(byRandao, second, moment + 1_000_000);
        byRandao.seedOf(second);
    }

    function test_numbers_that_no_pin_returns_are_unknown(uint256 ticket) public {
        unknown(4 << 64);
        unknown(0);
        unknown(2 << 64);
        unknown(bound(ticket, 4 << 64, type(uint256).max));
    }

    function unknown(uint256 ticket) private {
        bytes memory error = abi.encodeWithSelector(IBeacon.UnknownTicket.selector, ticket);
        for (uint256 i = 1; i < 3; ++i) {
            IBeacon beacon = all()[i];
            refusedSeed(beacon, ticket, error);
            refused(ANYONE, address(beacon), abi.encodeCall(beacon.repin, (ticket)), error);
            refused(ANYONE, address(beacon), abi.encodeCall(beacon.expired, (ticket)), error);
            refused(ANYONE, address(beacon), abi.encodeCall(IProvenBeacon.prove, (ticket, "")), error);
        }
    }

    function test_the_hash_beacon_reads_256_blocks_back_and_replaces_after() public {
        uint256 ticket = pin(byHash);
        at(ticket);
        refusedSeed(byHash, ticket, notReady(ticket, ticket));
        at(ticket + 1);
        bytes32 seed = byHash.seedOf(ticket);
        at(ticket + REACH);
        eq(byHash.seedOf(ticket), seed, "the last block that sees it");
        refusedRepin(byHash, ticket, ticket + REACH);
        at(ticket + REACH + 1);
        refusedSeed(byHash, ticket, gone(ticket, ticket + REACH + 1));
        eq(byHash.repin(ticket), ticket + REACH + 2, "as a pin");
    }

    function test_parameters_out_of_range_are_refused() public {
        refusedLead(127);
        refusedLead(43_201);
        eq(new PrevrandaoBeacon(128).lead(), 128, "the least");
        eq(new PrevrandaoBeacon(43_200).lead(), 43_200, "the most");
        bytes4 margin = DrandBeacon.MarginOutOfRange.selector;
        bytes4 patience = DrandBeacon.PatienceOutOfRange.selector;
        refusedDrand(59, PATIENCE, abi.encodeWithSelector(margin, 59, 60, 30 days));
        refusedDrand(30 days + 1, PATIENCE, abi.encodeWithSelector(margin, 30 days + 1, 60, 30 days));
        refusedDrand(60, 599, abi.encodeWithSelector(patience, 599, 600, 30 days));
        refusedDrand(60, 30 days + 1, abi.encodeWithSelector(patience, 30 days + 1, 600, 30 days));
        eq(new DrandBeacon(60, 600).margin(), 60, "the least");
        eq(new DrandBeacon(30 days, 30 days).patience(), 30 days, "the most");
    }

    function test_a_beacon_is_not_deployed_where_it_could_prove_nothing() public {
        uint256[3] memory constants = [uint256(0), 1, (1 << 64) - 1]; // none, Arbitrum's, the largest difficulty
        for (uint256 i; i < 3; ++i) {
            cheat.prevrandao(bytes32(constants[i]));
            vm.expectRevert(abi.encodeWithSelector(HeaderRlp.NoRandomness.selector, 20_000));
            new PrevrandaoBeacon(LEAD);
        }
        cheat.prevrandao(bytes32(uint256(1 << 64)));
        eq(new PrevrandaoBeacon(LEAD).lead(), LEAD, "the least that is randomness");
        cheat.mockCall(address(0x10), "", ""); // as a call to an account without code
        vm.expectRevert(abi.encodeWithSelector(BlsG1.PrecompileFailed.selector, address(0x10)));
        new DrandBeacon(MARGIN, PATIENCE);
    }

    function refusedLead(uint256 lead) private {
        vm.expectRevert(abi.encodeWithSelector(PrevrandaoBeacon.LeadOutOfRange.selector, lead, 128, 43_200));
        new PrevrandaoBeacon(lead);
    }

    function refusedDrand(uint256 margin, uint256 patience, bytes memory error) private {
        vm.expectRevert(error);
        new DrandBeacon(margin, patience);
    }
}
