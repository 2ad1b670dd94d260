// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// What the tests of the chain client need: a refusal of each kind, an event, money, and gas that depends on state.
contract Probe {
    struct Pair {
        address who;
        uint256 amount;
    }

    event Noted(address indexed who, uint256 value);

    error BondTooSmall(uint256 have, uint256 need);
    error BadPair(Pair pair, bytes32[] proof);

    uint256 public value;
    uint256[] private _list;

    function note(uint256 value_) external payable {
        value = value_;
        emit Noted(msg.sender, value_);
    }

    /// Reverts once `value` is `limit` or more: what was fine when estimated may fail when mined.
    function noteBelow(uint256 limit) external {
        if (value >= limit) revert BondTooSmall(limit, value);
        value += 1;
        emit Noted(msg.sender, value);
    }

    function refuse(uint256 have, uint256 need) external pure returns (uint256) {
        if (have < need) revert BondTooSmall(have, need);
        return have - need;
    }

    function refusePair(address who) external pure {
        revert BadPair(Pair(who, 7), new bytes32[](1));
    }

    function refuseWithReason() external pure {
        require(false, "not today");
    }

    function refuseSilently() external pure {
        assembly {
            revert(0, 0)
        }
    }

    function overflow(uint256 a) external pure returns (uint256) {
        return a - 1;
    }

    /// Gas grows with `value`.
    function work() external {
        for (uint256 i; i < value; ++i) _list.push(i + 1);
    }

    /// As a beacon does: only a block that is already made has a hash.
    function draw() external {
        bytes32 made = blockhash(block.number - 1);
        require(made != 0 && block.prevrandao != 0, "no randomness");
        value = uint256(made) ^ block.prevrandao;
    }

    function now_() external view returns (uint256) {
        return block.timestamp;
    }
}
