// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

struct Operator {
    address owner;
    address payout;
    bool retired;
    bytes32 encryptionKey; // X25519 public key for sealed shards
    bytes32 determinismClass; // software, device family, precision and flags
    string endpoint; // where the operator serves blobs
}

/// Owners name the hot keys that work for them.
interface IOperatorRegistry {
    event Registered(address indexed owner, address indexed operator, address payout, string endpoint);
    event EndpointChanged(address indexed operator, string endpoint);
    event PayoutChanged(address indexed operator, address payout);
    event Retired(address indexed operator);

    error NotTheOwner(address caller, address operator);
    error OperatorTaken(address operator, address owner);
    error NotAnOperator(address account);
    error BadSignature(address operator, address signer);
    error SignatureExpired(uint256 deadline, uint256 time);
    error EndpointTooLong(uint256 have, uint256 most);
    error ZeroPayout();

    /// Name `operator` as a key of the caller's. The key consents with an EIP-712 signature of
    /// Registration(address owner,address operator,address payout,uint256 nonce,uint256 deadline), so nobody can
    /// register a key that is not theirs. Repeating it with the same owner updates the entry.
    function register(
        address operator,
        address payout,
        string calldata endpoint,
        bytes32 encryptionKey,
        bytes32 determinismClass,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// Say where the operator serves blobs. Owner or operator.
    function setEndpoint(address operator, string calldata endpoint) external;

    /// Say who is credited from now on. Owner only.
    function setPayout(address operator, address payout) external;

    /// Stop the operator from claiming and enrolling; what is open stays open. Owner only.
    function retire(address operator) external;

    /// The owner behind a key. Reverts with `NotAnOperator` for an unknown or retired one.
    function activeOwnerOf(address operator) external view returns (address owner);

    /// Whom to credit for an operator's work; also for a retired one.
    function payoutOf(address operator) external view returns (address payout);

    /// The whole entry.
    function operatorOf(address operator) external view returns (Operator memory);

    /// How many operators were ever registered; retired ones stay listed.
    function operatorCount() external view returns (uint256);

    /// The operator with that number.
    function operatorAt(uint256 index) external view returns (address);

    /// Registrations that this key has consented to: part of what it signs.
    function nonceOf(address operator) external view returns (uint256);
}
