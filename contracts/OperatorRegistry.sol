// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {IOperatorRegistry, Operator, Delegation, Consent} from "./interfaces/IOperatorRegistry.sol";
import {SCOPE_ALL} from "./types/Types.sol";

/// @title OperatorRegistry
/// @notice Which hot key works for which owner, at what and until when, and where it can be reached.
/// Assumes: an operator's key is held by who signs with it; an owner that is a contract means what it answers.
/// Assumes for liveness: nothing; a revocation needs only its owner or its operator.
///
/// INV-REG-1: an operator has one owner for ever.
/// INV-REG-2: a key acts only in the scopes and until the second that its owner named last, and never once revoked.
/// INV-REG-3: a signature counts at most once, on one chain and deployment, until its deadline.
contract OperatorRegistry is IOperatorRegistry, EIP712 {
    bytes32 private constant REGISTRATION_TYPEHASH = keccak256(
        "Registration(address owner,address operator,address payout,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant DELEGATION_TYPEHASH = keccak256(
        "Delegation(address owner,address operator,address payout,uint8 scopes,uint64 expiry,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant REVOCATION_TYPEHASH = keccak256(
        "Revocation(address owner,address operator,uint256 nonce,uint256 deadline)"
    );
    uint256 private constant MAX_ENDPOINT = 256;

    /// @inheritdoc IOperatorRegistry
    mapping(address account => uint256) public nonceOf;
    mapping(address operator => Operator) private _operators;
    address[] private _list;

    constructor() EIP712("gradmarket", "1") {}

    /// @inheritdoc IOperatorRegistry
    function register(
        address operator,
        address payout,
        uint8 scopes,
        uint64 expiry,
        string calldata endpoint,
        bytes32 encryptionKey,
        bytes32 determinismClass,
        uint256 deadline,
        bytes calldata signature
    ) external {
        _delegate(Delegation(msg.sender, operator, payout, scopes, expiry), Consent(deadline, signature));
        _setEndpoint(operator, endpoint);
        _setMachine(operator, encryptionKey, determinismClass);
    }

    /// @inheritdoc IOperatorRegistry
    function registerFor(
        Delegation calldata delegation,
        Consent calldata byOwner,
        Consent calldata byOperator
    ) external {
        // The operator's first: an owner that is its own operator signs with two nonces in a row.
        _delegate(delegation, byOperator);
        uint256 nonce = nonceOf[delegation.owner]++;
        _checkOwnerSigned(delegation.owner, delegationDigest(delegation, nonce, byOwner.deadline), byOwner);
    }

    /// @inheritdoc IOperatorRegistry
    function revoke(address operator) external {
        address owner = _existing(operator).owner;
        if (msg.sender != operator && msg.sender != owner) revert NotTheOwner(msg.sender, operator);
        _cancelSignatures(msg.sender);
        _revoke(operator, owner, msg.sender);
    }

    /// @inheritdoc IOperatorRegistry
    function revokeFor(address operator, Consent calldata byOwner) external {
        address owner = _existing(operator).owner;
        uint256 nonce = nonceOf[owner]++;
        _checkOwnerSigned(owner, revocationDigest(owner, operator, nonce, byOwner.deadline), byOwner);
        _revoke(operator, owner, owner);
    }

    /// @inheritdoc IOperatorRegistry
    function cancelSignatures() external {
        _cancelSignatures(msg.sender);
    }

    /// @inheritdoc IOperatorRegistry
    function setPayout(address operator, address payout) external {
        if (_operators[operator].owner != msg.sender) revert NotTheOwner(msg.sender, operator);
        if (payout == address(0)) revert ZeroPayout();
        _operators[operator].payout = payout;
        emit PayoutChanged(operator, payout);
    }

    /// @inheritdoc IOperatorRegistry
    function setEndpoint(address operator, string calldata endpoint) external {
        _checkOwnerOrOperator(operator);
        _setEndpoint(operator, endpoint);
    }

    /// @inheritdoc IOperatorRegistry
    function setMachine(address operator, bytes32 encryptionKey, bytes32 determinismClass) external {
        _checkOwnerOrOperator(operator);
        _setMachine(operator, encryptionKey, determinismClass);
    }

    /// @inheritdoc IOperatorRegistry
    function ownerFor(address operator, uint8 scope) external view returns (address owner) {
        Operator storage o = _operators[operator];
        owner = o.owner;
        if (owner == address(0)) revert NotAnOperator(operator);
        if (o.revoked) revert Revoked(operator);
        if (block.timestamp > o.expiry) revert DelegationExpired(operator, o.expiry, block.timestamp);
        if (o.scopes & scope != scope) revert OutOfScope(operator, o.scopes, scope); // INV-REG-2
    }

    /// @inheritdoc IOperatorRegistry
    function ownerOf(address operator) external view returns (address owner) {
        return _operators[operator].owner;
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

    /// @inheritdoc IOperatorRegistry
    function registrationDigest(
        address owner,
        address operator,
        address payout,
        uint256 nonce,
        uint256 deadline
    ) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(REGISTRATION_TYPEHASH, owner, operator, payout, nonce, deadline)));
    }

    /// @inheritdoc IOperatorRegistry
    function delegationDigest(Delegation memory d, uint256 nonce, uint256 deadline) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(DELEGATION_TYPEHASH, d, nonce, deadline)));
    }

    /// @inheritdoc IOperatorRegistry
    function revocationDigest(
        address owner,
        address operator,
        uint256 nonce,
        uint256 deadline
    ) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(REVOCATION_TYPEHASH, owner, operator, nonce, deadline)));
    }

    /// The one way in: the operator has consented, the caller answers for the owner.
    function _delegate(Delegation memory d, Consent memory byOperator) private {
        if (d.payout == address(0)) revert ZeroPayout();
        if (d.scopes == 0 || d.scopes & ~SCOPE_ALL != 0) revert BadScopes(d.scopes, SCOPE_ALL);
        if (d.expiry < block.timestamp) revert DelegationExpired(d.operator, d.expiry, block.timestamp);
        _checkDeadline(byOperator.deadline);
        uint256 nonce = nonceOf[d.operator]++; // INV-REG-3
        bytes32 digest = registrationDigest(d.owner, d.operator, d.payout, nonce, byOperator.deadline);
        // A key, never a contract: peers know an operator by what it signs.
        (address signer, , ) = ECDSA.tryRecover(digest, byOperator.signature);
        if (signer != d.operator || signer == address(0)) revert BadSignature(d.operator, digest);

        Operator storage o = _operators[d.operator];
        if (o.owner == address(0)) _list.push(d.operator);
        else if (o.owner != d.owner) revert OperatorTaken(d.operator, o.owner); // INV-REG-1
        o.owner = d.owner;
        o.scopes = d.scopes;
        o.expiry = d.expiry;
        o.revoked = false;
        o.payout = d.payout;
        emit Registered(d.owner, d.operator, d.payout, d.scopes, d.expiry);
    }

    function _revoke(address operator, address owner, address by) private {
        _operators[operator].revoked = true;
        emit OperatorRevoked(owner, operator, by);
    }

    function _cancelSignatures(address account) private {
        emit SignaturesCancelled(account, nonceOf[account]++);
    }

    function _setEndpoint(address operator, string calldata endpoint) private {
        if (bytes(endpoint).length > MAX_ENDPOINT) revert EndpointTooLong(bytes(endpoint).length, MAX_ENDPOINT);
        _operators[operator].endpoint = endpoint;
        emit EndpointChanged(operator, endpoint);
    }

    function _setMachine(address operator, bytes32 encryptionKey, bytes32 determinismClass) private {
        Operator storage o = _operators[operator];
        o.encryptionKey = encryptionKey;
        o.determinismClass = determinismClass;
        emit MachineChanged(operator, encryptionKey, determinismClass);
    }

    function _existing(address operator) private view returns (Operator storage o) {
        o = _operators[operator];
        if (o.owner == address(0)) revert NotAnOperator(operator);
    }

    function _checkOwnerOrOperator(address operator) private view {
        address owner = _operators[operator].owner;
        if (msg.sender == operator && owner != address(0)) return;
        if (msg.sender != owner) revert NotTheOwner(msg.sender, operator);
    }

    function _checkDeadline(uint256 deadline) private view {
        if (block.timestamp > deadline) revert SignatureExpired(deadline, block.timestamp);
    }

    /// A key signs with low s; a contract is asked (ERC-1271) by a call that cannot change anything.
    function _checkOwnerSigned(address owner, bytes32 digest, Consent calldata byOwner) private view {
        _checkDeadline(byOwner.deadline);
        if (!SignatureChecker.isValidSignatureNowCalldata(owner, digest, byOwner.signature)) {
            revert BadSignature(owner, digest);
        }
    }
}
