// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IPanels} from "./IPanels.sol";

/// What a seat found when it took the outer step itself.
struct StepFinding {
    bool abstain; // the seat could not recompute it, whatever the reason
    uint256 bitmap; // payloads that count
    bytes32 digest; // checkpoint that follows from them
    bytes32 contested; // checkpoint that follows from the attested bitmap: `digest` where that is the own one, zero where
    // a payload of it could not be had
    bytes32 salt;
}

/// Cases about checkpoints: the outer step is exact, so that equal findings settle it.
interface ICheckpointCourt is IPanels {
    event StepRevealed(
        bytes32 indexed caseId,
        uint16 indexed seat,
        address indexed operator,
        uint256 bitmap,
        bytes32 digest,
        bytes32 contested
    );
    event ProversPaid(bytes32 indexed caseId, uint256 each, uint256 burnt);

    error NotChallengeable(bytes32 jobId, uint32 round);
    error OtherCheckpoint(bytes32 base, uint256 bitmap, bytes32 digest);
    error OwnAttestation(address owner);
    error WrongRoot(bytes32 have, bytes32 need);
    error BitmapOutOfRange(uint256 bitmap, uint256 committedMap);
    error WrongDigest(bytes32 digest, bytes32 contested);
    error NotYetSlashed(bytes32 caseId);

    /// Doubt the checkpoint that a closed round ended in, once, before the round's challenge window ends. An operator
    /// that may challenge, of an owner that did not attest to it; locks seven fees, lost if the checkpoint stands.
    /// Names what was attested, as `RoundBook.attest` does; refused where the chain holds another, after a
    /// reorganisation.
    function challenge(
        bytes32 jobId,
        uint32 round,
        bytes32 base,
        uint256 bitmap,
        bytes32 digest
    ) external returns (bytes32 caseId);

    /// Reveal what the own outer step gave. The seat's operator, in the reveal phase; must open its audit commit.
    function reveal(bytes32 caseId, uint16 seat, StepFinding calldata r) external;

    /// Share what was slashed from those who attested to a false digest, once their round is settled: to the seats and
    /// the challengers that proved it, the court fund, and the burn. Anyone.
    function distribute(bytes32 caseId) external;

    /// What `commitAudit` of a seat commits to.
    function rootOf(
        bytes32 caseId,
        uint16 seat,
        address operator,
        StepFinding calldata r
    ) external pure returns (bytes32);

    /// The name of the case about a round's checkpoint, and of its pot in the ledger.
    function caseIdOf(bytes32 jobId, uint32 round) external pure returns (bytes32);

    /// Whether a round's checkpoint is doubted and not yet judged.
    function isOpen(bytes32 jobId, uint32 round) external view returns (bool);
}
