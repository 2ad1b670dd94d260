// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Holds what jobs pay. Money lies in pots (a job's escrow, a round's reservation, a case, the court fund) until it
/// is credited to an account, which then pulls it.
interface IRewardLedger {
    event Funded(bytes32 indexed pot, address indexed payer, uint256 amount);
    event Moved(bytes32 indexed from, bytes32 indexed to, uint256 amount);
    event Credited(bytes32 indexed pot, address indexed account, uint256 amount);
    event Burnt(bytes32 indexed pot, uint256 amount);
    event BurnRefused(uint256 amount);
    event Absorbed(bytes32 indexed pot, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);

    error ZeroAmount();
    error NotABook(address caller);
    error PotTooSmall(bytes32 pot, uint256 have, uint256 need);
    error CreditTooSmall(address account, uint256 have, uint256 need);
    error TokenLied(uint256 received, uint256 expected);
    error TokensMissing(uint256 have, uint256 need);

    /// Put `amount` wei of the payer's tokens into a pot. The job market only, and only for a payer who called it; needs
    /// the payer's allowance. Reverts with `NotABook`, `ZeroAmount`, with `TokenLied` when fewer or more tokens arrive,
    /// and with `TokensMissing` when the ledger has fewer tokens than it owes. Front-running changes nothing.
    function fund(bytes32 pot, address payer, uint256 amount) external;

    /// Move wei between pots. Books only. Reverts with `NotABook`, `PotTooSmall`.
    function move(bytes32 from, bytes32 to, uint256 amount) external;

    /// Turn wei of a pot into an account's credit. Books only. Reverts with `NotABook`, `PotTooSmall`.
    function credit(bytes32 pot, address account, uint256 amount) external;

    /// Burn wei of a pot. Books only. Where the token refuses the burn address, they stay in the ledger, nobody's
    /// (`BurnRefused`). Reverts with `NotABook`, `PotTooSmall`.
    function burn(bytes32 pot, uint256 amount) external;

    /// Book tokens that the stake vault has just sent: `amount` wei, or as many as lie here beyond what is owed. The
    /// vault only. Reverts with `NotABook`.
    function absorb(bytes32 pot, uint256 amount) external;

    /// Send `amount` wei of an account's credit to that account; 0 means all. Anyone may call, at any time: the money
    /// can only go to the account itself. Reverts with `CreditTooSmall`, `ZeroAmount`, and as the token does when the
    /// account cannot receive. Front-running: a withdrawal of the same credit by another caller reaches the account too.
    function withdraw(address account, uint256 amount) external returns (uint256 sent);

    /// Wei in a pot.
    function potOf(bytes32 pot) external view returns (uint256);

    /// Wei that an account can withdraw.
    function creditOf(address account) external view returns (uint256);

    /// Wei in all pots and credits.
    function held() external view returns (uint256);
}
