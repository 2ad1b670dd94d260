// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {IOperatorRegistry, Operator} from "./interfaces/IOperatorRegistry.sol";

/// @title OperatorRegistry
/// @notice Which hot key works for which owner, and where it can be reached.
/// Assumes: an operator's key is held by who signs with it.
///
/// INV-REG-1: an operator has one owner for ever.
contract OperatorRegistry is IOperatorRegistry, EIP712 {
    bytes32 private constant REGISTRATION_TYPEHASH = keccak256(
        "Registration(address owner,address operator,address payout,uint256 nonce,uint256 deadline)"
    );
    uint256 private constant MAX_ENDPOINT = 256;

    /// @inheritdoc IOperatorRegistry
    mapping(address operator => uint256) public nonceOf;
    mapping(address operator => Operator) private _operators;
    address[] private _list;

    constructor() EIP712("gradmarket", "1") {}

    /// @inheritdoc IOperatorRegistry
    function register(
        address operator,
        address payout,
        string calldata endpoint,
        bytes32 encryptionKey,
        bytes32 determinismClass,
        uint256 deadline,
        bytes calldata signature
    ) external {
        if (block.timestamp > deadline) revert SignatureExpired(deadline, block.timestamp);
        if (payout == address(0)) revert ZeroPayout();
        bytes32 structHash = keccak256(
            abi.encode(REGISTRATION_TYPEHASH, msg.sender, operator, payout, nonceOf[operator]++, deadline)
        );
        (address signer, , ) = ECDSA.tryRecover(_hashTypedDataV4(structHash), signature);
        if (signer != operator || signer == address(0)) revert BadSignature(operator, signer);

        Operator storage o = _operators[operator];
        if (o.owner == address(0)) _list.push(operator);
        else if (o.owner != msg.sender) revert OperatorTaken(operator, o.owner); // INV-REG-1
        o.owner = msg.sender;
        o.payout = payout;
        o.retired = false;
        o.encryptionKey = encryptionKey;
        o.determinismClass = determinismClass;
        _setEndpoint(o, endpoint);
        emit Registered(msg.sender, operator, payout, endpoint);
    }

    /// @inheritdoc IOperatorRegistry
    function setEndpoint(address operator, string calldata endpoint) external {
        if (msg.sender != operator || _operators[operator].owner == address(0)) _checkOwner(operator);
        _setEndpoint(_operators[operator], endpoint);
        emit EndpointChanged(operator, endpoint);
    }

    /// @inheritdoc IOperatorRegistry
    function setPayout(address operator, address payout) external {
        _checkOwner(operator);
        if (payout == address(0)) revert ZeroPayout();
        _operators[operator].payout = payout;
        emit PayoutChanged(operator, payout);
    }

    /// @inheritdoc IOperatorRegistry
    function retire(address operator) external {
        _checkOwner(operator);
        _operators[operator].retired = true;
        emit Retired(operator);
    }

    /// @inheritdoc IOperatorRegistry
    function activeOwnerOf(address operator) external view returns (address owner) {
        Operator storage o = _operators[operator];
        if (o.owner == address(0) || o.retired) revert NotAnOperator(operator);
        return o.owner;
    }

    /// @inheritdoc IOperatorRegistry
    function payoutOf(address operator) external view returns (address payout) {
        return _operators[operator].payout;
    }

    /// @inheritdoc IOperatorRegistry
    function operatorOf(address operator) external view returns (Operator memory) {
        return _operators[operator];
    }

    /// @inheritdoc IOperatorRegistry
    function operatorCount() external view returns (uint256) {
        return _list.length;
    }

    /// @inheritdoc IOperatorRegistry
    function operatorAt(uint256 index) external view returns (address) {
        return _list[index];
    }

    function _checkOwner(address operator) private view {
        if (_operators[operator].owner != msg.sender) revert NotTheOwner(msg.sender, operator);
    }

    function _setEndpoint(Operator storage o, string calldata endpoint) private {
        if (bytes(endpoint).length > MAX_ENDPOINT) revert EndpointTooLong(bytes(endpoint).length, MAX_ENDPOINT);
        o.endpoint = endpoint;
    }
}
