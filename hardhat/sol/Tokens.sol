// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// A token anyone may mint, as a base of dishonest ones.
contract FreeToken is ERC20 {
    constructor() ERC20("test", "TEST") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// Keeps one per cent of every transfer.
contract FeeToken is FreeToken {
    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (from != address(0) && to != address(0)) _burn(to, amount / 100);
    }
}

/// Says false and moves nothing.
contract FalseToken is FreeToken {
    function transfer(address, uint256) public pure override returns (bool) {
        return false;
    }

    function transferFrom(address, address, uint256) public pure override returns (bool) {
        return false;
    }
}

/// Says true and moves nothing.
contract EmptyToken is FreeToken {
    function transferFrom(address, address, uint256) public pure override returns (bool) {
        return true;
    }
}

/// Calls back in the middle of every transfer, as the hooks of ERC-777 do.
contract HookToken is FreeToken {
    address public target;
    bytes public data;
    bool public entered;
    bytes public answer;

    function hook(address target_, bytes calldata data_) external {
        (target, data, entered) = (target_, data_, false);
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (target == address(0)) return;
        address goal = target;
        target = address(0);
        (entered, answer) = goal.call(data);
    }
}
