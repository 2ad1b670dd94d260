// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {EmptyToken, FalseToken, FeeToken, FreeToken, HookToken} from "./Tokens.sol";
import {IRewardLedger} from "../contracts/interfaces/IRewardLedger.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

contract VaultsTest is World {
    address private constant OWNER = address(0x0111);
    bytes32 private constant ID = keccak256("lock");
    bytes32 private constant POT = keccak256("pot");

    function setUp() public {
        deploy();
    }

    function lock(uint256 amount) private {
        vm.prank(address(rounds));
        vault.lock(OWNER, ID, amount);
    }

    // ---------------------------------------------------------------- stake

    function test_what_is_unlocked_can_be_withdrawn_at_once_and_no_more() public {
        stake(OWNER, 100);
        lock(60);
        bytes memory error = abi.encodeWithSelector(IStakeVault.StakeTooSmall.selector, OWNER, 40, 41);
        refused(OWNER, address(vault), abi.encodeCall(vault.withdraw, (41)), error);
        vm.prank(OWNER);
        eq(vault.withdraw(0), 40, "all that is free");
        eq(token.balanceOf(OWNER), 40, "in the wallet");
        error = abi.encodeWithSelector(IStakeVault.ZeroAmount.selector);
        refused(OWNER, address(vault), abi.encodeCall(vault.withdraw, (0)), error);
        refused(OWNER, address(vault), abi.encodeCall(vault.deposit, (OWNER, 0)), error);
    }

    function test_only_books_touch_locks_and_each_only_its_own() public {
        stake(OWNER, 100);
        lock(60);
        bytes memory error = abi.encodeWithSelector(IStakeVault.NotABook.selector, OWNER);
        refused(OWNER, address(vault), abi.encodeCall(vault.lock, (OWNER, ID, 1)), error);
        refused(OWNER, address(vault), abi.encodeCall(vault.release, (ID)), error);
        refused(OWNER, address(vault), abi.encodeCall(vault.slash, (ID, 1, 1, POT)), error);
        error = abi.encodeWithSelector(IStakeVault.NotABook.selector, address(market));
        refused(address(market), address(vault), abi.encodeCall(vault.release, (ID)), error);

        error = abi.encodeWithSelector(IStakeVault.LockTooSmall.selector, ID, 0, 1);
        refused(address(court), address(vault), abi.encodeCall(vault.slash, (ID, 1, 0, POT)), error);
        vm.prank(address(court));
        eq(vault.release(ID), 0, "another book's lock");
        eq(vault.lockedOf(OWNER), 60, "stays");
    }

    function test_a_lock_is_freed_once_and_its_name_is_free_again() public {
        stake(OWNER, 100);
        lock(60);
        bytes memory error = abi.encodeWithSelector(IStakeVault.LockExists.selector, ID);
        refused(address(rounds), address(vault), abi.encodeCall(vault.lock, (OWNER, ID, 1)), error);
        vm.startPrank(address(rounds));
        eq(vault.release(ID), 60, "first");
        eq(vault.release(ID), 0, "second");
        eq(vault.lockedOf(OWNER), 0, "unlocked");
        vault.lock(OWNER, ID, 100);
        vm.stopPrank();
    }

    function test_a_slash_takes_from_the_lock_and_never_from_free_stake() public {
        stake(OWNER, 100);
        lock(60);
        bytes memory error = abi.encodeWithSelector(IStakeVault.LockTooSmall.selector, ID, 60, 61);
        refused(address(rounds), address(vault), abi.encodeCall(vault.slash, (ID, 61, 0, POT)), error);
        error = abi.encodeWithSelector(IStakeVault.LockTooSmall.selector, ID, 50, 51);
        refused(address(rounds), address(vault), abi.encodeCall(vault.slash, (ID, 50, 51, POT)), error);
        vm.startPrank(address(rounds));
        vault.slash(ID, 50, 20, POT);
        eq(vault.balanceOf(OWNER), 50, "balance");
        eq(vault.lockedOf(OWNER), 10, "locked");
        eq(ledger.potOf(POT), 30, "pot");
        eq(token.balanceOf(BURN), 20, "burnt");
        eq(vault.release(ID), 10, "what is left");
        vm.stopPrank();
        eq(vault.freeOf(OWNER), 50, "free");
    }

    /// A lock that was cut to 96 bits would leave a case without the bond that it has to slash.
    function test_a_lock_that_does_not_fit_is_refused() public {
        uint256 most = type(uint96).max;
        stake(OWNER, most + 1);
        bytes memory error = abi.encodeWithSelector(IStakeVault.LockTooLarge.selector, most + 1, most);
        refused(address(rounds), address(vault), abi.encodeCall(vault.lock, (OWNER, ID, most + 1)), error);
        lock(most);
        vm.prank(address(rounds));
        eq(vault.release(ID), most, "whole");
    }

    function testFuzz_stake_is_conserved(uint96 deposit, uint96 locked, uint96 slashed, uint96 burnt) public {
        deposit = uint96(bound(deposit, 1, type(uint96).max));
        locked = uint96(bound(locked, 0, deposit));
        slashed = uint96(bound(slashed, 0, locked));
        burnt = uint96(bound(burnt, 0, slashed));
        stake(OWNER, deposit);
        lock(locked);
        vm.startPrank(address(rounds));
        vault.slash(ID, slashed, burnt, POT);
        vault.release(ID);
        vm.stopPrank();
        eq(vault.freeOf(OWNER) + ledger.held() + token.balanceOf(BURN), deposit, "all of it");
        eq(token.balanceOf(address(vault)), vault.balanceOf(OWNER), "INV-STAKE-2");
        eq(token.balanceOf(address(ledger)), ledger.held(), "INV-LEDGER-2");
    }

    // ---------------------------------------------------------------- ledger

    function fill(uint256 amount) private {
        mint(POSTER, amount);
        vm.prank(POSTER);
        token.approve(address(ledger), amount);
        vm.prank(address(market));
        ledger.fund(POT, POSTER, amount);
    }

    function test_only_the_named_books_move_money() public {
        fill(100);
        bytes memory error = abi.encodeWithSelector(IRewardLedger.NotABook.selector, OWNER);
        refused(OWNER, address(ledger), abi.encodeCall(ledger.fund, (POT, POSTER, 1)), error);
        refused(OWNER, address(ledger), abi.encodeCall(ledger.move, (POT, ID, 1)), error);
        refused(OWNER, address(ledger), abi.encodeCall(ledger.credit, (POT, OWNER, 1)), error);
        refused(OWNER, address(ledger), abi.encodeCall(ledger.burn, (POT, 1)), error);
        refused(OWNER, address(ledger), abi.encodeCall(ledger.absorb, (POT, 1)), error);
        error = abi.encodeWithSelector(IRewardLedger.NotABook.selector, address(court));
        refused(address(court), address(ledger), abi.encodeCall(ledger.fund, (POT, POSTER, 1)), error);
        refused(address(court), address(ledger), abi.encodeCall(ledger.absorb, (POT, 1)), error);
    }

    function test_a_pot_gives_what_it_holds_and_no_more() public {
        fill(100);
        bytes memory error = abi.encodeWithSelector(IRewardLedger.PotTooSmall.selector, POT, 100, 101);
        refused(address(court), address(ledger), abi.encodeCall(ledger.move, (POT, ID, 101)), error);
        refused(address(court), address(ledger), abi.encodeCall(ledger.credit, (POT, OWNER, 101)), error);
        refused(address(court), address(ledger), abi.encodeCall(ledger.burn, (POT, 101)), error);
        vm.startPrank(address(court));
        ledger.move(POT, ID, 30);
        ledger.credit(POT, OWNER, 50);
        ledger.burn(POT, 20);
        vm.stopPrank();
        eq(ledger.held(), 80, "held");
        eq(token.balanceOf(address(ledger)), 80, "tokens");
    }

    function test_anyone_sends_a_credit_but_only_to_its_account_and_once() public {
        fill(100);
        vm.prank(address(court));
        ledger.credit(POT, OWNER, 50);
        bytes memory error = abi.encodeWithSelector(IRewardLedger.CreditTooSmall.selector, OWNER, 50, 51);
        refused(POSTER, address(ledger), abi.encodeCall(ledger.withdraw, (OWNER, 51)), error);
        vm.prank(POSTER);
        eq(ledger.withdraw(OWNER, 0), 50, "all");
        eq(token.balanceOf(OWNER), 50, "to the account");
        error = abi.encodeWithSelector(IRewardLedger.ZeroAmount.selector);
        refused(POSTER, address(ledger), abi.encodeCall(ledger.withdraw, (OWNER, 0)), error);
    }

    function test_the_vault_cannot_book_tokens_that_did_not_arrive() public {
        fill(100);
        bytes memory error = abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 100, 101);
        refused(address(vault), address(ledger), abi.encodeCall(ledger.absorb, (POT, 1)), error);
    }

    // ---------------------------------------------------------------- dishonest tokens

    function redeploy(FreeToken money) private {
        deploy(address(money), preset());
        money.mint(OWNER, 1000);
        vm.startPrank(OWNER);
        money.approve(address(vault), 1000);
        money.approve(address(ledger), 1000);
        vm.stopPrank();
    }

    function test_a_token_that_charges_a_fee_is_refused() public {
        redeploy(new FeeToken());
        bytes memory error = abi.encodeWithSelector(IStakeVault.TokenLied.selector, 990, 1000);
        refused(OWNER, address(vault), abi.encodeCall(vault.deposit, (OWNER, 1000)), error);
        error = abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 990, 1000);
        refused(address(market), address(ledger), abi.encodeCall(ledger.fund, (POT, OWNER, 1000)), error);
    }

    function test_a_token_that_returns_false_is_refused() public {
        redeploy(new FalseToken());
        bytes4 error = SafeERC20.SafeERC20FailedOperation.selector;
        refused(OWNER, address(vault), abi.encodeCall(vault.deposit, (OWNER, 1000)), error);
        refused(address(market), address(ledger), abi.encodeCall(ledger.fund, (POT, OWNER, 1000)), error);
    }

    function test_a_token_that_only_says_true_is_refused() public {
        redeploy(new EmptyToken());
        bytes memory error = abi.encodeWithSelector(IStakeVault.TokenLied.selector, 0, 1000);
        refused(OWNER, address(vault), abi.encodeCall(vault.deposit, (OWNER, 1000)), error);
        error = abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 0, 1000);
        refused(address(market), address(ledger), abi.encodeCall(ledger.fund, (POT, OWNER, 1000)), error);
    }

    function test_a_token_that_calls_back_cannot_enter_a_vault_twice() public {
        HookToken money = new HookToken();
        redeploy(money);
        vm.prank(OWNER);
        vault.deposit(OWNER, 500);
        vm.prank(address(market));
        ledger.fund(POT, OWNER, 500);
        vm.prank(address(court));
        ledger.credit(POT, OWNER, 500);

        money.hook(address(ledger), abi.encodeCall(ledger.withdraw, (OWNER, 500)));
        vm.prank(OWNER);
        ledger.withdraw(OWNER, 500);
        yes(!money.entered(), "the ledger is closed to the hook");
        yes(bytes4(money.answer()) == ReentrancyGuard.ReentrancyGuardReentrantCall.selector, "by its guard");
        eq(ledger.held(), 0, "paid once");

        money.hook(address(vault), abi.encodeCall(vault.deposit, (OWNER, 1)));
        vm.prank(OWNER);
        vault.withdraw(500);
        yes(bytes4(money.answer()) == ReentrancyGuard.ReentrancyGuardReentrantCall.selector, "the vault's guard");
        eq(money.balanceOf(address(vault)), 0, "paid once");
    }
}
