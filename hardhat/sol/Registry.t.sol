// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IOperatorRegistry, Operator} from "../contracts/interfaces/IOperatorRegistry.sol";
import {SCOPE_ALL, SCOPE_AUDIT, SCOPE_CHALLENGE, SCOPE_TRAIN} from "../contracts/types/Types.sol";

/// What an owner does itself, and what a key may do afterwards. Signatures of owners: Delegations.t.sol.
contract RegistryTest is World {
    struct Asked {
        address payout;
        uint8 scopes;
        uint64 expiry;
        uint256 deadline;
    }

    uint256 private constant KEY = 0xC0FFEE;
    address private constant OTHER = address(0x0777);
    uint256 private constant NEVER = type(uint256).max;
    uint64 private constant FOREVER = type(uint64).max;
    Actor private a;
    address private operator;

    function setUp() public {
        deploy();
        a = addActor();
        operator = vm.addr(KEY);
    }

    function call(Asked memory ask, bytes memory signature) private view returns (bytes memory) {
        return
            abi.encodeCall(
                registry.register,
                (operator, ask.payout, ask.scopes, ask.expiry, "http://x", 0, 0, ask.deadline, signature)
            );
    }

    function call(address payout, uint256 deadline, bytes memory signature) private view returns (bytes memory) {
        return call(Asked(payout, SCOPE_ALL, FOREVER, deadline), signature);
    }

    /// Register the operator again with its consent and these rights.
    function grant(uint8 scopes, uint64 expiry) private {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        vm.prank(a.owner);
        registry.register(operator, a.payout, scopes, expiry, "http://x", "key", "class", NEVER, signature);
    }

    function refusedGrant(uint8 scopes, uint64 expiry, bytes memory error) private {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        refused(a.owner, address(registry), call(Asked(a.payout, scopes, expiry, NEVER), signature), error);
    }

    function badSignature(address owner, address payout, uint256 deadline) private view returns (bytes memory) {
        uint256 nonce = registry.nonceOf(operator);
        bytes32 digest = registry.registrationDigest(owner, operator, payout, nonce, deadline);
        return abi.encodeWithSelector(IOperatorRegistry.BadSignature.selector, operator, digest);
    }

    // ---------------------------------------------------------------- the key's consent

    function test_a_key_consents_to_one_owner_payout_and_deadline() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, clock());
        address at = address(registry);
        refused(OTHER, at, call(a.payout, clock(), signature), badSignature(OTHER, a.payout, clock()));
        refused(a.owner, at, call(OTHER, clock(), signature), badSignature(a.owner, OTHER, clock()));
        bytes memory later = call(a.payout, clock() + 1, signature);
        refused(a.owner, at, later, badSignature(a.owner, a.payout, clock() + 1));
    }

    function test_a_consent_counts_in_its_last_second_and_not_in_the_next() public {
        uint256 deadline = clock() + 5;
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, deadline);
        bytes memory data = call(a.payout, deadline, signature);
        passTo(deadline + 1);
        bytes memory error = abi.encodeWithSelector(
            IOperatorRegistry.SignatureExpired.selector,
            deadline,
            deadline + 1
        );
        refused(a.owner, address(registry), data, error);
        vm.warp(deadline);
        vm.prank(a.owner);
        (bool done, ) = address(registry).call(data);
        yes(done, "in the last second");
    }

    function test_a_consent_is_used_once_and_on_one_chain_and_contract() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        vm.chainId(777);
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), badSignature(a.owner, a.payout, NEVER));
        vm.chainId(31337);
        vm.prank(a.owner);
        registry.register(operator, a.payout, SCOPE_ALL, FOREVER, "http://x", 0, 0, NEVER, signature);
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), badSignature(a.owner, a.payout, NEVER));
        address first = address(registry);
        deploy();
        yes(address(registry) != first, "another deployment");
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), badSignature(a.owner, a.payout, NEVER));
    }

    function test_a_consent_in_its_other_form_is_refused() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        bytes memory twin = highS(signature);
        refused(a.owner, address(registry), call(a.payout, NEVER, twin), badSignature(a.owner, a.payout, NEVER));
        bytes memory cut = new bytes(64);
        for (uint256 i; i < 64; ++i) cut[i] = signature[i];
        refused(a.owner, address(registry), call(a.payout, NEVER, cut), badSignature(a.owner, a.payout, NEVER));
        refused(a.owner, address(registry), call(a.payout, NEVER, ""), badSignature(a.owner, a.payout, NEVER));
    }

    function test_nobody_registers_the_zero_address_or_a_key_that_is_not_willing() public {
        bytes memory signature = consent(a.owner, address(0), a.payout, KEY, NEVER);
        bytes4 error = IOperatorRegistry.BadSignature.selector;
        bytes memory zero = abi.encodeCall(
            registry.register,
            (address(0), a.payout, SCOPE_ALL, FOREVER, "", 0, 0, NEVER, signature)
        );
        refused(a.owner, address(registry), zero, error);
        bytes memory garbage = abi.encodePacked(bytes32(0), bytes32(0), uint8(27));
        zero = abi.encodeCall(registry.register, (address(0), a.payout, SCOPE_ALL, FOREVER, "", 0, 0, NEVER, garbage));
        refused(a.owner, address(registry), zero, error);
        bytes memory strangers = consent(a.owner, operator, a.payout, KEY + 1, NEVER);
        refused(a.owner, address(registry), call(a.payout, NEVER, strangers), error);
        eq(registry.operatorCount(), 1, "nobody came");
    }

    // ---------------------------------------------------------------- what the owner grants

    function test_a_key_acts_in_its_scopes_and_in_no_other() public {
        uint8[3] memory each = [SCOPE_TRAIN, SCOPE_AUDIT, SCOPE_CHALLENGE];
        for (uint8 scopes = 1; scopes <= SCOPE_ALL; ++scopes) {
            grant(scopes, FOREVER);
            for (uint256 i; i < 3; ++i) {
                bytes memory ask = abi.encodeCall(registry.ownerFor, (operator, each[i]));
                if (scopes & each[i] != 0) {
                    eq(registry.ownerFor(operator, each[i]), a.owner, "in scope");
                    continue;
                }
                bytes memory error = abi.encodeWithSelector(
                    IOperatorRegistry.OutOfScope.selector,
                    operator,
                    scopes,
                    each[i]
                );
                refused(OTHER, address(registry), ask, error);
            }
            eq(registry.ownerFor(operator, 0), a.owner, "whatever the scope");
        }
        grant(SCOPE_TRAIN | SCOPE_AUDIT, FOREVER);
        bytes memory both = abi.encodeCall(registry.ownerFor, (operator, SCOPE_AUDIT | SCOPE_CHALLENGE));
        bytes memory half = abi.encodeWithSelector(IOperatorRegistry.OutOfScope.selector, operator, 3, 6);
        refused(OTHER, address(registry), both, half);
    }

    function test_no_scope_and_unknown_scopes_are_refused() public {
        uint8[4] memory wrong = [0, SCOPE_ALL + 1, SCOPE_TRAIN | 128, 255];
        for (uint256 i; i < wrong.length; ++i) {
            bytes4 error = IOperatorRegistry.BadScopes.selector;
            refusedGrant(wrong[i], FOREVER, abi.encodeWithSelector(error, wrong[i], SCOPE_ALL));
        }
        eq(registry.operatorOf(operator).owner, address(0), "unknown");
    }

    function test_a_key_acts_in_the_last_second_of_its_delegation_and_not_in_the_next() public {
        uint64 expiry = uint64(clock() + 10);
        grant(SCOPE_ALL, expiry);
        passTo(expiry);
        eq(registry.ownerFor(operator, SCOPE_TRAIN), a.owner, "last second");
        pass(1);
        bytes4 kind = IOperatorRegistry.DelegationExpired.selector;
        bytes memory error = abi.encodeWithSelector(kind, operator, expiry, expiry + 1);
        refused(OTHER, address(registry), abi.encodeCall(registry.ownerFor, (operator, SCOPE_TRAIN)), error);
        refused(OTHER, address(registry), abi.encodeCall(registry.ownerFor, (operator, 0)), error);
        eq(registry.payoutOf(operator), a.payout, "what it earned is still paid");
        grant(SCOPE_ALL, FOREVER);
        vm.warp(type(uint64).max);
        eq(registry.ownerFor(operator, SCOPE_ALL), a.owner, "renewed, and for ever");
    }

    function test_an_expiry_that_is_over_is_refused_and_the_present_second_is_not() public {
        bytes4 kind = IOperatorRegistry.DelegationExpired.selector;
        refusedGrant(SCOPE_ALL, 0, abi.encodeWithSelector(kind, operator, 0, clock()));
        uint64 second = uint64(clock());
        refusedGrant(SCOPE_ALL, second - 1, abi.encodeWithSelector(kind, operator, second - 1, second));
        grant(SCOPE_ALL, second);
        eq(registry.ownerFor(operator, SCOPE_ALL), a.owner, "for one second");
    }

    function test_a_delegation_can_be_narrowed_by_its_owner() public {
        grant(SCOPE_ALL, FOREVER);
        grant(SCOPE_AUDIT, uint64(clock() + 1));
        Operator memory o = registry.operatorOf(operator);
        eq(o.scopes, SCOPE_AUDIT, "scopes");
        eq(o.expiry, clock() + 1, "expiry");
        eq(o.encryptionKey, "key", "encryption key");
        eq(o.determinismClass, "class", "determinism class");
        eq(registry.operatorCount(), 2, "listed once");
    }

    function test_an_owner_has_several_operators_each_with_its_own_rights() public {
        grant(SCOPE_TRAIN, FOREVER);
        eq(registry.ownerFor(a.operator, SCOPE_CHALLENGE), a.owner, "the first");
        eq(registry.ownerFor(operator, SCOPE_TRAIN), a.owner, "the second");
        vm.prank(a.owner);
        registry.revoke(a.operator);
        eq(registry.ownerFor(operator, SCOPE_TRAIN), a.owner, "not touched by the first one's end");
    }

    /// One key for both is allowed: it is less safe, and only for whoever chooses it.
    function test_an_owner_may_be_its_own_operator() public {
        bytes memory signature = consent(operator, operator, operator, KEY, NEVER);
        vm.prank(operator);
        registry.register(operator, operator, SCOPE_ALL, FOREVER, "", 0, 0, NEVER, signature);
        eq(registry.ownerFor(operator, SCOPE_ALL), operator, "itself");
        vm.prank(operator);
        registry.revoke(operator);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.Revoked.selector, operator);
        refused(OTHER, address(registry), abi.encodeCall(registry.ownerFor, (operator, SCOPE_ALL)), error);
    }

    function testFuzz_a_key_acts_exactly_as_its_owner_said(uint8 scopes, uint64 expiry, uint8 scope, uint64 at) public {
        scopes = uint8(bound(scopes, 1, SCOPE_ALL));
        expiry = uint64(bound(expiry, clock(), FOREVER));
        at = uint64(bound(at, clock(), FOREVER));
        grant(scopes, expiry);
        vm.warp(at);
        (bool acts, ) = address(registry).call(abi.encodeCall(registry.ownerFor, (operator, scope)));
        yes(acts == (at <= expiry && scope & ~scopes == 0), "in time and in scope");
        vm.prank(operator);
        registry.revoke(operator);
        (acts, ) = address(registry).call(abi.encodeCall(registry.ownerFor, (operator, scope)));
        yes(!acts, "never once revoked");
    }

    // ---------------------------------------------------------------- the end of a delegation

    function test_an_operator_has_one_owner_for_ever() public {
        register(a, operator, KEY);
        vm.prank(a.owner);
        registry.revoke(operator);
        bytes memory signature = consent(OTHER, operator, OTHER, KEY, NEVER);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.OperatorTaken.selector, operator, a.owner);
        refused(OTHER, address(registry), call(OTHER, NEVER, signature), error);
        register(a, operator, KEY);
        eq(registry.ownerFor(operator, 0), a.owner, "back again");
        eq(registry.operatorCount(), 2, "listed once");
        eq(registry.operatorAt(1), operator, "in the list");
    }

    function test_a_revoked_or_unknown_key_acts_for_nobody() public {
        bytes memory ask = abi.encodeCall(registry.ownerFor, (operator, SCOPE_TRAIN));
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, operator);
        refused(a.owner, address(registry), ask, error);
        refused(a.owner, address(registry), abi.encodeCall(registry.revoke, (operator)), error);
        refused(operator, address(registry), abi.encodeCall(registry.revoke, (operator)), error);
        register(a, operator, KEY);
        vm.prank(a.owner);
        registry.revoke(operator);
        error = abi.encodeWithSelector(IOperatorRegistry.Revoked.selector, operator);
        refused(a.owner, address(registry), ask, error);
        refused(a.owner, address(registry), abi.encodeCall(registry.ownerFor, (operator, 0)), error);
        eq(registry.payoutOf(operator), a.payout, "what it earned is still paid");
        eq(registry.ownerOf(operator), a.owner, "its owner answers for what is open");
        eq(registry.ownerOf(OTHER), address(0), "nobody's");
    }

    function test_a_key_that_leaves_cannot_be_brought_back_by_a_consent_it_gave_before() public {
        register(a, operator, KEY);
        bytes memory kept = consent(a.owner, operator, a.payout, KEY, NEVER);
        vm.prank(operator);
        registry.revoke(operator);
        refused(a.owner, address(registry), call(a.payout, NEVER, kept), badSignature(a.owner, a.payout, NEVER));
        register(a, operator, KEY);
        eq(registry.ownerFor(operator, 0), a.owner, "by a new consent only");
    }

    function test_only_the_owner_and_the_key_itself_revoke_and_both_may_repeat_it() public {
        register(a, operator, KEY);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, OTHER, operator);
        refused(OTHER, address(registry), abi.encodeCall(registry.revoke, (operator)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, a.operator, operator);
        refused(a.operator, address(registry), abi.encodeCall(registry.revoke, (operator)), error);
        vm.prank(operator);
        registry.revoke(operator);
        vm.prank(a.owner);
        registry.revoke(operator);
        yes(registry.operatorOf(operator).revoked, "revoked");
    }

    function test_a_cancelled_consent_is_worthless() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        uint256 nonce = registry.nonceOf(operator);
        vm.prank(operator);
        registry.cancelSignatures();
        eq(registry.nonceOf(operator), nonce + 1, "nonce");
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), badSignature(a.owner, a.payout, NEVER));
    }

    // ---------------------------------------------------------------- the entry

    function test_the_hot_key_moves_its_endpoint_and_machine_and_nothing_else() public {
        register(a, operator, KEY);
        vm.startPrank(operator);
        registry.setEndpoint(operator, "http://new");
        registry.setMachine(operator, "sealed", "cpu");
        vm.stopPrank();
        Operator memory o = registry.operatorOf(operator);
        eq(keccak256(bytes(o.endpoint)), keccak256("http://new"), "endpoint");
        eq(o.encryptionKey, "sealed", "encryption key");
        eq(o.determinismClass, "cpu", "determinism class");
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, operator, operator);
        refused(operator, address(registry), abi.encodeCall(registry.setPayout, (operator, OTHER)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, OTHER, operator);
        refused(OTHER, address(registry), abi.encodeCall(registry.setEndpoint, (operator, "")), error);
        refused(OTHER, address(registry), abi.encodeCall(registry.setMachine, (operator, 0, 0)), error);
        refused(OTHER, address(registry), abi.encodeCall(registry.setPayout, (operator, OTHER)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, OTHER, OTHER);
        refused(OTHER, address(registry), abi.encodeCall(registry.setEndpoint, (OTHER, "")), error);
        refused(OTHER, address(registry), abi.encodeCall(registry.setMachine, (OTHER, 0, 0)), error);
    }

    function test_payout_and_endpoint_are_bounded() public {
        register(a, operator, KEY);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.ZeroPayout.selector);
        refused(a.owner, address(registry), abi.encodeCall(registry.setPayout, (operator, address(0))), error);
        bytes memory signature = consent(a.owner, operator, address(0), KEY, NEVER);
        refused(a.owner, address(registry), call(address(0), NEVER, signature), error);
        error = abi.encodeWithSelector(IOperatorRegistry.EndpointTooLong.selector, 257, 256);
        string memory long = string(new bytes(257));
        refused(a.owner, address(registry), abi.encodeCall(registry.setEndpoint, (operator, long)), error);
        vm.startPrank(a.owner);
        registry.setEndpoint(operator, string(new bytes(256)));
        registry.setPayout(operator, OTHER);
        vm.stopPrank();
        Operator memory o = registry.operatorOf(operator);
        eq(bytes(o.endpoint).length, 256, "the longest endpoint");
        eq(o.payout, OTHER, "payout");
        eq(o.owner, a.owner, "owner");
    }
}
