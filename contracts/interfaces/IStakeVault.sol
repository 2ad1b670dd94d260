// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Holds owners' stake. Knows nothing of training: books lock, release and slash what they locked.
interface IStakeVault {
    event Deposited(address indexed owner, address indexed payer, uint256 amount);
    event Withdrawn(address indexed owner, uint256 amount);
    event Locked(address indexed owner, address indexed book, bytes32 indexed id, uint256 amount);
    event Released(address indexed owner, address indexed book, bytes32 indexed id, uint256 amount);
    event Slashed(address indexed owner, address indexed book, bytes32 indexed id, uint256 amount, uint256 burnt);
    event BurnRefused(uint256 amount);

    error ZeroAmount();
    error AmountTooLarge(uint256 have, uint256 most);
    error NotABook(address caller);
    error StakeTooSmall(address owner, uint256 have, uint256 need);
    error LockExists(bytes32 id);
    error LockTooLarge(uint256 have, uint256 most);
    error LockTooSmall(bytes32 id, uint256 have, uint256 need);
    error TokenLied(uint256 received, uint256 expected);
    error TokensMissing(uint256 have, uint256 need);

    /// Add `amount` wei of the caller's tokens to the stake of `owner`. Anyone; needs an allowance. Reverts with
    /// `ZeroAmount`, with `TokenLied` when fewer or more tokens arrive than were asked for, and with `TokensMissing` when
    /// the vault has fewer tokens than it owes: nobody pays for what was lost before. Front-running changes nothing.
    function deposit(address owner, uint256 amount) external;

    /// The same with an allowance that the caller signed for this vault and `amount` (EIP-2612), until `deadline`.
    /// Only the caller's own permit is used. Front-running: whoever uses the permit first changes nothing, because the
    /// allowance is then there; with neither, it reverts as the token does.
    function depositWithPermit(address owner, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// Send `amount` wei of the caller's unlocked stake to the caller; 0 means all that is unlocked. Any owner, at any
    /// time. Reverts with `StakeTooSmall`, `ZeroAmount`. Front-running: a book may lock the stake first.
    function withdraw(uint256 amount) external returns (uint256 sent);

    /// Lock `amount` wei of an owner's free stake under an id of the calling book. Books only. Reverts with `NotABook`,
    /// `StakeTooSmall`, `LockTooLarge` (96 bits), `LockExists`. Front-running: the owner may withdraw first.
    function lock(address owner, bytes32 id, uint256 amount) external;

    /// Free what is left under the calling book's id; a second call finds nothing. Books only. Reverts with `NotABook`.
    function release(bytes32 id) external returns (uint256 amount);

    /// Take `amount` wei out of the calling book's lock: burn `burnt` of it, send the rest to `pot` in the ledger.
    /// Only locks can be slashed, never free stake. Books only. Where the token refuses the burn address, the burnt part
    /// stays in the vault, nobody's (`BurnRefused`). Reverts with `NotABook`, `LockTooSmall`, and as the token does when
    /// the ledger cannot receive. Cannot be front-run: what is locked cannot leave.
    function slash(bytes32 id, uint256 amount, uint256 burnt, bytes32 pot) external;

    /// Wei of all owners, locked part included.
    function staked() external view returns (uint256);

    /// Wei deposited and not withdrawn or slashed, locked part included.
    function balanceOf(address owner) external view returns (uint256);

    /// Wei under locks.
    function lockedOf(address owner) external view returns (uint256);

    /// Wei that can be locked or withdrawn.
    function freeOf(address owner) external view returns (uint256);

    /// The owner and the wei of one lock.
    function lockOf(address book, bytes32 id) external view returns (address owner, uint256 amount);
}
