// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// The token of a development chain: anyone may mint.
contract DevToken is ERC20 {
    constructor() ERC20("gradmarket dev token", "DEV") {}

    /// Create `amount` wei for `to`. Anyone.
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
