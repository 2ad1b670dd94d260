// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";
import {IProvenBeacon} from "../interfaces/IProvenBeacon.sol";

/// What all beacons with proofs share: tickets, replacements, the last resort. A ticket is the moment that counts, and
/// above it how often the ticket was replaced. Pins and replacements store nothing.
abstract contract ProvenBeacon is IProvenBeacon {
    uint256 private constant MOMENT_BITS = 64;
    /// Replacements after which a chain of tickets leaves the beacon: each one took a whole time to prove in which
    /// nobody did, so the source is taken for gone.
    uint256 private constant LAST = 3;
    /// Blocks from a last resort's `repin` to the block that it names. On Ethereum proposers are known for two spans of
    /// 32 slots at most; twice that, so that whoever times the call does not know who will make the block.
    uint256 private constant LAST_LEAD = 128;
    uint256 private constant REACH = 256; // blocks that BLOCKHASH looks back

    mapping(uint256 moment => bytes32 outcome) public outcomeOf;

    /// @inheritdoc IBeacon
    function pin() external view returns (uint256 ticket) {
        return _next();
    }

    /// @inheritdoc IBeacon
    function repin(uint256 ticket) external view returns (uint256 newTicket) {
        (uint256 replacements, uint256 moment) = _open(ticket);
        if (!_expired(replacements, moment)) revert NotExpired(ticket, _now(replacements));
        if (replacements < LAST) ++replacements;
        moment = replacements == LAST ? block.number + LAST_LEAD : _next();
        return (replacements << MOMENT_BITS) | moment;
    }

    /// @inheritdoc IProvenBeacon
    function prove(uint256 ticket, bytes calldata proof) external {
        (uint256 replacements, uint256 moment) = _open(ticket);
        if (replacements == LAST) revert NothingToProve(ticket);
        if (outcomeOf[moment] != 0) return;
        if (!_happened(moment)) revert SeedNotReady(ticket, _clock());
        if (!_provable(moment)) revert SeedExpired(ticket, _clock());
        bytes32 outcome = _verified(moment, proof);
        outcomeOf[moment] = outcome;
        emit Proved(moment, outcome);
    }

    /// @inheritdoc IBeacon
    function seedOf(uint256 ticket) external view returns (bytes32 seed) {
        (uint256 replacements, uint256 moment) = _open(ticket);
        if (_expired(replacements, moment)) revert SeedExpired(ticket, _now(replacements));
        // BLOCKHASH gives zero for blocks to come
        bytes32 outcome = replacements == LAST ? blockhash(moment) : outcomeOf[moment];
        if (outcome == 0) revert SeedNotReady(ticket, _now(replacements));
        return keccak256(abi.encode(address(this), block.chainid, ticket, outcome));
    }

    /// @inheritdoc IBeacon
    function expired(uint256 ticket) external view returns (bool) {
        (uint256 replacements, uint256 moment) = _open(ticket);
        return _expired(replacements, moment);
    }

    /// The moment that a pin in this block fixes; below 2^64.
    function _next() internal view virtual returns (uint256 moment);

    /// The clock that moments are judged by, for errors.
    function _clock() internal view virtual returns (uint256 at);

    /// Whether a moment can be one of `_next`'s at all.
    function _exists(uint256 moment) internal view virtual returns (bool);

    function _happened(uint256 moment) internal view virtual returns (bool);

    /// Whether a moment that has happened can still be proved. Once false, it stays false.
    function _provable(uint256 moment) internal view virtual returns (bool);

    /// The outcome that a proof shows, never zero; reverts unless there is exactly one proof of that moment.
    function _verified(uint256 moment, bytes calldata proof) internal view virtual returns (bytes32 outcome);

    function _open(uint256 ticket) private view returns (uint256 replacements, uint256 moment) {
        replacements = ticket >> MOMENT_BITS;
        moment = uint64(ticket);
        if (replacements > LAST || (replacements < LAST && !_exists(moment))) revert UnknownTicket(ticket);
    }

    function _expired(uint256 replacements, uint256 moment) private view returns (bool) {
        if (replacements == LAST) return block.number > moment + REACH;
        return outcomeOf[moment] == 0 && _happened(moment) && !_provable(moment);
    }

    function _now(uint256 replacements) private view returns (uint256 at) {
        return replacements == LAST ? block.number : _clock();
    }
}
