// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {World} from "./World.sol";
import {IOperatorRegistry, Operator} from "../contracts/interfaces/IOperatorRegistry.sol";

contract RegistryTest is World {
    uint256 private constant KEY = 0xC0FFEE;
    address private constant OTHER = address(0x0777);
    uint256 private constant NEVER = type(uint256).max;
    Actor private a;
    address private operator;

    function setUp() public {
        deploy();
        a = addActor();
        operator = vm.addr(KEY);
    }

    function call(address payout, uint256 deadline, bytes memory signature) private view returns (bytes memory) {
        return abi.encodeCall(registry.register, (operator, payout, "http://x", 0, 0, deadline, signature));
    }

    function test_a_key_consents_to_one_owner_payout_and_deadline() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, clock());
        bytes4 error = IOperatorRegistry.BadSignature.selector;
        refused(OTHER, address(registry), call(a.payout, clock(), signature), error);
        refused(a.owner, address(registry), call(OTHER, clock(), signature), error);
        refused(a.owner, address(registry), call(a.payout, clock() + 1, signature), error);
        bytes memory expired = call(a.payout, clock(), signature);
        uint256 deadline = clock();
        pass(1);
        bytes memory facts = abi.encodeWithSelector(
            IOperatorRegistry.SignatureExpired.selector,
            deadline,
            deadline + 1
        );
        refused(a.owner, address(registry), expired, facts);
    }

    function test_a_consent_is_used_once_and_on_one_chain_and_contract() public {
        bytes memory signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        vm.chainId(777);
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), IOperatorRegistry.BadSignature.selector);
        vm.chainId(31337);
        signature = consent(a.owner, operator, a.payout, KEY, NEVER);
        vm.prank(a.owner);
        registry.register(operator, a.payout, "http://x", 0, 0, NEVER, signature);
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), IOperatorRegistry.BadSignature.selector);
        address first = address(registry);
        deploy();
        yes(address(registry) != first, "another deployment");
        refused(a.owner, address(registry), call(a.payout, NEVER, signature), IOperatorRegistry.BadSignature.selector);
    }

    function test_an_operator_has_one_owner_for_ever() public {
        register(a, operator, KEY);
        vm.prank(a.owner);
        registry.retire(operator);
        bytes memory signature = consent(OTHER, operator, OTHER, KEY, NEVER);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.OperatorTaken.selector, operator, a.owner);
        refused(OTHER, address(registry), call(OTHER, NEVER, signature), error);
        register(a, operator, KEY);
        eq(registry.activeOwnerOf(operator), a.owner, "back again");
        eq(registry.operatorCount(), 2, "listed once");
        eq(registry.operatorAt(1), operator, "in the list");
    }

    function test_a_retired_or_unknown_key_acts_for_nobody() public {
        bytes memory ask = abi.encodeCall(registry.activeOwnerOf, (operator));
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotAnOperator.selector, operator);
        refused(a.owner, address(registry), ask, error);
        register(a, operator, KEY);
        vm.prank(a.owner);
        registry.retire(operator);
        refused(a.owner, address(registry), ask, error);
        eq(registry.payoutOf(operator), a.payout, "what it earned is still paid");
    }

    function test_the_hot_key_moves_its_endpoint_and_nothing_else() public {
        register(a, operator, KEY);
        vm.prank(operator);
        registry.setEndpoint(operator, "http://new");
        eq(keccak256(bytes(registry.operatorOf(operator).endpoint)), keccak256("http://new"), "endpoint");
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, operator, operator);
        refused(operator, address(registry), abi.encodeCall(registry.setPayout, (operator, OTHER)), error);
        refused(operator, address(registry), abi.encodeCall(registry.retire, (operator)), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, OTHER, operator);
        refused(OTHER, address(registry), abi.encodeCall(registry.setEndpoint, (operator, "")), error);
        error = abi.encodeWithSelector(IOperatorRegistry.NotTheOwner.selector, OTHER, OTHER);
        refused(OTHER, address(registry), abi.encodeCall(registry.setEndpoint, (OTHER, "")), error);
    }

    function test_payout_and_endpoint_are_bounded() public {
        register(a, operator, KEY);
        bytes memory error = abi.encodeWithSelector(IOperatorRegistry.ZeroPayout.selector);
        refused(a.owner, address(registry), abi.encodeCall(registry.setPayout, (operator, address(0))), error);
        error = abi.encodeWithSelector(IOperatorRegistry.EndpointTooLong.selector, 257, 256);
        string memory long = string(new bytes(257));
        refused(a.owner, address(registry), abi.encodeCall(registry.setEndpoint, (operator, long)), error);
        vm.prank(a.owner);
        registry.setPayout(operator, OTHER);
        Operator memory o = registry.operatorOf(operator);
        eq(o.payout, OTHER, "payout");
        eq(o.owner, a.owner, "owner");
    }
}
