// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {BeaconWorld} from "./BeaconWorld.sol";
import {DrandBeacon} from "../contracts/beacons/DrandBeacon.sol";

/// Rounds that drand's quicknet has published. Signatures are given as published (compressed), and as points, with the
/// y that solves the curve's equation.
/// 42: docs.drand.love, developer/http-api. 1000: ideal-lab5/idn-sdk, primitives/crypto/src/test_utils.rs; its randomness
/// as drand's relays serve it with the round. 20905307: randa-mu/bls-solidity, test/data/drand_quicknet.json.
contract DrandTest is BeaconWorld {
    struct Published {
        uint256 round;
        bytes signature;
        bytes point;
    }

    uint256 private constant GENESIS = 1_692_803_367;
    bytes32 private constant RANDOMNESS_1000 = 0xfe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd;
    bytes private constant POINT_1000 =
        hex"144679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
        hex"11f92e4521ef54f047b64b85fa98db2d46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2";
    bytes private constant SIGNATURE_1000 =
        hex"b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39";

    function published() private pure returns (Published[3] memory p) {
        p[0] = Published(
            42,
            hex"95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a",
            hex"15a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a"
            hex"05b5c086615e8435b242b95593c258658b5f7b0e0181870d13f88a1d06275046e42db0886eb64885e980c926403ced18"
        );
        p[1] = Published(1000, SIGNATURE_1000, POINT_1000);
        p[2] = Published(
            20_905_307,
            hex"8a60486975062d9f06633c284cf1a7b46fb343f56f329f180530ca40a9e86320244f4fbfc37ae866cf25ef499665a31f",
            hex"0a60486975062d9f06633c284cf1a7b46fb343f56f329f180530ca40a9e86320244f4fbfc37ae866cf25ef499665a31f"
            hex"08c61b5471ed86344d6b347d1b0e1a4146877a57c28507448678d8249521d91be74cd5a44fb6fce5f869b235e085ebe6"
        );
    }

    function timeOf(uint256 round) private pure returns (uint256) {
        return GENESIS + 3 * (round - 1);
    }

    function refusedProof(uint256 round, bytes memory point, bytes memory error) private {
        refused(ANYONE, address(byDrand), abi.encodeCall(byDrand.prove, (round, point)), error);
    }

    /// A proof that fails in the pairing, which burns what it is given.
    function wrong(uint256 round, bytes memory point) private {
        bytes memory call = abi.encodeCall(byDrand.prove, (round, point));
        (bool done, bytes memory answer) = address(byDrand).call{gas: 500_000}(call);
        yes(!done, "refused");
        bytes memory error = abi.encodeWithSelector(DrandBeacon.WrongSignature.selector, round);
        eq(keccak256(answer), keccak256(error), "as a wrong signature");
    }

    function test_published_rounds_are_proved_and_give_the_published_randomness() public {
        for (uint256 i; i < 3; ++i) {
            Published memory p = published()[i];
            vm.warp(timeOf(p.round));
            byDrand.prove(p.round, p.point);
            print("gas of a drand proof", vm.lastCallGas().gasTotalUsed);
            eq(byDrand.outcomeOf(p.round), sha256(p.signature), "sha256 of the published signature");
            bytes32 seed = keccak256(abi.encode(address(byDrand), block.chainid, p.round, sha256(p.signature)));
            eq(byDrand.seedOf(p.round), seed, "the seed");
        }
        eq(byDrand.outcomeOf(1000), RANDOMNESS_1000, "the randomness that drand published");
    }

    function test_a_signature_proves_its_own_round_only() public {
        vm.warp(timeOf(1000) + 3);
        wrong(1001, POINT_1000);
        wrong(999, POINT_1000);
        wrong(42, POINT_1000);
    }

    function test_a_bent_signature_proves_nothing(uint256 position, uint8 flip) public {
        vm.warp(timeOf(1000));
        bytes memory bent = POINT_1000;
        bent[bound(position, 0, 95)] ^= bytes1(flip == 0 ? 1 : flip);
        wrong(1000, bent);
    }

    function test_a_round_has_one_proof_only() public {
        vm.warp(timeOf(1000));
        bytes memory x =
            hex"144679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39";
        bytes memory y =
            hex"11f92e4521ef54f047b64b85fa98db2d46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2";
        wrong(
            1000,
            bytes.concat(
                x,
                hex"0807e3a5179091aa03655c3048b2d1aa1d86573a1665b20627a6c4e3194d42d4fb25a83bd81912e700f32229f5fdf3d9"
            )
        ); // -y
        wrong(
            1000,
            bytes.concat(
                hex"2e478ba3df1ad986d286c2215e20db8115d8ab488bb02c16ca81cbd53e7c074a01eeb7393f26bacb9e7d4b6b63ed08e4",
                y
            )
        ); // x + p
        wrong(
            1000,
            bytes.concat(
                x,
                hex"2bfa402f5b6f3b8a92d1f33c3de48804ab683fcfd0a47378a6bae05ed414a973423257c18a8eed18730addd60a01617d"
            )
        ); // y + p
        wrong(1000, bytes.concat(y, x));
        wrong(1000, new bytes(96)); // the point at infinity
        byDrand.prove(1000, bytes.concat(x, y));
    }

    function test_proofs_of_another_size_are_refused(uint8 size) public {
        vm.warp(timeOf(1000));
        vm.assume(size != 96);
        bytes memory error = abi.encodeWithSelector(DrandBeacon.WrongSize.selector, uint256(size), 96);
        refusedProof(1000, new bytes(size), error);
        refusedProof(1000, SIGNATURE_1000, abi.encodeWithSelector(DrandBeacon.WrongSize.selector, 48, 96));
    }

    function test_a_round_is_proved_from_its_second_to_the_end_of_the_patience() public {
        uint256 first = timeOf(1000);
        vm.warp(first - 1);
        refusedProof(1000, POINT_1000, notReady(1000, first - 1));
        refusedSeed(byDrand, 1000, notReady(1000, first - 1));
        yes(!byDrand.expired(1000), "to come");
        uint256 fork = vm.snapshotState();
        vm.warp(first);
        refusedSeed(byDrand, 1000, notReady(1000, first));
        byDrand.prove(1000, POINT_1000);
        vm.revertToState(fork);
        vm.warp(first + PATIENCE);
        yes(!byDrand.expired(1000), "the last second");
        refusedRepin(byDrand, 1000, first + PATIENCE);
        fork = vm.snapshotState();
        byDrand.prove(1000, POINT_1000);
        vm.revertToState(fork);
        vm.warp(first + PATIENCE + 1);
        yes(byDrand.expired(1000), "nobody proved it");
        refusedProof(1000, POINT_1000, gone(1000, first + PATIENCE + 1));
        refusedSeed(byDrand, 1000, gone(1000, first + PATIENCE + 1));
        eq(byDrand.repin(1000), (1 << 64) | byDrand.pin(), "a later round");
    }

    function test_a_proved_round_never_expires() public {
        vm.warp(timeOf(1000));
        byDrand.prove(1000, POINT_1000);
        bytes32 seed = byDrand.seedOf(1000);
        vm.warp(timeOf(1000) + 10 * PATIENCE);
        byDrand.prove(1000, ""); // a second proof is not looked at
        eq(byDrand.seedOf(1000), seed, "the same");
        yes(!byDrand.expired(1000), "for ever");
        refusedRepin(byDrand, 1000, timeOf(1000) + 10 * PATIENCE);
    }

    function test_a_pinned_round_is_the_first_that_lies_beyond_the_margin(uint256 now_) public {
        now_ = bound(now_, GENESIS, 1 << 62);
        vm.warp(now_);
        uint256 round = pin(byDrand);
        yes(byDrand.timeOf(round) > now_ + MARGIN, "beyond");
        yes(byDrand.timeOf(round - 1) <= now_ + MARGIN, "the first");
        eq(byDrand.timeOf(round), timeOf(round), "by drand's clock");
    }

    function test_a_chain_clock_behind_by_the_margin_pins_no_known_round_and_one_further_behind_may(
        uint256 world
    ) public {
        world = bound(world, GENESIS + 2 * MARGIN, 1 << 62);
        vm.warp(world - MARGIN);
        yes(byDrand.timeOf(pin(byDrand)) > world, "drand has not published it");
        vm.warp(world - MARGIN - 3);
        yes(byDrand.timeOf(pin(byDrand)) <= world, "drand has published it");
    }
}
