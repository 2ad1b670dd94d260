// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// The token of a development chain: anyone may mint. Allowances can be signed (EIP-2612).
contract DevToken is ERC20Permit {
    constructor() ERC20("gradmarket dev token", "DEV") ERC20Permit("gradmarket dev token") {}

    /// Create `amount` wei for `to`. Anyone.
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
