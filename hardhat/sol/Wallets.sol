// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// A contract that owns: it says yes to what its one key signed, and makes the calls that it is told.
contract Wallet is IERC1271 {
    address private immutable _key;

    constructor(address key) {
        _key = key;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) public view virtual returns (bytes4) {
        (address signer, , ) = ECDSA.tryRecover(hash, signature);
        return signer == _key ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function run(address target, bytes calldata data) external returns (bytes memory answer) {
        bool done;
        (done, answer) = target.call(data);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }
}

/// Says yes in even seconds and no in odd ones, whatever it is shown.
contract FickleWallet is Wallet(address(1)) {
    function isValidSignature(bytes32, bytes calldata) public view override returns (bytes4) {
        return block.timestamp % 2 == 0 ? IERC1271.isValidSignature.selector : bytes4(0);
    }
}

/// Uses up all gas that it is given.
contract GreedyWallet is Wallet(address(1)) {
    function isValidSignature(bytes32, bytes calldata) public view override returns (bytes4) {
        uint256 i;
        while (gasleft() > 0) ++i;
        return bytes4(bytes32(i));
    }
}

/// Refuses with a megabyte of reasons.
contract LoudWallet is Wallet(address(1)) {
    function isValidSignature(bytes32, bytes calldata) public pure override returns (bytes4) {
        assembly {
            revert(0, 0x100000)
        }
    }
}

/// Answers with a word that begins like a yes and goes on.
contract SloppyWallet is Wallet(address(1)) {
    function isValidSignature(bytes32, bytes calldata) public pure override returns (bytes4) {
        bytes32 word = bytes32(IERC1271.isValidSignature.selector) | bytes32(uint256(1));
        assembly {
            mstore(0, word)
            return(0, 32)
        }
    }
}

/// Tries to go on to another nonce while it is asked.
contract MeddlingWallet is Wallet(address(1)) {
    address private immutable _registry;

    constructor(address registry) {
        _registry = registry;
    }

    function isValidSignature(bytes32, bytes calldata) public view override returns (bytes4) {
        (bool done, ) = _registry.staticcall(abi.encodeWithSignature("cancelSignatures()"));
        return done ? bytes4(0) : IERC1271.isValidSignature.selector;
    }
}
