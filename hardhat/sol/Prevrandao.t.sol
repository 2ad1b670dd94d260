// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {BeaconWorld, HeaderReader} from "./BeaconWorld.sol";
import {IProvenBeacon} from "../contracts/interfaces/IProvenBeacon.sol";
import {PrevrandaoBeacon} from "../contracts/beacons/PrevrandaoBeacon.sol";
import {HeaderRlp} from "../contracts/libraries/HeaderRlp.sol";
import {Vm} from "./Base.sol";

/// Headers as proofs: which block, from which memory of the chain, and only in the one form that its hash covers.
contract PrevrandaoTest is BeaconWorld {
    bytes32 private constant RANDAO = keccak256("randao");
    /// Ethereum's block 25930330, 0xd0821d79…f3f12a, encoded from its published fields.
    uint256 private constant REAL_HEIGHT = 25_930_330;
    bytes32 private constant REAL_HASH = 0xd0821d79e728073edcb128821c5c532decb6eb860796a88266fd379f4ef3f12a;
    bytes32 private constant REAL_RANDAO = 0x2345d8e57dca5c309071def74a6e0348587de0a7fe3f5156d23485004772e3d7;
    bytes private constant REAL_HEADER =
        hex"f90286a0f8905e811d10e5e7ac05a8a195121867db054cefe3ef8d5dc507f7f5605a6d1aa01dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347944838b106fce9647bdf1e7877bf73ce8b0bad5f97a09253e9ef711228f1bc2db88ea20bcbb0c5ec2e5ce11479f0a0efad946d90fe9ba00caa872b"
        hex"49a456eeb384b5356a380ae978341e2034da03dcb335e3dc01a95791a0dcf2b51471e19ee97b55390e5ee90ecf9593f38cd0633c81c43a24d8239acb18b90100a4ebdae7c7ec6ffdbf54dffee6bf3fc7dbd69d1c76e4a798ed4beadebc76faf7bfd9efefe17fd1b6ffd37fbb6e3f3fcb6fafe3fcfebb7fdefefdff9eb57f9f67"
        hex"dff6d76445e6cffeefdaa9efaffbb3ef7fa97637bbffa735ff76dff4f73d5dfdbf16f75fb3f4654bff55b9f99fbffe6fe62be67eedb6bf67abd66bbf177ee7f1eb79eefdf75c37fbfebff77957bbdffae6dddef7ff6f6d5ee6e5f96671dffda74fd63babf7c9e65ffffde7f5ff7f5fcbdfd6ab7ffe52ff9fd2ed5776772d91d3"
        hex"ffe57fd7dececdff18c7afd3e97eefcd23ffafc3efeff3ff11df8bd73ff8eae7feb3af2efbef7dbede7a7fce7ef5fd677ff7f7afffb08fcb071bf7fff9dbf5f78084018baa5a84039387008401db7e4d846a9f925398546974616e2028746974616e6275696c6465722e78797a29a02345d8e57dca5c309071def74a6e034858"
        hex"7de0a7fe3f5156d23485004772e3d78800000000000000008403fdeb01a0cd50d01122559312624f0b42b77ceebfce6eb78c6fd7ae7755ac51d122eb1ce0830a0000840a93e499a0abbdecf3bc81408f562e123ea02b307c224f945eda14397f06775cfef1119ad6a0e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b93"
        hex"4ca495991b7852b855";

    HeaderReader private reader;
    uint256 private ticket;

    function setUp() public override {
        super.setUp();
        reader = new HeaderReader();
        ticket = pin(byRandao);
    }

    function proof(bytes memory header_) private view returns (bytes memory) {
        return abi.encodeCall(byRandao.prove, (ticket, header_));
    }

    function refusedHeader(bytes memory header_, uint256 height_, bytes memory error) private {
        refused(ANYONE, address(reader), abi.encodeCall(reader.randaoOf, (header_, height_)), error);
    }

    function malformed(bytes memory header_, uint256 offset) private {
        refusedHeader(header_, 5, abi.encodeWithSelector(HeaderRlp.MalformedHeader.selector, offset));
    }

    /// A header of height 5 with one item replaced by raw bytes.
    function changed(uint256 field, bytes memory raw) private pure returns (bytes memory) {
        bytes[] memory f = fields(5, RANDAO);
        f[field] = raw;
        return list(join(f));
    }

    /// Where an item of `fields(5, …)` starts.
    function offsetOf(uint256 field) private pure returns (uint256 offset) {
        bytes[] memory f = fields(5, RANDAO);
        offset = 3;
        for (uint256 i; i < field; ++i) offset += f[i].length;
    }

    function test_a_real_header_of_ethereum_is_read() public {
        eq(keccak256(REAL_HEADER), REAL_HASH, "the published hash");
        eq(reader.randaoOf(REAL_HEADER, REAL_HEIGHT), REAL_RANDAO, "the published mixHash");
        at(REAL_HEIGHT + 1);
        recent(REAL_HEIGHT, REAL_HASH);
        byRandao.prove(REAL_HEIGHT, REAL_HEADER);
        print("gas of a header's proof", vm.lastCallGas().gasTotalUsed);
        eq(byRandao.outcomeOf(REAL_HEIGHT), REAL_RANDAO, "stored");
        bytes32 seed = keccak256(abi.encode(address(byRandao), block.chainid, REAL_HEIGHT, REAL_RANDAO));
        eq(byRandao.seedOf(REAL_HEIGHT), seed, "the seed");
    }

    function test_a_pin_names_the_block_that_lies_the_lead_ahead() public view {
        eq(ticket, 20_000 + LEAD, "ahead of the pin");
    }

    function test_a_block_is_proved_from_the_one_after_it() public {
        at(ticket);
        refused(ANYONE, address(byRandao), proof(header(ticket, RANDAO)), notReady(ticket, ticket));
        at(ticket + 1);
        recent(ticket, keccak256(header(ticket, RANDAO)));
        refusedSeed(byRandao, ticket, notReady(ticket, ticket + 1));
        byRandao.prove(ticket, header(ticket, RANDAO));
        yes(byRandao.seedOf(ticket) != 0, "at once");
    }

    function test_without_a_history_contract_a_block_is_proved_for_256_blocks() public {
        withoutHistory();
        uint256 last = ticket + REACH;
        at(last);
        recent(ticket, keccak256(header(ticket, RANDAO)));
        yes(!byRandao.expired(ticket), "the last block that sees it");
        uint256 fork = vm.snapshotState();
        byRandao.prove(ticket, header(ticket, RANDAO));
        vm.revertToState(fork);
        at(last + 1);
        yes(byRandao.expired(ticket), "out of reach");
        refusedSeed(byRandao, ticket, gone(ticket, last + 1));
        refused(ANYONE, address(byRandao), proof(header(ticket, RANDAO)), gone(ticket, last + 1));
    }

    function test_with_a_history_contract_a_block_is_proved_for_8191_blocks() public {
        withHistory();
        uint256 last = ticket + HISTORY_REACH;
        at(last);
        old(ticket, keccak256(header(ticket, RANDAO)));
        yes(!byRandao.expired(ticket), "the last block that sees it");
        uint256 fork = vm.snapshotState();
        byRandao.prove(ticket, header(ticket, RANDAO));
        print("gas of an old header's proof", vm.lastCallGas().gasTotalUsed);
        vm.revertToState(fork);
        at(last + 1);
        yes(byRandao.expired(ticket), "out of reach");
        refused(ANYONE, address(byRandao), proof(header(ticket, RANDAO)), gone(ticket, last + 1));
    }

    function test_a_history_contract_that_knows_nothing_yet_expires_nothing_early() public {
        withHistory(); // its slots are empty: the upgrade is younger than the block
        at(ticket + REACH);
        yes(!byRandao.expired(ticket), "BLOCKHASH still sees it");
        at(ticket + REACH + 1);
        yes(byRandao.expired(ticket), "zero is not a hash");
        refused(ANYONE, address(byRandao), proof(""), gone(ticket, ticket + REACH + 1));
    }

    function test_a_history_contract_that_answers_in_another_form_is_not_believed() public {
        bytes[3] memory codes = [bytes(hex"602a5f5360015ff3"), hex"602a5f5260405ff3", hex"fe"]; // 1 byte, 64 bytes, none
        at(ticket + REACH + 1);
        for (uint256 i; i < 3; ++i) {
            cheat.etch(HISTORY, codes[i]);
            yes(byRandao.expired(ticket), "not an answer");
        }
        cheat.etch(HISTORY, hex"602a5f5260205ff3"); // 42 in 32 bytes
        yes(!byRandao.expired(ticket), "an answer");
    }

    function test_a_second_proof_changes_nothing() public {
        at(ticket + 1);
        recent(ticket, keccak256(header(ticket, RANDAO)));
        byRandao.prove(ticket, header(ticket, RANDAO));
        bytes32 seed = byRandao.seedOf(ticket);
        recent(ticket, keccak256(header(ticket, "other")));
        vm.recordLogs();
        byRandao.prove(ticket, header(ticket, "other"));
        byRandao.prove(ticket, "");
        eq(vm.getRecordedLogs().length, 0, "no event");
        eq(byRandao.seedOf(ticket), seed, "the first stays");
        at(ticket + 1_000_000);
        byRandao.prove((1 << 64) | ticket, "");
        eq(byRandao.seedOf(ticket), seed, "for ever");
    }

    function test_a_proof_is_announced_with_the_randomness() public {
        at(ticket + 1);
        recent(ticket, keccak256(header(ticket, RANDAO)));
        vm.recordLogs();
        byRandao.prove(ticket, header(ticket, RANDAO));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        eq(logs.length, 1, "one event");
        eq(logs[0].topics[0], IProvenBeacon.Proved.selector, "of this kind");
        eq(uint256(logs[0].topics[1]), ticket, "the block");
        eq(bytes32(logs[0].data), RANDAO, "its randomness");
    }

    function test_only_the_header_that_the_chain_remembers_is_a_proof(uint256 position, uint8 flip) public {
        bytes memory true_ = header(ticket, RANDAO);
        at(ticket + 1);
        recent(ticket, keccak256(true_));
        wrong(header(ticket, "other"), keccak256(true_));
        wrong(header(ticket + 1, RANDAO), keccak256(true_));
        wrong("", keccak256(true_));
        wrong(bytes.concat(true_, hex"00"), keccak256(true_));
        bytes memory bent = header(ticket, RANDAO);
        position = bound(position, 0, bent.length - 1);
        bent[position] ^= bytes1(flip == 0 ? 1 : flip);
        wrong(bent, keccak256(true_));
    }

    function wrong(bytes memory header_, bytes32 need) private {
        bytes4 kind = PrevrandaoBeacon.WrongHeader.selector;
        refused(ANYONE, address(byRandao), proof(header_), abi.encodeWithSelector(kind, keccak256(header_), need));
    }

    function test_the_header_of_another_block_is_refused_even_where_a_chain_mixes_them_up() public {
        at(ticket + 1);
        recent(ticket, keccak256(header(ticket - 1, RANDAO)));
        bytes memory error = abi.encodeWithSelector(HeaderRlp.WrongHeight.selector, ticket - 1, ticket);
        refused(ANYONE, address(byRandao), proof(header(ticket - 1, RANDAO)), error);
    }

    function test_a_chain_without_proof_of_stake_gives_no_randomness() public {
        bytes memory error = abi.encodeWithSelector(HeaderRlp.NoRandomness.selector, 5);
        refusedHeader(changed(7, number(2)), 5, error); // a difficulty
        refusedHeader(header(5, 0), 5, error); // field 13 is not used
    }

    function test_every_height_is_read_back(uint256 height_, bytes32 randao) public view {
        if (randao == 0) randao = RANDAO;
        eq(reader.randaoOf(header(height_, randao), height_), randao, "what was written");
    }

    function test_a_truncated_header_is_refused_at_every_length(uint256 size) public {
        bytes memory whole = header(5, RANDAO);
        size = bound(size, 0, whole.length - 1);
        bytes memory cut = new bytes(size);
        for (uint256 i; i < size; ++i) cut[i] = whole[i];
        malformed(cut, 0);
        // cut between two fields, with a size that fits what is left
        bytes[] memory few = new bytes[](bound(size, 3, 15));
        bytes[] memory f = fields(5, RANDAO);
        for (uint256 i; i < few.length; ++i) few[i] = f[i];
        malformed(list(join(few)), list(join(few)).length);
        // cut within a field, with a size that fits what is left
        bytes memory content = join(f);
        bytes memory part = new bytes(content.length - 1);
        for (uint256 i; i < part.length; ++i) part[i] = content[i];
        malformed(list(part), offsetOf(20));
    }

    function test_extra_bytes_are_refused() public {
        bytes memory whole = header(5, RANDAO);
        malformed(bytes.concat(whole, hex"00"), 0);
        malformed(bytes.concat(whole, whole), 0);
        malformed(list(whole), 3); // a list in a list
        malformed(changed(16, list(new bytes(3))), offsetOf(16)); // a list in a field that nobody reads
        malformed(changed(2, text(new bytes(21))), offsetOf(2));
    }

    function test_fields_of_later_forks_may_follow() public view {
        bytes[] memory f = new bytes[](25);
        for (uint256 i; i < 25; ++i) f[i] = i < 21 ? fields(5, RANDAO)[i] : text(abi.encode(i));
        eq(reader.randaoOf(list(join(f)), 5), RANDAO, "25 fields");
    }

    function test_every_fixed_field_has_its_size() public {
        uint8[9] memory fixed_ = [0, 1, 2, 3, 4, 5, 6, 13, 14];
        for (uint256 i; i < 9; ++i) {
            malformed(changed(fixed_[i], text("")), offsetOf(fixed_[i]));
            malformed(changed(fixed_[i], text(new bytes(31))), offsetOf(fixed_[i]));
            malformed(changed(fixed_[i], text(new bytes(33))), offsetOf(fixed_[i]));
        }
    }

    function test_numbers_have_no_leading_zeros_and_at_most_32_bytes() public {
        for (uint256 field = 8; field < 12; ++field) {
            malformed(changed(field, hex"00"), offsetOf(field)); // zero is the empty string
            malformed(changed(field, hex"820005"), offsetOf(field));
            malformed(changed(field, text(abi.encodePacked(uint8(1), uint256(5)))), offsetOf(field));
        }
        malformed(changed(7, hex"00"), offsetOf(7));
    }

    function test_sizes_have_one_form_only() public {
        malformed(changed(8, hex"8105"), offsetOf(8)); // 5 is its own encoding
        malformed(changed(12, hex"b80141"), offsetOf(12)); // a short string with a long prefix
        malformed(changed(12, hex"b837"), offsetOf(12)); // 55 bytes with a long prefix
        malformed(changed(6, bytes.concat(hex"ba000100", new bytes(256))), offsetOf(6)); // a zero before the size
        malformed(changed(6, bytes.concat(hex"b800", new bytes(256))), offsetOf(6)); // a size of nothing
        bytes memory content = join(fields(5, RANDAO));
        malformed(bytes.concat(hex"fa00", bytes2(uint16(content.length)), content), 0);
        malformed(hex"c0", 0); // an empty list
        malformed(hex"f800", 0);
        malformed(hex"f837", 0);
        malformed(text(content), 0); // a string, not a list
    }

    function test_huge_sizes_are_refused_without_overflow() public {
        malformed(changed(20, hex"bfffffffffffffffff"), offsetOf(20)); // 2^64 - 1 bytes
        malformed(changed(20, hex"bf8000000000000000"), offsetOf(20));
        malformed(changed(20, hex"bf"), offsetOf(20)); // the size itself is missing
        malformed(changed(20, hex"b9ffff"), offsetOf(20));
        malformed(hex"ffffffffffffffffff", 0);
        malformed(hex"ff", 0);
        malformed(hex"f9ffff", 0);
    }
}
