// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {CourtTerms, Terms, Preset, JobStatus, PauseReason} from "../types/Types.sol";

/// Jobs: who pays for what, and what is left.
interface IJobMarket {
    event JobPosted(
        bytes32 indexed jobId,
        address indexed poster,
        bytes32 indexed specDigest,
        string seed,
        Terms terms
    );
    event JobFunded(bytes32 indexed jobId, address indexed payer, uint256 amount);
    event JobPaused(bytes32 indexed jobId);
    event JobResumed(bytes32 indexed jobId);
    event JobCancelled(bytes32 indexed jobId);
    event JobRefunded(bytes32 indexed jobId, address indexed poster, uint256 amount);
    event JobClosed(bytes32 indexed jobId);
    event JobCalibrated(bytes32 indexed jobId, bytes32 record);
    event PostingAllowed(bool allowed);

    error JobExists(bytes32 jobId);
    error NoSuchJob(bytes32 jobId);
    error NotThePoster(address caller, address poster);
    error EscrowTooSmall(uint256 have, uint256 need);
    error JobOver(bytes32 jobId);
    error JobNotClosable(bytes32 jobId, JobStatus status);
    error BadPreset();
    error PostingPaused();
    error NotTheGuardian(address caller);
    error AmountTooLarge(uint256 have, uint256 most);
    error ZeroRecord();
    error AlreadyCalibrated(bytes32 jobId, bytes32 record);
    error RoundsUnsettled(bytes32 jobId, uint256 unsettled);
    error SeedTooLong(uint256 have, uint256 most);

    /// Post a job and escrow `deposit` wei of the caller's tokens in one transaction. Anyone; needs an allowance.
    /// The id is `jobIdOf(caller, specDigest, salt)`: a repetition reverts with `JobExists` and takes nothing.
    /// `seed` names the address where the spec, genesis and data can be fetched.
    function post(
        Terms calldata terms,
        bytes32 salt,
        uint256 deposit,
        string calldata seed
    ) external returns (bytes32 jobId);

    /// Add `amount` wei of the caller's tokens to a job's escrow. Anyone, until the job is cancelled or closed.
    function fund(bytes32 jobId, uint256 amount) external;

    /// `post` with an allowance that the caller signed for the reward ledger and `deposit` wei (EIP-2612), until
    /// `deadline`. Only the caller's own permit is used. Front-running: whoever uses the permit first changes nothing,
    /// because the allowance is then there; with neither, it reverts as the token does.
    function postWithPermit(
        Terms calldata terms,
        bytes32 salt,
        uint256 deposit,
        string calldata seed,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (bytes32 jobId);

    /// `fund` with an allowance that the caller signed, as `postWithPermit` takes it.
    function fundWithPermit(bytes32 jobId, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// Open no further round until `resume`. Poster only.
    function pause(bytes32 jobId) external;

    /// Undo `pause`. Poster only.
    function resume(bytes32 jobId) external;

    /// Open no further round ever; open ones are settled. Poster only.
    function cancel(bytes32 jobId) external;

    /// Credit `amount` wei of what is not reserved to the poster; 0 means all. Poster only, at any time: open rounds
    /// hold their reservation elsewhere. The tokens are then pulled from the ledger.
    function refund(bytes32 jobId, uint256 amount) external;

    /// End a job whose rounds are all settled and that has come to its end: trained, cancelled, three void rounds in a
    /// row, or no progress for the preset's time. The rest is credited to the poster. Anyone.
    function close(bytes32 jobId) external;

    /// Attach the digest of a calibration record to a job, once: from then on verdicts may slash where the preset asks for
    /// one. Poster only, while no round is unsettled, so that nobody's bond changes its meaning while it is locked.
    function calibrate(bytes32 jobId, bytes32 record) external;

    /// Allow or forbid *new* jobs; touches nothing that exists. Guardian only.
    function allowPosting(bool allowed) external;

    /// The terms as posted; they never change.
    function termsOf(bytes32 jobId) external view returns (Terms memory);

    /// The part of the terms that courts go by.
    function courtTermsOf(bytes32 jobId) external view returns (CourtTerms memory);

    /// Who posted the job, and gets what is left.
    function posterOf(bytes32 jobId) external view returns (address);

    /// The digest of the job's calibration record; zero without one.
    function calibrationOf(bytes32 jobId) external view returns (bytes32 record);

    /// The address where spec, genesis and data can be fetched first.
    function seedOf(bytes32 jobId) external view returns (string memory);

    /// Derived from stored facts and the block time; the reason says what keeps a paused job from its next round.
    function statusOf(bytes32 jobId) external view returns (JobStatus status, PauseReason reason);

    /// The id that `post` gives: bound to chain, contract, poster, spec and salt.
    function jobIdOf(address poster, bytes32 specDigest, bytes32 salt) external view returns (bytes32);

    /// Wei that one round of this job holds back.
    function reservationOf(bytes32 jobId) external view returns (uint256);

    /// Wei put in, and wei credited back to the poster, so far. What was spent is funded - refunded - escrow - the
    /// rounds' pots.
    function totalsOf(bytes32 jobId) external view returns (uint256 funded, uint256 refunded);

    /// How many jobs were ever posted.
    function jobCount() external view returns (uint256);

    /// The job with that number, in the order of posting.
    function jobAt(uint256 index) external view returns (bytes32 jobId);

    /// What this deployment fixes for all jobs.
    function preset() external view returns (Preset memory);
}
