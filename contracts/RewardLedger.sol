// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {IRewardLedger} from "./interfaces/IRewardLedger.sol";
import {Addresses} from "./types/Types.sol";

/// @title RewardLedger
/// @notice Escrow, reservations, credits and the court fund.
/// Assumes: the four books are the ones that were deployed with this ledger; the token moves exactly what it is told
/// (what another token can do: docs/contracts/Tokens.md).
/// Assumes for liveness: nothing; a credit can be withdrawn whatever the books do.
///
/// INV-LEDGER-1: held = the sum of all pots + the sum of all credits.
/// INV-LEDGER-2: the ledger's tokens >= held.
/// INV-LEDGER-3: funded + absorbed = withdrawn + burnt + held.
contract RewardLedger is IRewardLedger, ReentrancyGuard {
    using SafeERC20 for IERC20;

    address private constant BURN = 0x000000000000000000000000000000000000dEaD;

    IERC20 public immutable token;
    address private immutable _vault;
    address private immutable _market;
    address private immutable _rounds;
    address private immutable _court;
    address private immutable _checkpoints;

    /// @inheritdoc IRewardLedger
    mapping(bytes32 pot => uint256) public potOf;
    /// @inheritdoc IRewardLedger
    mapping(address account => uint256) public creditOf;
    /// @inheritdoc IRewardLedger
    uint256 public held;

    constructor(Addresses memory a) {
        token = IERC20(a.token);
        _vault = a.vault;
        _market = a.market;
        _rounds = a.rounds;
        _court = a.court;
        _checkpoints = a.checkpoints;
    }

    modifier onlyBook() {
        bool court = msg.sender == _court || msg.sender == _checkpoints;
        if (msg.sender != _market && msg.sender != _rounds && !court) revert NotABook(msg.sender);
        _;
    }

    /// @inheritdoc IRewardLedger
    function fund(bytes32 pot, address payer, uint256 amount) external nonReentrant {
        if (msg.sender != _market) revert NotABook(msg.sender);
        if (amount == 0) revert ZeroAmount();
        potOf[pot] += amount;
        held += amount;
        emit Funded(pot, payer, amount);
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(payer, address(this), amount);
        uint256 balance = token.balanceOf(address(this));
        if (balance != before + amount) revert TokenLied(balance > before ? balance - before : 0, amount);
        if (balance < held) revert TokensMissing(balance, held); // INV-LEDGER-2
    }

    /// @inheritdoc IRewardLedger
    function move(bytes32 from, bytes32 to, uint256 amount) external onlyBook {
        _take(from, amount);
        potOf[to] += amount;
        emit Moved(from, to, amount);
    }

    /// @inheritdoc IRewardLedger
    function credit(bytes32 pot, address account, uint256 amount) external onlyBook {
        _take(pot, amount);
        creditOf[account] += amount;
        emit Credited(pot, account, amount);
    }

    /// @inheritdoc IRewardLedger
    function burn(bytes32 pot, uint256 amount) external onlyBook nonReentrant {
        _take(pot, amount);
        held -= amount;
        emit Burnt(pot, amount);
        // A token that blocks the burn address must not block a verdict: what stays here is nobody's either.
        if (!token.trySafeTransfer(BURN, amount)) emit BurnRefused(amount);
    }

    /// @inheritdoc IRewardLedger
    function absorb(bytes32 pot, uint256 amount) external {
        if (msg.sender != _vault) revert NotABook(msg.sender);
        uint256 balance = token.balanceOf(address(this));
        uint256 spare = balance > held ? balance - held : 0;
        // Books what is there and no more: a verdict goes on also where a token began to charge.
        if (amount > spare) amount = spare; // INV-LEDGER-2
        potOf[pot] += amount;
        held += amount;
        emit Absorbed(pot, amount);
    }

    /// @inheritdoc IRewardLedger
    function withdraw(address account, uint256 amount) external nonReentrant returns (uint256 sent) {
        uint256 have = creditOf[account];
        sent = amount == 0 ? have : amount;
        if (sent > have) revert CreditTooSmall(account, have, sent);
        if (sent == 0) revert ZeroAmount();
        creditOf[account] = have - sent;
        held -= sent;
        emit Withdrawn(account, sent);
        token.safeTransfer(account, sent);
    }

    function _take(bytes32 pot, uint256 amount) private {
        uint256 have = potOf[pot];
        if (amount > have) revert PotTooSmall(pot, have, amount);
        potOf[pot] = have - amount;
    }
}
