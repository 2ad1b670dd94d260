// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

struct Operator {
    address owner;
    uint8 scopes; // SCOPE_ bits
    uint64 expiry; // last second in which the key acts; type(uint64).max is never
    bool revoked;
    address payout;
    bytes32 encryptionKey; // X25519 public key for sealed shards
    bytes32 determinismClass; // software, device family, precision and flags
    string endpoint; // where the operator serves blobs
}

/// What an owner gives a key, in the order of the EIP-712 message.
struct Delegation {
    address owner;
    address operator;
    address payout; // who is credited
    uint8 scopes;
    uint64 expiry;
}

/// A signature and the last second in which it is taken.
struct Consent {
    uint256 deadline;
    bytes signature;
}

/// Owners name the hot keys that work for them. An owner is a key or a contract (ERC-1271); an operator is a key.
/// All times are block times in seconds, each the last second that counts. EIP-712 domain: name `gradmarket`, version
/// `1`, chain and contract. An account that has code is asked as a contract, also when a key could sign for it.
interface IOperatorRegistry {
    event Registered(
        address indexed owner,
        address indexed operator,
        address indexed payout,
        uint8 scopes,
        uint64 expiry
    );
    event OperatorRevoked(address indexed owner, address indexed operator, address indexed by);
    event PayoutChanged(address indexed operator, address indexed payout);
    event EndpointChanged(address indexed operator, string endpoint);
    event MachineChanged(address indexed operator, bytes32 encryptionKey, bytes32 indexed determinismClass);
    event SignaturesCancelled(address indexed account, uint256 indexed nonce);

    error NotTheOwner(address caller, address operator);
    error OperatorTaken(address operator, address owner);
    error NotAnOperator(address account);
    error Revoked(address operator);
    error DelegationExpired(address operator, uint256 expiry, uint256 time);
    error OutOfScope(address operator, uint8 scopes, uint8 scope);
    error BadScopes(uint8 scopes, uint8 known);
    error BadSignature(address account, bytes32 digest);
    error SignatureExpired(uint256 deadline, uint256 time);
    error EndpointTooLong(uint256 have, uint256 most);
    error ZeroPayout();

    /// Name `operator` as a key of the caller's, or renew what it may do. Any caller becomes the owner; the key agrees
    /// by signing Registration(address owner,address operator,address payout,uint256 nonce,uint256 deadline) with its
    /// own nonce, until `deadline`. Reverts with `ZeroPayout`, `BadScopes` (none, or unknown bits), `DelegationExpired`
    /// (an expiry in the past, 0 too), `SignatureExpired`, `BadSignature`, `OperatorTaken`, `EndpointTooLong`.
    /// Front-running: the consent names the owner, so whoever copies it gains nothing.
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
    ) external;

    /// The same for an owner that sends nothing: it signs Delegation(address owner,address operator,address payout,
    /// uint8 scopes,uint64 expiry,uint256 nonce,uint256 deadline) with its own nonce. Anyone submits, until both
    /// deadlines. Sets what was signed and no more: endpoint and machine stay, and the operator says them itself.
    /// An owner that is its own operator signs the Registration with its nonce and the Delegation with the next.
    /// Reverts as `register` does. Front-running: another submitter has the same effect; the second call reverts.
    function registerFor(
        Delegation calldata delegation,
        Consent calldata byOwner,
        Consent calldata byOperator
    ) external;

    /// Stop a key from starting anything; what is open stays open. Its owner or the key itself, at any time; safe to
    /// repeat. Cancels the caller's unused signatures, so that none of them brings the key back. The same owner may
    /// register it again, with a new consent of the key. Reverts with `NotAnOperator`, `NotTheOwner`.
    /// Front-running: the key can still act before this is mined.
    function revoke(address operator) external;

    /// The same by the owner's signature of Revocation(address owner,address operator,uint256 nonce,uint256 deadline).
    /// Anyone submits, until its deadline. Uses up the owner's nonce. Reverts with `NotAnOperator`, `SignatureExpired`,
    /// `BadSignature`. Front-running: another submitter has the same effect.
    function revokeFor(address operator, Consent calldata byOwner) external;

    /// Make every unused signature of the caller worthless, by going on to the next nonce. Anyone, for itself.
    /// Front-running: a signature that is already public can be used before this is mined.
    function cancelSignatures() external;

    /// Say who is credited from now on; open work included. Owner only. Reverts with `NotTheOwner`, `ZeroPayout`.
    /// Front-running: a settlement mined first still credits the old one.
    function setPayout(address operator, address payout) external;

    /// Say where the operator serves blobs, in at most 256 bytes. Owner or operator, also a revoked one: it serves what
    /// is open. Reverts with `NotTheOwner`, `EndpointTooLong`. Front-running changes nothing.
    function setEndpoint(address operator, string calldata endpoint) external;

    /// Say which key seals shards for the operator and which class its machine is of. Owner or operator.
    /// Reverts with `NotTheOwner`. Front-running changes nothing.
    function setMachine(address operator, bytes32 encryptionKey, bytes32 determinismClass) external;

    /// The owner that a key may act for in all the scopes of `scope`, now. Reverts with `NotAnOperator`, `Revoked`,
    /// `DelegationExpired` after the last second, `OutOfScope`.
    function ownerFor(address operator, uint8 scope) external view returns (address owner);

    /// Whose key it is for ever, also a revoked or expired one; zero for an account that was never an operator.
    function ownerOf(address operator) external view returns (address owner);

    /// Whom to credit for an operator's work; also for a revoked or expired one.
    function payoutOf(address operator) external view returns (address payout);

    /// The whole entry; empty for an account that was never an operator.
    function operatorOf(address operator) external view returns (Operator memory);

    /// How many operators were ever registered; revoked ones stay listed.
    function operatorCount() external view returns (uint256);

    /// The operator with that number.
    function operatorAt(uint256 index) external view returns (address);

    /// Signatures that the account has used or cancelled: part of the next one, whether as owner or as operator.
    function nonceOf(address account) external view returns (uint256);

    /// What an operator signs to consent.
    function registrationDigest(
        address owner,
        address operator,
        address payout,
        uint256 nonce,
        uint256 deadline
    ) external view returns (bytes32);

    /// What an owner signs to delegate.
    function delegationDigest(
        Delegation memory delegation,
        uint256 nonce,
        uint256 deadline
    ) external view returns (bytes32);

    /// What an owner signs to revoke.
    function revocationDigest(
        address owner,
        address operator,
        uint256 nonce,
        uint256 deadline
    ) external view returns (bytes32);
}
