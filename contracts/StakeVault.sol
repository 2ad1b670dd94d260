// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {IRewardLedger} from "./interfaces/IRewardLedger.sol";
import {Addresses} from "./types/Types.sol";

/// @title StakeVault
/// @notice Owners' stake.
/// Assumes: the four books are the ones that were deployed with this vault; the token moves exactly what it is told
/// (what another token can do: docs/contracts/Tokens.md).
/// Assumes for liveness: nothing; what is unlocked can be withdrawn whatever the books do.
///
/// INV-STAKE-1: lockedOf(owner) <= balanceOf(owner), and lockedOf is the sum of the owner's locks.
/// INV-STAKE-2: staked is the sum of all balances; the vault's tokens >= staked.
/// INV-STAKE-3: a lock is released or slashed by the book that set it, and by nobody else.
/// INV-STAKE-4: a lock is freed once.
contract StakeVault is IStakeVault, ReentrancyGuard {
    using SafeERC20 for IERC20;

    struct Lock {
        address owner;
        uint96 amount;
    }

    address private constant BURN = 0x000000000000000000000000000000000000dEaD;

    IERC20 public immutable token;
    IRewardLedger public immutable ledger;
    address private immutable _rounds;
    address private immutable _tickets;
    address private immutable _court;
    address private immutable _checkpoints;

    /// @inheritdoc IStakeVault
    uint256 public staked;
    /// @inheritdoc IStakeVault
    mapping(address owner => uint256) public balanceOf;
    /// @inheritdoc IStakeVault
    mapping(address owner => uint256) public lockedOf;
    mapping(address book => mapping(bytes32 id => Lock)) private _locks;

    constructor(Addresses memory a) {
        token = IERC20(a.token);
        ledger = IRewardLedger(a.ledger);
        _rounds = a.rounds;
        _tickets = a.tickets;
        _court = a.court;
        _checkpoints = a.checkpoints;
    }

    modifier onlyBook() {
        bool court = msg.sender == _court || msg.sender == _checkpoints;
        if (msg.sender != _rounds && msg.sender != _tickets && !court) revert NotABook(msg.sender);
        _;
    }

    /// @inheritdoc IStakeVault
    function deposit(address owner, uint256 amount) external nonReentrant {
        _deposit(owner, amount);
    }

    /// @inheritdoc IStakeVault
    function depositWithPermit(
        address owner,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external nonReentrant {
        // Who saw the permit may have used it: the allowance is then there, and the transfer decides.
        // solhint-disable-next-line no-empty-blocks
        try IERC20Permit(address(token)).permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(owner, amount);
    }

    /// @inheritdoc IStakeVault
    function withdraw(uint256 amount) external nonReentrant returns (uint256 sent) {
        uint256 free = freeOf(msg.sender);
        sent = amount == 0 ? free : amount;
        if (sent > free) revert StakeTooSmall(msg.sender, free, sent);
        if (sent == 0) revert ZeroAmount();
        balanceOf[msg.sender] -= sent;
        staked -= sent;
        emit Withdrawn(msg.sender, sent);
        token.safeTransfer(msg.sender, sent);
    }

    /// @inheritdoc IStakeVault
    function lock(address owner, bytes32 id, uint256 amount) external onlyBook {
        uint256 free = freeOf(owner);
        if (amount > free) revert StakeTooSmall(owner, free, amount);
        if (amount > type(uint96).max) revert LockTooLarge(amount, type(uint96).max);
        Lock storage held = _locks[msg.sender][id];
        if (held.owner != address(0)) revert LockExists(id);
        held.owner = owner;
        held.amount = uint96(amount);
        lockedOf[owner] += amount; // INV-STAKE-1
        emit Locked(owner, msg.sender, id, amount);
    }

    /// @inheritdoc IStakeVault
    function release(bytes32 id) external onlyBook returns (uint256 amount) {
        Lock memory held = _locks[msg.sender][id]; // INV-STAKE-3
        if (held.owner == address(0)) return 0; // INV-STAKE-4
        delete _locks[msg.sender][id];
        amount = held.amount;
        lockedOf[held.owner] -= amount;
        emit Released(held.owner, msg.sender, id, amount);
    }

    /// @inheritdoc IStakeVault
    function slash(bytes32 id, uint256 amount, uint256 burnt, bytes32 pot) external onlyBook nonReentrant {
        Lock storage held = _locks[msg.sender][id]; // INV-STAKE-3
        if (amount > held.amount) revert LockTooSmall(id, held.amount, amount);
        if (burnt > amount) revert LockTooSmall(id, amount, burnt);
        held.amount -= uint96(amount);
        lockedOf[held.owner] -= amount;
        balanceOf[held.owner] -= amount;
        staked -= amount;
        emit Slashed(held.owner, msg.sender, id, amount, burnt);
        // A token that blocks the burn address must not block a verdict: what stays here is nobody's either.
        if (burnt > 0 && !token.trySafeTransfer(BURN, burnt)) emit BurnRefused(burnt);
        if (amount > burnt) {
            token.safeTransfer(address(ledger), amount - burnt);
            ledger.absorb(pot, amount - burnt);
        }
    }

    /// @inheritdoc IStakeVault
    function freeOf(address owner) public view returns (uint256) {
        return balanceOf[owner] - lockedOf[owner];
    }

    /// @inheritdoc IStakeVault
    function lockOf(address book, bytes32 id) external view returns (address owner, uint256 amount) {
        Lock memory held = _locks[book][id];
        return (held.owner, held.amount);
    }

    function _deposit(address owner, uint256 amount) private {
        if (amount == 0) revert ZeroAmount();
        if (amount > type(uint128).max) revert AmountTooLarge(amount, type(uint128).max);
        balanceOf[owner] += amount;
        staked += amount;
        emit Deposited(owner, msg.sender, amount);
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(msg.sender, address(this), amount);
        uint256 balance = token.balanceOf(address(this));
        if (balance != before + amount) revert TokenLied(balance > before ? balance - before : 0, amount);
        if (balance < staked) revert TokensMissing(balance, staked); // INV-STAKE-2
    }
}
