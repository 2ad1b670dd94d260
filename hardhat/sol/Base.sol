// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// The cheat codes that these tests use (a part of Foundry's Vm).
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    function lastCallGas() external view returns (Gas memory gas);
    function prank(address caller) external;
    function startPrank(address caller) external;
    function stopPrank() external;
    function warp(uint256 time) external;
    function roll(uint256 height) external;
    function chainId(uint256 id) external;
    function etch(address target, bytes calldata code) external;
    function assume(bool condition) external pure;
    function expectRevert() external;
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata data) external;
    function addr(uint256 key) external pure returns (address);
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function computeCreateAddress(address deployer, uint256 nonce) external pure returns (address);
    function getNonce(address account) external view returns (uint64);
    function getCode(string calldata name) external view returns (bytes memory);
    function readFile(string calldata path) external view returns (string memory text);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function parseJsonBool(string calldata json, string calldata key) external pure returns (bool);
    function snapshotState() external returns (uint256 id);
    function revertToState(uint256 id) external returns (bool);
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
}

/// Asserts that say what was expected, and the clock.
abstract contract Base {
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    uint256 internal constant TOKEN = 1e18;

    error NotEqual(string what, uint256 have, uint256 need);
    error NotEqualWords(string what, bytes32 have, bytes32 need);
    error NotTrue(string what);
    error NotRefused(bytes call, bytes need);
    error RefusedOtherwise(bytes have, bytes need);

    uint256 private _now = 1_700_000_000;
    uint256 private _height = 1_000;

    /// `seconds_` later, in as many blocks as it takes at one a second, at most 20: no beacon expires by it.
    function pass(uint256 seconds_) internal {
        _now += seconds_;
        _height += seconds_ > 20 ? 20 : seconds_;
        vm.warp(_now);
        vm.roll(_height);
    }

    /// `blocks` more blocks in the same second.
    function mine(uint256 blocks) internal {
        _height += blocks;
        vm.warp(_now);
        vm.roll(_height);
    }

    /// Move to that second exactly.
    function passTo(uint256 second) internal {
        pass(second - _now);
    }

    function clock() internal view returns (uint256) {
        return _now;
    }

    function height() internal view returns (uint256) {
        return _height;
    }

    function bound(uint256 x, uint256 low, uint256 high) internal pure returns (uint256) {
        if (high - low == type(uint256).max) return x;
        return low + (x % (high - low + 1));
    }

    /// The call fails with exactly that error.
    function refused(address caller, address target, bytes memory data, bytes memory error) internal {
        vm.prank(caller);
        (bool done, bytes memory answer) = target.call(data);
        if (done) revert NotRefused(data, error);
        if (keccak256(answer) != keccak256(error)) revert RefusedOtherwise(answer, error);
    }

    /// The call fails with that kind of error, whatever its facts.
    function refused(address caller, address target, bytes memory data, bytes4 error) internal {
        vm.prank(caller);
        (bool done, bytes memory answer) = target.call(data);
        if (done) revert NotRefused(data, abi.encodePacked(error));
        if (bytes4(answer) != error) revert RefusedOtherwise(answer, abi.encodePacked(error));
    }

    function eq(uint256 have, uint256 need, string memory what) internal pure {
        if (have != need) revert NotEqual(what, have, need);
    }

    function eq(address have, address need, string memory what) internal pure {
        if (have != need) revert NotEqual(what, uint160(have), uint160(need));
    }

    function eq(bytes32 have, bytes32 need, string memory what) internal pure {
        if (have != need) revert NotEqualWords(what, have, need);
    }

    function yes(bool condition, string memory what) internal pure {
        if (!condition) revert NotTrue(what);
    }

    function one(uint16 shard) internal pure returns (uint16[] memory list) {
        list = new uint16[](1);
        list[0] = shard;
    }

    function range(uint16 from, uint16 to) internal pure returns (uint16[] memory list) {
        list = new uint16[](to - from);
        for (uint16 i; i < list.length; ++i) list[i] = from + i;
    }
}
