// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Base} from "./Base.sol";
import {AuditCourt} from "../contracts/AuditCourt.sol";
import {JobMarket} from "../contracts/JobMarket.sol";
import {OperatorRegistry} from "../contracts/OperatorRegistry.sol";
import {RewardLedger} from "../contracts/RewardLedger.sol";
import {RoundBook} from "../contracts/RoundBook.sol";
import {StakeVault} from "../contracts/StakeVault.sol";
import {BlockhashBeacon} from "../contracts/beacons/BlockhashBeacon.sol";
import {DevToken} from "../contracts/dev/DevToken.sol";
import {Addresses, Preset, Terms, Windows} from "../contracts/types/Types.sol";

/// One deployment, and the terms that most tests use.
abstract contract Deployment is Base {
    address internal constant BURN = 0x000000000000000000000000000000000000dEaD;

    DevToken internal token;
    BlockhashBeacon internal beacon;
    StakeVault internal vault;
    RewardLedger internal ledger;
    OperatorRegistry internal registry;
    JobMarket internal market;
    RoundBook internal rounds;
    AuditCourt internal court;

    function deploy() internal {
        deploy(address(new DevToken()), preset());
    }

    /// Every contract is given the addresses of all: the later ones are computed from this contract's nonce.
    function deploy(address money, Preset memory p) internal {
        pass(1);
        token = DevToken(money);
        beacon = new BlockhashBeacon();
        uint256 nonce = vm.getNonce(address(this));
        Addresses memory a = Addresses({
            token: money,
            beacon: address(beacon),
            vault: vm.computeCreateAddress(address(this), nonce),
            ledger: vm.computeCreateAddress(address(this), nonce + 1),
            registry: vm.computeCreateAddress(address(this), nonce + 2),
            market: vm.computeCreateAddress(address(this), nonce + 3),
            rounds: vm.computeCreateAddress(address(this), nonce + 4),
            court: vm.computeCreateAddress(address(this), nonce + 5)
        });
        vault = new StakeVault(a);
        ledger = new RewardLedger(a);
        registry = new OperatorRegistry();
        market = new JobMarket(a, p);
        rounds = new RoundBook(a);
        court = new AuditCourt(a, p);
        eq(address(court), a.court, "predicted address of the court");
    }

    /// protocol/core/presets/dev.json
    function preset() internal pure virtual returns (Preset memory) {
        return
            Preset({
                slashPanel: 5,
                slashNeeded: 4,
                detectionBps: 6400,
                probationAudits: 1,
                abandonAfter: 600,
                ticketExit: 600,
                minDemand: 10,
                minTicket: uint96(TOKEN)
            });
    }

    /// Six shards; three inner steps, so that a reveal opens all rows; everything is audited.
    function terms() internal pure virtual returns (Terms memory) {
        return
            Terms({
                specDigest: keccak256("spec"),
                genesisDigest: keccak256("genesis"),
                rewardPerShard: uint96(TOKEN),
                bondPerShard: uint96(25 * TOKEN),
                rounds: 3,
                innerSteps: 3,
                auditFee: uint96((TOKEN * 11) / 10),
                auditRateBps: 10_000,
                probationSlots: 6,
                shardsPerRound: 6,
                minShards: 3,
                toleranceClass: 0,
                lossTolerance: 5_000,
                windows: Windows({
                    train: 120,
                    round: 120,
                    attest: 60,
                    challenge: 30,
                    auditCommit: 120,
                    auditReveal: 60,
                    demand: 20
                })
            });
    }
}
