// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Vm} from "./Base.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// A token anyone may mint, as a base of dishonest ones.
contract FreeToken is ERC20 {
    constructor() ERC20("test", "TEST") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// Keeps one per cent of every transfer once it has turned; the receiver pays.
contract TurningToken is FreeToken {
    bool public turned;

    function turn() external {
        turned = true;
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (turned && from != address(0) && to != address(0)) _burn(to, amount / 100);
    }
}

/// Keeps one per cent of every transfer.
contract FeeToken is TurningToken {
    constructor() {
        turned = true;
    }
}

/// Takes one per cent more than it was told from whoever sends.
contract GreedyToken is FreeToken {
    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (from != address(0) && to != address(0)) _burn(from, amount / 100);
    }
}

/// All balances grow and shrink together.
contract RebasingToken is FreeToken {
    uint256 private _factor = 1e18;

    function rebase(uint256 factor) external {
        _factor = factor;
    }

    function balanceOf(address account) public view override returns (uint256) {
        return (super.balanceOf(account) * _factor) / 1e18;
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, (amount * 1e18) / _factor);
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

/// Moves, and says nothing.
contract SilentToken {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function approve(address spender, uint256 amount) external {
        allowance[msg.sender][spender] = amount;
    }

    function transfer(address to, uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
    }

    function transferFrom(address from, address to, uint256 amount) external {
        allowance[from][msg.sender] -= amount;
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
    }
}

/// Calls back in the middle of every transfer, as the hooks of ERC-777 do, in anyone's name.
contract HookToken is FreeToken {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    address private _caller;
    address private _target;
    bytes private _data;
    bool public entered;
    bytes public answer;

    function hook(address caller, address target, bytes calldata data) external {
        (_caller, _target, _data, entered, answer) = (caller, target, data, false, "");
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (_target == address(0)) return;
        address target = _target;
        _target = address(0);
        vm.prank(_caller);
        (entered, answer) = target.call(_data);
    }
}

/// Moves nothing from or to a frozen address.
contract BlockingToken is FreeToken {
    mapping(address => bool) public isFrozen;

    error Frozen(address account);

    function freeze(address account, bool frozen) external {
        isFrozen[account] = frozen;
    }

    function _update(address from, address to, uint256 amount) internal override {
        if (isFrozen[from]) revert Frozen(from);
        if (isFrozen[to]) revert Frozen(to);
        super._update(from, to, amount);
    }
}

/// Moves, and answers with a quarter of a megabyte that begins with true.
contract LoudToken is FreeToken {
    function transfer(address to, uint256 amount) public override returns (bool) {
        _transfer(msg.sender, to, amount);
        assembly {
            mstore(0, 1)
            return(0, 0x40000)
        }
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        _spendAllowance(from, msg.sender, amount);
        _transfer(from, to, amount);
        assembly {
            mstore(0, 1)
            return(0, 0x40000)
        }
    }
}

/// Refuses the burn address with a quarter of a megabyte of reasons.
contract RantingToken is FreeToken {
    function _update(address from, address to, uint256 amount) internal override {
        if (to == 0x000000000000000000000000000000000000dEaD) {
            assembly {
                revert(0, 0x40000)
            }
        }
        super._update(from, to, amount);
    }
}

/// Tells every contract that it receives, and fails when the contract does.
contract TellingToken is FreeToken {
    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (to.code.length == 0 || to.code.length > 500) return;
        (bool done, ) = to.call(abi.encodeWithSignature("tokensReceived(uint256)", amount));
        require(done, "receiver");
    }
}

/// Whatever it is told, it does not want it.
contract Unwilling {
    fallback() external {
        revert("unwilling");
    }
}

/// Its permit says yes and allows nothing.
contract IdlePermitToken is FreeToken {
    function permit(address, address, uint256, uint256, uint8, bytes32, bytes32) external {}
}
