// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {FickleWallet, GreedyWallet, LoudWallet, MeddlingWallet, SloppyWallet, Wallet} from "./Wallets.sol";
import {Consent, Delegation, IOperatorRegistry, Operator} from "../contracts/interfaces/IOperatorRegistry.sol";
import {SCOPE_ALL, SCOPE_AUDIT, SCOPE_TRAIN} from "../contracts/types/Types.sol";

/// Owners that sign and send nothing: keys, and contracts that are asked.
contract DelegationsTest is World {
    uint256 private constant OWNER_KEY = 0xC01D;
    uint256 private constant KEY = 0xC0FFEE;
    uint256 private constant NEVER = type(uint256).max;
    uint64 private constant FOREVER = type(uint64).max;
    address private constant OTHER = address(0x0777);
    address private owner;
    address private operator;

    function setUp() public {
        deploy();
        owner = vm.addr(OWNER_KEY);
        operator = vm.addr(KEY);
    }

    function asked(address owner_) private view returns (Delegation memory) {
        return Delegation(owner_, operator, OTHER, SCOPE_ALL, FOREVER);
    }

    function signed(uint256 key, bytes32 digest) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    function agreed(Delegation memory d) private view returns (Consent memory) {
        return Consent(NEVER, consent(d.owner, d.operator, d.payout, KEY, NEVER));
    }

    function granted(Delegation memory d, uint256 key, uint256 deadline) private view returns (Consent memory) {
        bytes32 digest = registry.delegationDigest(d, registry.nonceOf(d.owner), deadline);
        return Consent(deadline, signed(key, digest));
    }

    function withdrawn(uint256 nonce, uint256 deadline) private view returns (Consent memory) {
        return Consent(deadline, signed(OWNER_KEY, registry.revocationDigest(owner, operator, nonce, deadline)));
    }

    function call(Delegation memory d, Consent memory byOwner) private view returns (bytes memory) {
        return abi.encodeCall(registry.registerFor, (d, byOwner, agreed(d)));
    }

    function refusedBySignature(Delegation memory d, Consent memory byOwner) private {
        bytes32 digest = registry.delegationDigest(d, registry.nonceOf(d.owner), byOwner.deadline);
        bytes4 kind = IOperatorRegistry.BadSignature.selector;
        refused(OTHER, address(registry), call(d, byOwner), abi.encodeWithSelector(kind, d.owner, digest));
    }

    function delegate() private {
        Delegation memory d = asked(owner);
        registry.registerFor(d, granted(d, OWNER_KEY, NEVER), agreed(d));
    }

    // ---------------------------------------------------------------- keys

    function test_a_cold_wallet_delegates_by_signing_and_a_stranger_submits() public {
        Delegation memory d = Delegation(owner, operator, OTHER, SCOPE_TRAIN | SCOPE_AUDIT, uint64(clock() + 99));
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        Consent memory byOperator = agreed(d);
        vm.prank(OTHER);
        registry.registerFor(d, byOwner, byOperator);
        Operator memory o = registry.operatorOf(operator);
        eq(o.owner, owner, "owner");
        eq(o.payout, OTHER, "payout");
        eq(o.scopes, 3, "scopes");
        eq(o.expiry, clock() + 99, "expiry");
        eq(registry.ownerFor(operator, SCOPE_AUDIT), owner, "works");
        eq(registry.nonceOf(owner), 1, "owner's nonce");
        eq(registry.nonceOf(operator), 1, "operator's nonce");
    }

    /// Else whoever saw the two signatures could name a machine of its own as the one that shards are sealed for.
    function test_a_submitter_sets_nothing_that_was_not_signed() public {
        delegate();
        Operator memory o = registry.operatorOf(operator);
        eq(bytes(o.endpoint).length, 0, "no endpoint");
        eq(o.encryptionKey, 0, "no encryption key");
        vm.prank(operator);
        registry.setMachine(operator, "mine", "cpu");
        vm.prank(operator);
        registry.setEndpoint(operator, "http://mine");
        delegate();
        o = registry.operatorOf(operator);
        eq(o.encryptionKey, "mine", "renewal leaves the machine");
        eq(keccak256(bytes(o.endpoint)), keccak256("http://mine"), "and the endpoint");
    }

    function test_a_delegation_is_bound_to_all_of_its_values() public {
        Delegation memory d = asked(owner);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        d.payout = address(1);
        refusedBySignature(d, byOwner);
        d = asked(owner);
        d.scopes = SCOPE_TRAIN;
        refusedBySignature(d, byOwner);
        d = asked(owner);
        d.expiry = FOREVER - 1;
        refusedBySignature(d, byOwner);
        d = asked(vm.addr(OWNER_KEY + 1));
        refusedBySignature(d, byOwner);
        d = asked(owner);
        refusedBySignature(d, Consent(NEVER - 1, byOwner.signature));
        uint256 key = KEY + 1;
        d.operator = vm.addr(key);
        Consent memory willing = Consent(NEVER, consent(owner, d.operator, OTHER, key, NEVER));
        bytes memory other = abi.encodeCall(registry.registerFor, (d, byOwner, willing));
        refused(OTHER, address(registry), other, IOperatorRegistry.BadSignature.selector);
    }

    function test_a_delegation_without_the_keys_consent_registers_nobody() public {
        Delegation memory d = asked(owner);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        bytes memory data = abi.encodeCall(registry.registerFor, (d, byOwner, byOwner));
        refused(owner, address(registry), data, IOperatorRegistry.BadSignature.selector);
        eq(registry.operatorCount(), 0, "nobody");
    }

    function test_a_delegation_counts_in_its_last_second_and_not_in_the_next() public {
        Delegation memory d = asked(owner);
        uint256 deadline = clock() + 5;
        Consent memory byOwner = granted(d, OWNER_KEY, deadline);
        bytes memory data = call(d, byOwner);
        passTo(deadline + 1);
        bytes4 kind = IOperatorRegistry.SignatureExpired.selector;
        refused(OTHER, address(registry), data, abi.encodeWithSelector(kind, deadline, deadline + 1));
        vm.warp(deadline);
        (bool done, ) = address(registry).call(data);
        yes(done, "in the last second");
    }

    function test_a_delegation_is_used_once_and_on_one_chain_and_contract() public {
        Delegation memory d = asked(owner);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        vm.chainId(777);
        refusedBySignature(d, byOwner);
        vm.chainId(31337);
        registry.registerFor(d, byOwner, agreed(d));
        refusedBySignature(d, byOwner);
        deploy();
        refusedBySignature(d, byOwner);
    }

    function test_a_delegation_in_its_other_form_is_refused() public {
        Delegation memory d = asked(owner);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        refusedBySignature(d, Consent(NEVER, highS(byOwner.signature)));
        refusedBySignature(d, Consent(NEVER, ""));
        refusedBySignature(d, Consent(NEVER, new bytes(65)));
    }

    function test_the_zero_address_owns_nothing() public {
        Delegation memory d = asked(address(0));
        refusedBySignature(d, Consent(NEVER, abi.encodePacked(bytes32(0), bytes32(0), uint8(27))));
        refusedBySignature(d, Consent(NEVER, ""));
    }

    function test_signed_rights_are_bounded_as_called_ones_are() public {
        Delegation memory d = asked(owner);
        d.scopes = 8;
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.BadScopes.selector, 8, SCOPE_ALL);
        refused(OTHER, address(registry), call(d, byOwner), error);
        d = asked(owner);
        d.expiry = 0;
        error = abi.encodeWithSelector(IOperatorRegistry.DelegationExpired.selector, operator, 0, clock());
        refused(OTHER, address(registry), call(d, granted(d, OWNER_KEY, NEVER)), error);
        d = asked(owner);
        d.payout = address(0);
        error = abi.encodeWithSelector(IOperatorRegistry.ZeroPayout.selector);
        refused(OTHER, address(registry), call(d, granted(d, OWNER_KEY, NEVER)), error);
    }

    function test_an_owner_signs_for_several_operators_with_one_nonce_after_another() public {
        uint256 count = 3;
        Delegation[] memory all = new Delegation[](count);
        Consent[] memory byOwner = new Consent[](count);
        for (uint256 i; i < count; ++i) {
            all[i] = Delegation(owner, vm.addr(KEY + i), OTHER, SCOPE_ALL, FOREVER);
            byOwner[i] = Consent(NEVER, signed(OWNER_KEY, registry.delegationDigest(all[i], i, NEVER)));
        }
        for (uint256 i; i < count; ++i) {
            bytes memory willing = consent(owner, all[i].operator, OTHER, KEY + i, NEVER);
            registry.registerFor(all[i], byOwner[i], Consent(NEVER, willing));
            eq(registry.ownerFor(all[i].operator, SCOPE_ALL), owner, "registered");
        }
        eq(registry.nonceOf(owner), count, "nonces");
    }

    function test_an_owner_that_is_its_own_operator_signs_with_two_nonces() public {
        Delegation memory d = Delegation(operator, operator, operator, SCOPE_ALL, FOREVER);
        Consent memory byOwner = Consent(NEVER, signed(KEY, registry.delegationDigest(d, 1, NEVER)));
        registry.registerFor(d, byOwner, agreed(d));
        eq(registry.ownerFor(operator, SCOPE_ALL), operator, "itself");
        eq(registry.nonceOf(operator), 2, "two signatures");
    }

    // ---------------------------------------------------------------- taking it back

    function test_a_delegation_kept_back_is_worthless_after_a_revocation() public {
        delegate();
        Delegation memory d = asked(owner);
        Consent memory kept = granted(d, OWNER_KEY, NEVER);
        vm.prank(owner);
        registry.revoke(operator);
        refusedBySignature(d, kept);
        delegate();
        kept = granted(d, OWNER_KEY, NEVER);
        registry.revokeFor(operator, withdrawn(registry.nonceOf(owner), NEVER));
        refusedBySignature(d, kept);
        yes(registry.operatorOf(operator).revoked, "stays revoked");
    }

    function test_a_cancelled_delegation_is_worthless() public {
        Delegation memory d = asked(owner);
        Consent memory kept = granted(d, OWNER_KEY, NEVER);
        vm.prank(owner);
        registry.cancelSignatures();
        refusedBySignature(d, kept);
        delegate();
        eq(registry.ownerFor(operator, SCOPE_ALL), owner, "a new one counts");
    }

    function test_a_signed_revocation_is_submitted_by_anyone_until_its_last_second() public {
        delegate();
        uint256 deadline = clock() + 5;
        Consent memory byOwner = withdrawn(1, deadline);
        bytes memory data = abi.encodeCall(registry.revokeFor, (operator, byOwner));
        passTo(deadline + 1);
        bytes4 kind = IOperatorRegistry.SignatureExpired.selector;
        refused(OTHER, address(registry), data, abi.encodeWithSelector(kind, deadline, deadline + 1));
        vm.warp(deadline);
        vm.prank(OTHER);
        (bool done, ) = address(registry).call(data);
        yes(done, "in the last second");
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.Revoked.selector, operator);
        refused(OTHER, address(registry), abi.encodeCall(registry.ownerFor, (operator, SCOPE_ALL)), error);
    }

    function test_a_revocation_is_used_once_and_never_against_a_later_delegation() public {
        delegate();
        Consent memory byOwner = withdrawn(1, NEVER);
        registry.revokeFor(operator, byOwner);
        delegate();
        bytes4 kind = IOperatorRegistry.BadSignature.selector;
        bytes memory data = abi.encodeCall(registry.revokeFor, (operator, byOwner));
        refused(OTHER, address(registry), data, kind);
        refused(OTHER, address(registry), abi.encodeCall(registry.revokeFor, (operator, withdrawn(4, NEVER))), kind);
        eq(registry.ownerFor(operator, SCOPE_ALL), owner, "still there");
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, OTHER);
        refused(OTHER, address(registry), abi.encodeCall(registry.revokeFor, (OTHER, byOwner)), error);
    }

    // ---------------------------------------------------------------- contracts that own

    function test_a_contract_owns_what_its_key_signed_for_it() public {
        Wallet wallet = new Wallet(owner);
        Delegation memory d = asked(address(wallet));
        refusedBySignature(d, granted(d, OWNER_KEY + 1, NEVER));
        registry.registerFor(d, granted(d, OWNER_KEY, NEVER), agreed(d));
        eq(registry.ownerFor(operator, SCOPE_ALL), address(wallet), "the contract owns");

        bytes32 digest = registry.revocationDigest(address(wallet), operator, 1, NEVER);
        registry.revokeFor(operator, Consent(NEVER, signed(OWNER_KEY, digest)));
        yes(registry.operatorOf(operator).revoked, "and takes back");
    }

    function test_a_contract_owner_may_call_instead_of_signing() public {
        Wallet wallet = new Wallet(owner);
        bytes memory signature = consent(address(wallet), operator, OTHER, KEY, NEVER);
        bytes memory data = abi.encodeCall(
            registry.register,
            (operator, OTHER, SCOPE_ALL, FOREVER, "", 0, 0, NEVER, signature)
        );
        wallet.run(address(registry), data);
        eq(registry.ownerFor(operator, SCOPE_ALL), address(wallet), "owner");
        wallet.run(address(registry), abi.encodeCall(registry.revoke, (operator)));
        yes(registry.operatorOf(operator).revoked, "revoked");
    }

    /// What a wallet says binds nobody but itself, and it is asked once a call.
    function test_a_contract_that_changes_its_mind_harms_only_itself() public {
        FickleWallet wallet = new FickleWallet();
        Delegation memory d = asked(address(wallet));
        passTo(clock() + 1 + (clock() % 2));
        yes(clock() % 2 == 1, "an odd second");
        refusedBySignature(d, Consent(NEVER, ""));
        pass(1);
        refusedBySignature(asked(owner), Consent(NEVER, "")); // it speaks for nobody else
        registry.registerFor(d, Consent(NEVER, ""), agreed(d));
        eq(registry.ownerFor(operator, SCOPE_ALL), address(wallet), "its own operator");
    }

    function test_a_contract_that_burns_gas_costs_only_the_caller() public {
        GreedyWallet wallet = new GreedyWallet();
        Delegation memory d = asked(address(wallet));
        bytes memory data = call(d, Consent(NEVER, ""));
        uint256 before = gasleft();
        (bool done, ) = address(registry).call{gas: 1_000_000}(data);
        yes(!done, "refused");
        yes(before - gasleft() < 1_100_000, "no more than the caller gave");
        eq(registry.nonceOf(operator), 0, "and nothing was used up");
    }

    function test_a_contract_that_reverts_shouts_or_answers_almost_yes_is_refused() public {
        refusedBySignature(asked(address(new LoudWallet())), Consent(NEVER, ""));
        refusedBySignature(asked(address(new SloppyWallet())), Consent(NEVER, ""));
        refusedBySignature(asked(address(token)), Consent(NEVER, ""));
    }

    function test_a_contract_cannot_change_anything_while_it_is_asked() public {
        MeddlingWallet wallet = new MeddlingWallet(address(registry));
        Delegation memory d = asked(address(wallet));
        registry.registerFor(d, Consent(NEVER, ""), agreed(d));
        eq(registry.nonceOf(address(wallet)), 1, "one nonce");
    }

    /// As after an EIP-7702 delegation to a wallet that knows ERC-1271, and to one that does not.
    function test_a_key_that_was_given_code_is_asked_as_a_contract() public {
        Delegation memory d = asked(owner);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        vm.etch(owner, address(new LoudWallet()).code);
        refusedBySignature(d, byOwner);
        vm.etch(owner, address(new Wallet(owner)).code);
        registry.registerFor(d, byOwner, agreed(d));
        eq(registry.ownerFor(operator, SCOPE_ALL), owner, "through its code");
    }

    function test_a_contract_is_no_operator() public {
        Wallet wallet = new Wallet(operator);
        Delegation memory d = Delegation(owner, address(wallet), OTHER, SCOPE_ALL, FOREVER);
        Consent memory byOwner = granted(d, OWNER_KEY, NEVER);
        bytes memory data = abi.encodeCall(registry.registerFor, (d, byOwner, agreed(d)));
        refused(OTHER, address(registry), data, IOperatorRegistry.BadSignature.selector);
    }
}
