// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {
    BlockingToken,
    EmptyToken,
    FalseToken,
    FeeToken,
    FreeToken,
    GreedyToken,
    HookToken,
    LoudToken,
    RantingToken,
    RebasingToken,
    SilentToken,
    TellingToken,
    TurningToken,
    Unwilling
} from "./Tokens.sol";
import {IRewardLedger} from "../contracts/interfaces/IRewardLedger.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {ClaimStatus, Finding, Outcome} from "../contracts/types/Types.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

/// Tokens that are not what they seem: refused, or harmless. What is neither: docs/contracts/Tokens.md.
contract TokensTest is World {
    address private constant OWNER = address(0x0111);
    address private constant OTHER = address(0x0222);
    address private constant PAYEE = address(0x0333);
    bytes32 private constant ID = keccak256("lock");
    bytes32 private constant POT = keccak256("pot");

    /// A market of that token; two owners with 1000 each, who allow everything.
    function redeploy(FreeToken money) private {
        deploy(address(money), preset());
        address[2] memory people = [OWNER, OTHER];
        for (uint256 i; i < 2; ++i) {
            money.mint(people[i], 1000);
            vm.startPrank(people[i]);
            SafeERC20.forceApprove(money, address(vault), type(uint256).max); // also one that answers nothing
            SafeERC20.forceApprove(money, address(ledger), type(uint256).max);
            vm.stopPrank();
        }
    }

    function deposit(address owner, uint256 amount) private {
        vm.prank(owner);
        vault.deposit(owner, amount);
    }

    function withdraw(address owner) private returns (uint256) {
        vm.prank(owner);
        return vault.withdraw(0);
    }

    function fund(address payer, uint256 amount) private {
        vm.prank(address(market));
        ledger.fund(POT, payer, amount);
    }

    function owe(uint256 amount) private {
        vm.prank(address(court));
        ledger.credit(POT, PAYEE, amount);
    }

    function lock(uint256 amount) private {
        vm.prank(address(rounds));
        vault.lock(OWNER, ID, amount);
    }

    function slash(uint256 amount, uint256 burnt) private {
        vm.prank(address(rounds));
        vault.slash(ID, amount, burnt, POT);
    }

    /// Both owners have 500 staked, 100 of the first is locked, 200 are in the ledger, half of it the payee's.
    function settled(FreeToken money) private {
        redeploy(money);
        deposit(OWNER, 500);
        deposit(OTHER, 500);
        lock(100);
        fund(OTHER, 200);
        owe(100);
    }

    function refusedDeposit(bytes memory error) private {
        refused(OWNER, address(vault), abi.encodeCall(vault.deposit, (OWNER, 100)), error);
    }

    function refusedFund(bytes memory error) private {
        refused(address(market), address(ledger), abi.encodeCall(ledger.fund, (POT, OWNER, 100)), error);
    }

    // ---------------------------------------------------------------- tokens that move less than they say

    function test_a_token_that_charges_a_fee_is_refused() public {
        redeploy(new FeeToken());
        refusedDeposit(abi.encodeWithSelector(IStakeVault.TokenLied.selector, 99, 100));
        refusedFund(abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 99, 100));
    }

    function test_a_token_that_returns_false_is_refused() public {
        redeploy(new FalseToken());
        bytes memory error = abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(token));
        refusedDeposit(error);
        refusedFund(error);
    }

    function test_a_token_that_only_says_true_is_refused() public {
        redeploy(new EmptyToken());
        refusedDeposit(abi.encodeWithSelector(IStakeVault.TokenLied.selector, 0, 100));
        refusedFund(abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 0, 100));
    }

    function test_an_address_without_code_is_no_token() public {
        deploy(address(0xDEAD1), preset());
        bytes memory data = abi.encodeCall(vault.deposit, (OWNER, 100));
        vm.prank(OWNER);
        (bool done, ) = address(vault).call(data);
        yes(!done, "refused");
        eq(vault.balanceOf(OWNER), 0, "nothing credited");
    }

    // ---------------------------------------------------------------- tokens that answer strangely

    function test_a_token_that_answers_nothing_works() public {
        SilentToken money = new SilentToken();
        redeploy(FreeToken(address(money)));
        deposit(OWNER, 500);
        fund(OWNER, 200);
        lock(100);
        slash(100, 40);
        owe(160);
        vm.prank(address(court));
        ledger.burn(POT, 100);
        eq(withdraw(OWNER), 400, "stake");
        eq(ledger.withdraw(PAYEE, 0), 160, "credit");
        eq(money.balanceOf(OWNER), 1000 - 500 - 200 + 400, "owner");
        eq(money.balanceOf(PAYEE), 160, "payee");
        eq(money.balanceOf(BURN), 140, "burnt");
        eq(money.balanceOf(address(vault)) + money.balanceOf(address(ledger)), 0, "nothing is left");
    }

    function test_a_token_that_answers_at_length_works_and_its_answer_is_not_copied() public {
        redeploy(new LoudToken());
        uint256 before = gasleft();
        deposit(OWNER, 500);
        // A quarter of a megabyte costs the token about 155,000 gas to make, and would cost as much again to copy.
        yes(before - gasleft() < 400_000, "gas");
        fund(OWNER, 200);
        owe(200);
        eq(withdraw(OWNER), 500, "stake");
        eq(ledger.withdraw(PAYEE, 0), 200, "credit");
    }

    function test_a_long_refusal_to_burn_stops_no_verdict() public {
        settled(new RantingToken());
        slash(100, 50);
        eq(ledger.potOf(POT), 150, "pot");
        vm.prank(address(court));
        ledger.burn(POT, 150);
        eq(ledger.potOf(POT), 0, "burnt in the books");
    }

    function test_an_account_that_does_not_want_its_tokens_stops_nobody_else() public {
        settled(new TellingToken());
        address unwilling = address(new Unwilling());
        vm.prank(address(court));
        ledger.credit(POT, unwilling, 50);
        bytes memory error = abi.encodeWithSignature("Error(string)", "receiver");
        refused(OTHER, address(ledger), abi.encodeCall(ledger.withdraw, (unwilling, 0)), error);
        eq(ledger.creditOf(unwilling), 50, "still its own");
        eq(ledger.withdraw(PAYEE, 0), 100, "others are paid");
        eq(withdraw(OTHER), 500, "and take their stake");
    }

    // ---------------------------------------------------------------- tokens that rebase

    function test_a_token_that_grows_pays_everybody_what_was_put_in_and_the_rest_is_nobodys() public {
        RebasingToken money = new RebasingToken();
        settled(money);
        money.rebase(2e18);
        eq(vault.balanceOf(OTHER), 500, "stake is what was put in");
        deposit(OTHER, 100);
        fund(OTHER, 100);
        slash(60, 20);
        eq(ledger.potOf(POT), 240, "pot");
        eq(withdraw(OTHER), 600, "other");
        eq(withdraw(OWNER), 400, "owner");
        eq(ledger.withdraw(PAYEE, 0), 100, "payee");
        eq(money.balanceOf(address(vault)), 1000 + vault.staked(), "what grew stays");
        eq(money.balanceOf(address(ledger)), 200 + ledger.held(), "what grew stays");
        bytes memory error = abi.encodeWithSelector(IStakeVault.ZeroAmount.selector);
        refused(OTHER, address(vault), abi.encodeCall(vault.withdraw, (0)), error);
    }

    function test_a_token_that_shrank_takes_no_new_money_for_old_debts() public {
        RebasingToken money = new RebasingToken();
        settled(money);
        money.rebase(5e17);
        refusedDeposit(abi.encodeWithSelector(IStakeVault.TokensMissing.selector, 600, 1100));
        refusedFund(abi.encodeWithSelector(IRewardLedger.TokensMissing.selector, 200, 300));
    }

    function test_a_token_that_shrank_pays_who_comes_first_until_it_is_made_whole() public {
        RebasingToken money = new RebasingToken();
        settled(money);
        money.rebase(5e17);
        eq(withdraw(OTHER), 500, "who comes first is paid in full");
        bytes4 kind = IERC20Errors.ERC20InsufficientBalance.selector;
        refused(OWNER, address(vault), abi.encodeCall(vault.withdraw, (400)), kind);
        eq(vault.balanceOf(OWNER), 500, "who comes last keeps its claim");
        money.mint(address(vault), 500);
        eq(withdraw(OWNER), 400, "paid once the tokens are there");
    }

    function test_a_slash_fills_a_ledger_that_is_short_before_it_fills_a_pot() public {
        RebasingToken money = new RebasingToken();
        settled(money);
        money.rebase(5e17);
        slash(100, 0);
        eq(ledger.potOf(POT), 100, "nothing beyond what is owed");
        eq(ledger.held(), 200, "held");
        eq(money.balanceOf(address(ledger)), 200, "and all of it is there");
        eq(vault.balanceOf(OWNER), 400, "slashed all the same");
    }

    // ---------------------------------------------------------------- tokens that turn

    function test_a_token_that_begins_to_charge_credits_nothing_that_did_not_arrive() public {
        TurningToken money = new TurningToken();
        settled(money);
        money.turn();
        refusedDeposit(abi.encodeWithSelector(IStakeVault.TokenLied.selector, 99, 100));
        refusedFund(abi.encodeWithSelector(IRewardLedger.TokenLied.selector, 99, 100));
        slash(100, 0);
        eq(ledger.potOf(POT), 199, "the pot has what arrived");
        eq(ledger.held(), money.balanceOf(address(ledger)), "all of it is there");
        eq(vault.staked(), money.balanceOf(address(vault)), "and here");
    }

    function test_a_token_that_begins_to_charge_pays_everybody_what_it_lets_through() public {
        TurningToken money = new TurningToken();
        settled(money);
        money.turn();
        eq(withdraw(OWNER), 400, "owner");
        eq(withdraw(OTHER), 500, "other");
        eq(ledger.withdraw(PAYEE, 0), 100, "payee");
        eq(money.balanceOf(OWNER), 500 + 396, "less the token's own fee");
        eq(money.balanceOf(OTHER), 300 + 495, "less the token's own fee");
        eq(money.balanceOf(PAYEE), 99, "less the token's own fee");
        eq(money.balanceOf(address(vault)), vault.staked(), "the vault has what it owes");
        eq(money.balanceOf(address(ledger)), ledger.held(), "the ledger too");
    }

    /// The consequence that Tokens.md names: each withdrawal costs the others the fee.
    function test_a_token_that_charges_the_sender_leaves_too_little_for_the_last() public {
        settled(new GreedyToken());
        eq(withdraw(OTHER), 500, "in full");
        eq(token.balanceOf(address(vault)), 495, "five are gone");
        eq(vault.staked(), 500, "and owed");
        refusedDeposit(abi.encodeWithSelector(IStakeVault.TokensMissing.selector, 595, 600));
    }

    // ---------------------------------------------------------------- tokens that block

    function test_a_frozen_owner_keeps_its_stake_and_hinders_nobody() public {
        BlockingToken money = new BlockingToken();
        settled(money);
        money.freeze(OWNER, true);
        bytes memory error = abi.encodeWithSelector(BlockingToken.Frozen.selector, OWNER);
        refused(OWNER, address(vault), abi.encodeCall(vault.withdraw, (0)), error);
        eq(withdraw(OTHER), 500, "others withdraw");
        slash(100, 50);
        eq(vault.balanceOf(OWNER), 400, "it can be slashed");
        money.freeze(OWNER, false);
        eq(withdraw(OWNER), 400, "and takes the rest when it may");
    }

    function test_a_frozen_payee_keeps_its_credit_and_hinders_nobody() public {
        BlockingToken money = new BlockingToken();
        settled(money);
        money.freeze(PAYEE, true);
        bytes memory error = abi.encodeWithSelector(BlockingToken.Frozen.selector, PAYEE);
        refused(OTHER, address(ledger), abi.encodeCall(ledger.withdraw, (PAYEE, 0)), error);
        vm.startPrank(address(court));
        ledger.credit(POT, PAYEE, 10);
        ledger.credit(POT, OTHER, 90);
        vm.stopPrank();
        eq(ledger.withdraw(OTHER, 0), 90, "others are paid");
        eq(ledger.creditOf(PAYEE), 110, "kept");
    }

    function test_a_frozen_burn_address_keeps_tokens_from_burning_and_stops_nothing() public {
        BlockingToken money = new BlockingToken();
        settled(money);
        money.freeze(BURN, true);
        slash(60, 60);
        slash(40, 10);
        vm.prank(address(court));
        ledger.burn(POT, 130);
        eq(ledger.held(), 100, "held");
        eq(money.balanceOf(address(ledger)), 230, "what did not burn lies there");
        vm.prank(address(rounds));
        eq(vault.release(ID), 0, "the lock is used up");
        eq(withdraw(OWNER), 400, "owner");
        eq(withdraw(OTHER), 500, "other");
        eq(ledger.withdraw(PAYEE, 0), 100, "payee");
        eq(money.balanceOf(address(vault)), 70, "nobody's");
        eq(vault.staked(), 0, "nobody's");
    }

    function test_a_frozen_ledger_stops_slashes_into_it_and_no_withdrawal_of_stake() public {
        BlockingToken money = new BlockingToken();
        settled(money);
        money.freeze(address(ledger), true);
        bytes memory error = abi.encodeWithSelector(BlockingToken.Frozen.selector, address(ledger));
        refused(address(rounds), address(vault), abi.encodeCall(vault.slash, (ID, 100, 50, POT)), error);
        refused(OTHER, address(ledger), abi.encodeCall(ledger.withdraw, (PAYEE, 0)), error);
        refusedFund(error);
        slash(10, 10);
        eq(withdraw(OTHER), 500, "free stake is withdrawn");
        eq(withdraw(OWNER), 400, "free stake is withdrawn");
        vm.prank(address(rounds));
        eq(vault.release(ID), 90, "locks are freed");
        eq(withdraw(OWNER), 90, "and withdrawn");
        money.freeze(address(ledger), false);
        eq(ledger.withdraw(PAYEE, 0), 100, "credits wait");
    }

    function test_a_frozen_vault_stops_no_withdrawal_of_credit() public {
        BlockingToken money = new BlockingToken();
        settled(money);
        money.freeze(address(vault), true);
        bytes memory error = abi.encodeWithSelector(BlockingToken.Frozen.selector, address(vault));
        refused(OTHER, address(vault), abi.encodeCall(vault.withdraw, (0)), error);
        refused(address(rounds), address(vault), abi.encodeCall(vault.slash, (ID, 100, 50, POT)), error);
        slash(10, 10);
        eq(vault.balanceOf(OWNER), 490, "burnt in the books");
        eq(ledger.withdraw(PAYEE, 0), 100, "credits are paid");
        money.freeze(address(vault), false);
        eq(withdraw(OTHER), 500, "stake waits");
    }

    // ---------------------------------------------------------------- tokens that call back

    /// Everything that moves tokens, in the name of whoever may do it.
    function moves() private view returns (address[5] memory who, address[5] memory where, bytes[5] memory what) {
        who = [OTHER, OTHER, address(rounds), address(market), OTHER];
        where = [address(vault), address(vault), address(vault), address(ledger), address(ledger)];
        what[0] = abi.encodeCall(vault.deposit, (OTHER, 50));
        what[1] = abi.encodeCall(vault.withdraw, (50));
        what[2] = abi.encodeCall(vault.slash, (ID, 50, 20, POT));
        what[3] = abi.encodeCall(ledger.fund, (POT, OTHER, 50));
        what[4] = abi.encodeCall(ledger.withdraw, (PAYEE, 50));
    }

    /// Each move while each other is under way: the own vault is closed, the other one counts right.
    function test_a_token_that_calls_back_cannot_enter_a_vault_twice() public {
        bytes4 guard = ReentrancyGuard.ReentrancyGuardReentrantCall.selector;
        for (uint256 outer; outer < 5; ++outer) {
            for (uint256 inner; inner < 5; ++inner) {
                HookToken money = new HookToken();
                settled(money);
                (address[5] memory who, address[5] memory where, bytes[5] memory what) = moves();
                money.hook(who[inner], where[inner], what[inner]);
                vm.prank(who[outer]);
                (bool done, ) = where[outer].call(what[outer]);
                if (where[outer] == where[inner]) {
                    yes(!money.entered(), "closed");
                    yes(bytes4(money.answer()) == guard, "by its guard");
                    yes(done, "the call itself goes on");
                }
                eq(money.balanceOf(address(vault)), vault.staked(), "INV-STAKE-2");
                eq(money.balanceOf(address(ledger)), ledger.held(), "INV-LEDGER-2");
                eq(vault.balanceOf(OWNER) + vault.balanceOf(OTHER), vault.staked(), "the sum of all stakes");
                eq(ledger.potOf(POT) + ledger.creditOf(PAYEE), ledger.held(), "INV-LEDGER-1");
            }
        }
    }

    function test_a_token_that_calls_back_pays_a_credit_once() public {
        HookToken money = new HookToken();
        settled(money);
        money.hook(OTHER, address(ledger), abi.encodeCall(ledger.withdraw, (PAYEE, 0)));
        eq(ledger.withdraw(PAYEE, 0), 100, "paid");
        eq(money.balanceOf(PAYEE), 100, "once");
        money.hook(OTHER, address(vault), abi.encodeCall(vault.withdraw, (0)));
        eq(withdraw(OTHER), 500, "withdrawn");
        eq(money.balanceOf(OTHER), 800, "once");
    }

    // ---------------------------------------------------------------- whole cases

    /// A shard is convicted by a full panel; the six others are paid.
    function convict() private returns (bytes32 caseId) {
        uint32 round = drawnRound();
        caseId = convene(round, 0);
        judge(caseId, say(Finding.Fraud));
        judge(caseId, say(2, Finding.Fraud));
        judge(caseId, say(2, Finding.Fraud));
        for (uint16 s = 1; s < 6; ++s) judge(convene(round, s), say(Finding.Match));
        finalise(round);
        rounds.settle(jobId, round, range(0, 6));
        eq(uint8(claimStatus(round, 0)), uint8(ClaimStatus.Unpaid), "unpaid");
        eq(uint8(claimStatus(round, 1)), uint8(ClaimStatus.Paid), "paid");
    }

    function test_a_cheat_is_convicted_while_the_burn_address_is_frozen() public {
        BlockingToken money = new BlockingToken();
        deploy(address(money), preset());
        addActors(8);
        post(terms(), 1);
        money.freeze(BURN, true);
        eq(uint8(outcomeOf(convict())), uint8(Outcome.Fraud), "verdict");
        eq(vault.balanceOf(actors[0].owner), STAKE - terms().bondPerShard, "slashed");
        eq(money.balanceOf(address(vault)), vault.staked(), "INV-STAKE-2");
        yes(money.balanceOf(address(ledger)) > ledger.held(), "what did not burn is nobody's");
    }

    function test_a_cheat_is_convicted_after_the_token_began_to_charge() public {
        TurningToken money = new TurningToken();
        deploy(address(money), preset());
        addActors(8);
        post(terms(), 1);
        money.turn();
        eq(uint8(outcomeOf(convict())), uint8(Outcome.Fraud), "verdict");
        eq(money.balanceOf(address(ledger)), ledger.held(), "INV-LEDGER-2");
        for (uint256 i; i < actors.length; ++i) {
            if (credit(i) > 0) ledger.withdraw(actors[i].payout, 0);
        }
        eq(money.balanceOf(address(ledger)), ledger.held(), "and nobody is left unpaid");
    }
}
