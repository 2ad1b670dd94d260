// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {FreeToken, IdlePermitToken} from "./Tokens.sol";
import {IRewardLedger} from "../contracts/interfaces/IRewardLedger.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {Terms} from "../contracts/types/Types.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

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
        address[3] memory others = [address(tickets), address(court), address(checkpoints)];
        for (uint256 i; i < 3; ++i) {
            bytes memory small = abi.encodeWithSelector(IStakeVault.LockTooSmall.selector, ID, 0, 1);
            refused(others[i], address(vault), abi.encodeCall(vault.slash, (ID, 1, 0, POT)), small);
            vm.startPrank(others[i]);
            eq(vault.release(ID), 0, "another book's lock");
            vault.lock(OWNER, ID, 1); // the same id, a lock of its own
            eq(vault.release(ID), 1, "its own");
            vm.stopPrank();
        }

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
        error = abi.encodeWithSelector(IRewardLedger.NotABook.selector, address(tickets));
        refused(address(tickets), address(ledger), abi.encodeCall(ledger.move, (POT, ID, 1)), error);
        refused(address(tickets), address(ledger), abi.encodeCall(ledger.credit, (POT, OWNER, 1)), error);
        refused(address(tickets), address(ledger), abi.encodeCall(ledger.burn, (POT, 1)), error);
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
        vm.prank(address(vault));
        ledger.absorb(POT, 1);
        eq(ledger.potOf(POT), 100, "nothing was there");
        token.mint(address(ledger), 3);
        vm.prank(address(vault));
        ledger.absorb(POT, 5);
        eq(ledger.potOf(POT), 103, "what is there");
        eq(ledger.held(), token.balanceOf(address(ledger)), "INV-LEDGER-2");
    }

    // ---------------------------------------------------------------- permits

    uint256 private constant KEY = 0x9E41;

    function permit(
        address spender,
        uint256 amount,
        uint256 deadline
    ) private view returns (address holder, uint8 v, bytes32 r, bytes32 s) {
        holder = vm.addr(KEY);
        bytes32 message = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                holder,
                spender,
                amount,
                token.nonces(holder),
                deadline
            )
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), message));
        (v, r, s) = vm.sign(KEY, digest);
    }

    function test_a_permit_deposits_without_an_allowance() public {
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(vault), 100, clock());
        token.mint(holder, 100);
        vm.prank(holder);
        vault.depositWithPermit(OWNER, 100, clock(), v, r, s);
        eq(vault.balanceOf(OWNER), 100, "stake");
        eq(token.allowance(holder, address(vault)), 0, "nothing more is allowed");
    }

    function test_a_permit_that_somebody_used_first_does_not_stop_the_deposit() public {
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(vault), 100, clock());
        token.mint(holder, 100);
        vm.prank(POSTER);
        token.permit(holder, address(vault), 100, clock(), v, r, s);
        vm.prank(holder);
        vault.depositWithPermit(OWNER, 100, clock(), v, r, s);
        eq(vault.balanceOf(OWNER), 100, "stake");
    }

    function test_anothers_permit_moves_nothing_of_its_holder() public {
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(vault), 100, clock());
        token.mint(holder, 100);
        bytes memory data = abi.encodeCall(vault.depositWithPermit, (POSTER, 100, clock(), v, r, s));
        bytes4 kind = IERC20Errors.ERC20InsufficientAllowance.selector;
        refused(POSTER, address(vault), data, abi.encodeWithSelector(kind, address(vault), 0, 100));
        eq(token.allowance(holder, address(vault)), 0, "not even used");
        eq(token.balanceOf(holder), 100, "kept");
    }

    function test_a_permit_counts_in_its_last_second_and_for_its_amount_only() public {
        uint256 deadline = clock() + 5;
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(vault), 100, deadline);
        token.mint(holder, 200);
        bytes4 kind = IERC20Errors.ERC20InsufficientAllowance.selector;
        bytes memory data = abi.encodeCall(vault.depositWithPermit, (OWNER, 101, deadline, v, r, s));
        refused(holder, address(vault), data, kind);
        data = abi.encodeCall(vault.depositWithPermit, (OWNER, 100, deadline, v, r, s));
        passTo(deadline + 1);
        refused(holder, address(vault), data, kind);
        vm.warp(deadline);
        vm.prank(holder);
        (bool done, ) = address(vault).call(data);
        yes(done, "in the last second");
    }

    function test_a_token_without_permits_or_with_idle_ones_is_asked_for_the_allowance() public {
        FreeToken[2] memory kinds = [new FreeToken(), new IdlePermitToken()];
        for (uint256 i; i < 2; ++i) {
            deploy(address(kinds[i]), preset());
            token.mint(OWNER, 100);
            bytes memory data = abi.encodeCall(vault.depositWithPermit, (OWNER, 100, clock(), 27, 0, 0));
            refused(OWNER, address(vault), data, IERC20Errors.ERC20InsufficientAllowance.selector);
            vm.prank(OWNER);
            token.approve(address(vault), 100);
            vm.prank(OWNER);
            vault.depositWithPermit(OWNER, 100, clock(), 27, 0, 0);
            eq(vault.balanceOf(OWNER), 100, "stake");
        }
    }

    function test_a_job_is_posted_and_funded_by_permits() public {
        Terms memory t = terms();
        uint256 amount = reservation(t);
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(ledger), amount, clock());
        token.mint(holder, amount + 7);
        vm.prank(holder);
        bytes32 job = market.postWithPermit(t, 0, amount, "http://seed", clock(), v, r, s);
        eq(ledger.potOf(job), amount, "escrow");
        eq(market.posterOf(job), holder, "poster");

        (, v, r, s) = permit(address(ledger), 7, clock());
        vm.prank(POSTER);
        token.permit(holder, address(ledger), 7, clock(), v, r, s); // seen and used by another
        vm.prank(holder);
        market.fundWithPermit(job, 7, clock(), v, r, s);
        eq(ledger.potOf(job), amount + 7, "funded");
    }

    function test_a_job_is_not_posted_with_anothers_permit() public {
        Terms memory t = terms();
        uint256 amount = reservation(t);
        (address holder, uint8 v, bytes32 r, bytes32 s) = permit(address(ledger), amount, clock());
        token.mint(holder, amount);
        bytes memory data = abi.encodeCall(market.postWithPermit, (t, 0, amount, "", clock(), v, r, s));
        refused(POSTER, address(market), data, IERC20Errors.ERC20InsufficientAllowance.selector);
        eq(token.balanceOf(holder), amount, "kept");
    }
}
