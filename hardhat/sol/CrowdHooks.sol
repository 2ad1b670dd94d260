// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {FreeToken} from "./Tokens.sol";
import {World} from "./World.sol";

/// Asks the crowd before and after every transfer, as the hooks of ERC-777 do, and moves nothing against its will.
contract CrowdToken is FreeToken {
    CrowdHooks private immutable _crowd = CrowdHooks(msg.sender);

    error Refused(address to);

    function _update(address from, address to, uint256 amount) internal override {
        bool silent = from == address(0) || address(_crowd).code.length == 0;
        if (!silent && !_crowd.onTransfer(to)) revert Refused(to);
        super._update(from, to, amount);
        if (!silent && !_crowd.onTransfer(to)) revert Refused(to);
    }
}

/// What the crowd does to the market, one call after another, and in the middle of each other when the token lets it.
abstract contract CrowdHooks is World {
    struct Move {
        address who;
        address target;
        bytes data;
    }

    uint256 private constant DEEPEST = 2; // hooks within a hook's own moves

    mapping(string move => uint256) public done;
    mapping(address account => bool) internal isBlocked; // the token pays them nothing
    uint256 internal dice;
    uint256 internal entries; // moves in the middle of another one
    bool internal ending; // nobody is left who would refuse a transfer
    Move private _last;
    uint256 private _depth;
    bool private _listening;
    bytes private _broken;

    error Broken(bytes reason);

    /// In the middle of a move: `last` again, or another one.
    function moveWithin(Move memory last) internal virtual;

    // ---------------------------------------------------------------- dice

    function roll(uint256 sides) internal returns (uint256) {
        dice = uint256(keccak256(abi.encode(dice)));
        return dice % sides;
    }

    // ---------------------------------------------------------------- moves

    function attempt(string memory move, address who, address target, bytes memory data) internal returns (bool ok) {
        _last = Move(who, target, data);
        _listening = true;
        vm.prank(who);
        bytes memory answer;
        (ok, answer) = target.call(data);
        if (ok) ++done[move];
        else if (bytes4(answer) == CrowdToken.Refused.selector) ++done["refused"];
        if (_depth > 0) {
            if (ok) ++done["within"];
            return ok;
        }
        _listening = false;
        if (_broken.length > 0) revert Broken(_broken);
    }

    function isWithin() internal view returns (bool) {
        return _depth > 0;
    }

    /// No time passes in the middle of a move.
    function later(uint256 time) internal {
        if (_depth == 0) pass(time);
    }

    function blocks(uint256 count) internal {
        if (_depth == 0) mine(count);
    }

    // ---------------------------------------------------------------- hooks

    /// Whether the token may move to there. What a refusal undoes, dice included, never happened.
    function onTransfer(address to) external returns (bool) {
        yes(msg.sender == address(token), "only the token asks");
        if (!_listening || _depth == DEEPEST) return true;
        if (isBlocked[to]) return false;
        uint256 kind = roll(40);
        if (kind == 0 && to != BURN && !ending) return false;
        if (kind > 16) return true;
        bytes32 job = jobId;
        ++entries;
        ++_depth;
        // a market that refuses is a part of the game; a crowd that finds something wrong is not
        try this.within(_last) {} catch (bytes memory reason) {
            _broken = reason;
        }
        --_depth;
        jobId = job;
        return true;
    }

    function within(Move memory last) external {
        yes(msg.sender == address(this), "the crowd's own");
        moveWithin(last);
    }
}
