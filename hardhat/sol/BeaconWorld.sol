// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Base} from "./Base.sol";
import {IBeacon} from "../contracts/interfaces/IBeacon.sol";
import {BlockhashBeacon} from "../contracts/beacons/BlockhashBeacon.sol";
import {DrandBeacon} from "../contracts/beacons/DrandBeacon.sol";
import {PrevrandaoBeacon} from "../contracts/beacons/PrevrandaoBeacon.sol";
import {HeaderRlp} from "../contracts/libraries/HeaderRlp.sol";

/// More of Foundry's cheat codes: what a chain remembers of its blocks.
interface ChainVm {
    function store(address account, bytes32 slot, bytes32 value) external;
    function etch(address account, bytes calldata code) external;
    function prevrandao(bytes32 randao) external;
    function setBlockhash(uint256 height, bytes32 hash) external;
    function mockCall(address account, bytes calldata data, bytes calldata answer) external;
    function clearMockedCalls() external;
}

/// The library as a contract, so that it reads calldata and its errors can be compared.
contract HeaderReader {
    function randaoOf(bytes calldata header, uint256 height) external pure returns (bytes32) {
        return HeaderRlp.randaoOf(header, height);
    }
}

/// Three beacons, blocks with headers, and a chain that remembers their hashes.
abstract contract BeaconWorld is Base {
    ChainVm internal constant cheat = ChainVm(address(vm));
    address internal constant HISTORY = 0x0000F90827F1C53a10cb7A02335B175320002935;
    /// The history contract of EIP-2935, as the EIP gives it; Hardhat's own refuses to answer.
    bytes internal constant HISTORY_CODE =
        hex"3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500";
    uint256 internal constant HISTORY_REACH = 8191;
    uint256 internal constant REACH = 256;
    uint256 internal constant LAST = 3 << 64;
    uint256 internal constant LAST_LEAD = 128;
    uint256 internal constant LEAD = 164;
    uint256 internal constant MARGIN = 900;
    uint256 internal constant PATIENCE = 1 days;
    address internal constant ANYONE = address(0xA11);
    address private constant CONSOLE = address(0x000000000000000000636F6e736F6c652e6c6f67);

    BlockhashBeacon internal byHash;
    PrevrandaoBeacon internal byRandao;
    DrandBeacon internal byDrand;

    function setUp() public virtual {
        at(20_000);
        vm.warp(1_800_000_000);
        cheat.prevrandao(keccak256("proof of stake"));
        byHash = new BlockhashBeacon();
        byRandao = new PrevrandaoBeacon(LEAD);
        byDrand = new DrandBeacon(MARGIN, PATIENCE);
    }

    function at(uint256 block_) internal {
        vm.roll(block_);
    }

    function withHistory() internal {
        cheat.etch(HISTORY, HISTORY_CODE);
    }

    /// A chain without EIP-2935.
    function withoutHistory() internal {
        cheat.etch(HISTORY, "");
    }

    /// What BLOCKHASH says of a block, for as long as it reaches.
    function recent(uint256 block_, bytes32 hash) internal {
        cheat.setBlockhash(block_, hash);
    }

    /// What the history contract says of a block, for as long as it reaches.
    function old(uint256 block_, bytes32 hash) internal {
        cheat.store(HISTORY, bytes32(block_ % HISTORY_REACH), hash);
    }

    /// The ticket of a pin by anyone.
    function pin(IBeacon beacon) internal returns (uint256 ticket) {
        vm.prank(ANYONE);
        return beacon.pin();
    }

    function notReady(uint256 ticket, uint256 now_) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IBeacon.SeedNotReady.selector, ticket, now_);
    }

    function gone(uint256 ticket, uint256 now_) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IBeacon.SeedExpired.selector, ticket, now_);
    }

    function refusedSeed(IBeacon beacon, uint256 ticket, bytes memory error) internal {
        refused(ANYONE, address(beacon), abi.encodeCall(beacon.seedOf, (ticket)), error);
    }

    function refusedRepin(IBeacon beacon, uint256 ticket, uint256 now_) internal {
        bytes memory error = abi.encodeWithSelector(IBeacon.NotExpired.selector, ticket, now_);
        refused(ANYONE, address(beacon), abi.encodeCall(beacon.repin, (ticket)), error);
    }

    /// 21 fields as after Ethereum's Prague upgrade; all but the height and the randomness are arbitrary.
    function fields(uint256 height_, bytes32 randao) internal pure returns (bytes[] memory f) {
        f = new bytes[](21);
        for (uint256 i; i < 21; ++i) f[i] = text(abi.encode(keccak256(abi.encode("field", i))));
        f[2] = text(hex"4838b106fce9647bdf1e7877bf73ce8b0bad5f97");
        f[6] = text(new bytes(256));
        f[7] = text("");
        f[8] = number(height_);
        f[9] = number(60_000_000);
        f[10] = number(0);
        f[11] = number(1_800_000_000);
        f[12] = text("builder");
        f[13] = text(abi.encode(randao));
        f[14] = text(new bytes(8));
        f[15] = number(7);
        f[17] = number(127);
        f[18] = number(128);
    }

    function header(uint256 height_, bytes32 randao) internal pure returns (bytes memory) {
        return list(join(fields(height_, randao)));
    }

    function join(bytes[] memory items) internal pure returns (bytes memory content) {
        for (uint256 i; i < items.length; ++i) content = bytes.concat(content, items[i]);
    }

    /// RLP of a number: big endian without leading zeros.
    function number(uint256 value) internal pure returns (bytes memory) {
        bytes memory digits;
        for (; value != 0; value >>= 8) digits = bytes.concat(bytes1(uint8(value)), digits);
        return text(digits);
    }

    /// RLP of a string.
    function text(bytes memory content) internal pure returns (bytes memory) {
        if (content.length == 1 && uint8(content[0]) < 0x80) return content;
        return bytes.concat(prefix(content.length, 0x80), content);
    }

    /// RLP of a list.
    function list(bytes memory content) internal pure returns (bytes memory) {
        return bytes.concat(prefix(content.length, 0xc0), content);
    }

    function prefix(uint256 size, uint8 base) internal pure returns (bytes memory) {
        if (size < 56) return abi.encodePacked(base + uint8(size));
        if (size < 256) return abi.encodePacked(base + 56, uint8(size));
        return abi.encodePacked(base + 57, uint16(size));
    }

    function print(string memory line, uint256 value) internal view {
        (bool ok, ) = CONSOLE.staticcall(abi.encodeWithSignature("log(string,uint256)", line, value));
        yes(ok, "printed");
    }
}
