// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {IJobMarket} from "./interfaces/IJobMarket.sol";
import {IRoundBook} from "./interfaces/IRoundBook.sol";
import {IRewardLedger} from "./interfaces/IRewardLedger.sol";
import {ITicketBook} from "./interfaces/ITicketBook.sol";
import {TermsLib} from "./libraries/TermsLib.sol";
import {Addresses, CourtTerms, Preset, Terms, JobStatus, PauseReason, Progress} from "./types/Types.sol";

/// @title JobMarket
/// @notice Posting, funding and ending jobs. Holds no tokens.
/// Assumes: the round book tells the truth about a job's progress.
/// Assumes for liveness: somebody calls `close`; anyone may.
///
/// INV-JOB-1: terms never change.
/// INV-JOB-2: a closed job has no unsettled round and an empty escrow.
/// INV-JOB-3: only new jobs depend on the guardian.
/// INV-JOB-4: whether a claim's bond can be slashed does not change while it is locked.
contract JobMarket is IJobMarket {
    struct Job {
        Terms terms;
        address poster;
        uint40 postedAt;
        bool paused;
        bool cancelled;
        bool closed;
        uint128 funded;
        uint128 refunded;
        bytes32 calibration;
        string seed;
    }

    uint256 private constant MAX_SEED = 256;
    uint32 private constant VOID_ROUNDS_TO_CLOSE = 3;

    IRewardLedger public immutable ledger;
    IRoundBook public immutable rounds;
    ITicketBook public immutable tickets;
    IERC20Permit private immutable _token;
    address public immutable guardian;
    bool public postingAllowed = true;

    Preset private _preset;
    mapping(bytes32 jobId => Job) private _jobs;
    bytes32[] private _list;

    constructor(Addresses memory a, Preset memory p) {
        ledger = IRewardLedger(a.ledger);
        rounds = IRoundBook(a.rounds);
        tickets = ITicketBook(a.tickets);
        _token = IERC20Permit(a.token);
        guardian = msg.sender;
        bool majority = _isMajority(p.slashNeeded, p.slashPanel) && _isMajority(p.appealNeeded, p.appealPanel);
        bool panels = p.slashPanel >= 3 && p.appealPanel > p.slashPanel && p.appealNeeded >= p.slashNeeded;
        bool rates = p.detectionBps != 0 && p.detectionBps <= 10_000;
        if (!majority || !panels || !rates || p.minDemand == 0 || p.minWindow == 0) revert BadPreset();
        _preset = p;
    }

    modifier onlyPoster(bytes32 jobId) {
        Job storage job = _existing(jobId);
        if (msg.sender != job.poster) revert NotThePoster(msg.sender, job.poster);
        _;
    }

    /// @inheritdoc IJobMarket
    function post(
        Terms calldata terms,
        bytes32 salt,
        uint256 deposit,
        string calldata seed
    ) public returns (bytes32 jobId) {
        if (!postingAllowed) revert PostingPaused(); // INV-JOB-3
        jobId = jobIdOf(msg.sender, terms.specDigest, salt);
        Job storage job = _jobs[jobId];
        if (job.postedAt != 0) revert JobExists(jobId);
        if (bytes(seed).length > MAX_SEED) revert SeedTooLong(bytes(seed).length, MAX_SEED);
        TermsLib.check(terms, _preset);
        uint256 need = TermsLib.reservation(terms);
        if (deposit < need) revert EscrowTooSmall(deposit, need);

        job.terms = terms; // INV-JOB-1: the only assignment
        job.poster = msg.sender;
        job.postedAt = uint40(block.timestamp);
        job.seed = seed;
        _list.push(jobId);
        emit JobPosted(jobId, msg.sender, terms.specDigest, seed, terms);
        _fund(jobId, job, deposit);
    }

    /// @inheritdoc IJobMarket
    function fund(bytes32 jobId, uint256 amount) public {
        Job storage job = _existing(jobId);
        if (job.cancelled || job.closed) revert JobOver(jobId);
        _fund(jobId, job, amount);
    }

    /// @inheritdoc IJobMarket
    function postWithPermit(
        Terms calldata terms,
        bytes32 salt,
        uint256 deposit,
        string calldata seed,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (bytes32 jobId) {
        _permit(deposit, deadline, v, r, s);
        return post(terms, salt, deposit, seed);
    }

    /// @inheritdoc IJobMarket
    function fundWithPermit(bytes32 jobId, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external {
        _permit(amount, deadline, v, r, s);
        fund(jobId, amount);
    }

    /// @inheritdoc IJobMarket
    function pause(bytes32 jobId) external onlyPoster(jobId) {
        _jobs[jobId].paused = true;
        emit JobPaused(jobId);
    }

    /// @inheritdoc IJobMarket
    function resume(bytes32 jobId) external onlyPoster(jobId) {
        _jobs[jobId].paused = false;
        emit JobResumed(jobId);
    }

    /// @inheritdoc IJobMarket
    function cancel(bytes32 jobId) external onlyPoster(jobId) {
        _jobs[jobId].cancelled = true;
        emit JobCancelled(jobId);
    }

    /// @inheritdoc IJobMarket
    function refund(bytes32 jobId, uint256 amount) external onlyPoster(jobId) {
        _refund(jobId, _jobs[jobId], amount == 0 ? ledger.potOf(jobId) : amount);
    }

    /// @inheritdoc IJobMarket
    function close(bytes32 jobId) external {
        (JobStatus status, ) = statusOf(jobId);
        if (status != JobStatus.Closable) revert JobNotClosable(jobId, status);
        Job storage job = _jobs[jobId];
        job.closed = true;
        emit JobClosed(jobId);
        _refund(jobId, job, ledger.potOf(jobId)); // INV-JOB-2
    }

    /// @inheritdoc IJobMarket
    function calibrate(bytes32 jobId, bytes32 record) external onlyPoster(jobId) {
        if (record == 0) revert ZeroRecord();
        Job storage job = _jobs[jobId];
        if (job.calibration != 0) revert AlreadyCalibrated(jobId, job.calibration);
        uint32 unsettled = rounds.progressOf(jobId).unsettled;
        if (unsettled != 0) revert RoundsUnsettled(jobId, unsettled); // INV-JOB-4
        job.calibration = record;
        emit JobCalibrated(jobId, record);
    }

    /// @inheritdoc IJobMarket
    function allowPosting(bool allowed) external {
        if (msg.sender != guardian) revert NotTheGuardian(msg.sender);
        postingAllowed = allowed;
        emit PostingAllowed(allowed);
    }

    /// @inheritdoc IJobMarket
    function statusOf(bytes32 jobId) public view returns (JobStatus status, PauseReason reason) {
        Job storage job = _jobs[jobId];
        if (job.postedAt == 0) return (JobStatus.None, PauseReason.None);
        if (job.closed) return (JobStatus.Closed, PauseReason.None);
        Progress memory p = rounds.progressOf(jobId);
        if (p.active) return (JobStatus.Running, PauseReason.None);
        bool over = job.cancelled || p.closed == job.terms.rounds || p.voidStreak >= VOID_ROUNDS_TO_CLOSE;
        if (over) return (p.unsettled == 0 ? JobStatus.Closable : JobStatus.Draining, PauseReason.None);
        reason = _pauseReason(jobId, job, p);
        if (reason == PauseReason.None) return (JobStatus.Ready, reason);
        uint256 since = p.movedAt > job.postedAt ? p.movedAt : job.postedAt;
        bool abandoned = p.unsettled == 0 && block.timestamp > since + _preset.abandonAfter;
        return (abandoned ? JobStatus.Closable : JobStatus.Paused, reason);
    }

    /// @inheritdoc IJobMarket
    function jobIdOf(address poster, bytes32 specDigest, bytes32 salt) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), poster, specDigest, salt));
    }

    /// @inheritdoc IJobMarket
    function termsOf(bytes32 jobId) external view returns (Terms memory) {
        return _existing(jobId).terms;
    }

    /// @inheritdoc IJobMarket
    function courtTermsOf(bytes32 jobId) external view returns (CourtTerms memory) {
        Terms storage t = _existing(jobId).terms;
        return
            CourtTerms({
                reward: t.rewardPerShard,
                fee: t.auditFee,
                challenge: t.windows.challenge,
                auditCommit: t.windows.auditCommit,
                auditReveal: t.windows.auditReveal,
                demand: t.windows.demand,
                innerSteps: t.innerSteps,
                lossTolerance: t.lossTolerance
            });
    }

    /// @inheritdoc IJobMarket
    function posterOf(bytes32 jobId) external view returns (address) {
        return _existing(jobId).poster;
    }

    /// @inheritdoc IJobMarket
    function calibrationOf(bytes32 jobId) external view returns (bytes32 record) {
        return _existing(jobId).calibration;
    }

    /// @inheritdoc IJobMarket
    function seedOf(bytes32 jobId) external view returns (string memory) {
        return _existing(jobId).seed;
    }

    /// @inheritdoc IJobMarket
    function reservationOf(bytes32 jobId) external view returns (uint256) {
        return TermsLib.reservation(_existing(jobId).terms);
    }

    /// @inheritdoc IJobMarket
    function totalsOf(bytes32 jobId) external view returns (uint256 funded, uint256 refunded) {
        Job storage job = _existing(jobId);
        return (job.funded, job.refunded);
    }

    /// @inheritdoc IJobMarket
    function jobCount() external view returns (uint256) {
        return _list.length;
    }

    /// @inheritdoc IJobMarket
    function jobAt(uint256 index) external view returns (bytes32 jobId) {
        return _list[index];
    }

    /// @inheritdoc IJobMarket
    function preset() external view returns (Preset memory) {
        return _preset;
    }

    function _pauseReason(bytes32 jobId, Job storage job, Progress memory p) private view returns (PauseReason) {
        if (job.paused) return PauseReason.Poster;
        if (p.voidStreak > 0 && block.timestamp <= uint256(p.movedAt) + job.terms.windows.round) {
            return PauseReason.VoidRound;
        }
        if (ledger.potOf(jobId) < TermsLib.reservation(job.terms)) return PauseReason.Escrow;
        if (tickets.liveOwners() <= _preset.slashPanel) return PauseReason.Auditors;
        return PauseReason.None;
    }

    /// Who saw the permit may have used it: the allowance is then there, and the transfer decides.
    function _permit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) private {
        // solhint-disable-next-line no-empty-blocks
        try _token.permit(msg.sender, address(ledger), amount, deadline, v, r, s) {} catch {}
    }

    function _fund(bytes32 jobId, Job storage job, uint256 amount) private {
        uint256 most = type(uint128).max - job.funded;
        if (amount > most) revert AmountTooLarge(amount, most);
        job.funded += uint128(amount);
        emit JobFunded(jobId, msg.sender, amount);
        ledger.fund(jobId, msg.sender, amount);
    }

    function _refund(bytes32 jobId, Job storage job, uint256 amount) private {
        if (amount == 0) return;
        job.refunded += uint128(amount); // at most what was funded
        emit JobRefunded(jobId, job.poster, amount);
        ledger.credit(jobId, job.poster, amount);
    }

    function _isMajority(uint256 needed, uint256 panel) private pure returns (bool) {
        return 2 * needed > panel && needed <= panel;
    }

    function _existing(bytes32 jobId) private view returns (Job storage job) {
        job = _jobs[jobId];
        if (job.postedAt == 0) revert NoSuchJob(jobId);
    }
}
