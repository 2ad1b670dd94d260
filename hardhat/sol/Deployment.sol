// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Base} from "./Base.sol";
import {IAuditCourt} from "../contracts/interfaces/IAuditCourt.sol";
import {ICheckpointCourt} from "../contracts/interfaces/ICheckpointCourt.sol";
import {IJobMarket} from "../contracts/interfaces/IJobMarket.sol";
import {IOperatorRegistry} from "../contracts/interfaces/IOperatorRegistry.sol";
import {IRewardLedger} from "../contracts/interfaces/IRewardLedger.sol";
import {IRoundBook} from "../contracts/interfaces/IRoundBook.sol";
import {IStakeVault} from "../contracts/interfaces/IStakeVault.sol";
import {ITicketBook} from "../contracts/interfaces/ITicketBook.sol";
import {BlockhashBeacon} from "../contracts/beacons/BlockhashBeacon.sol";
import {DevToken} from "../contracts/dev/DevToken.sol";
import {Addresses, Preset, Terms, Windows} from "../contracts/types/Types.sol";

/// One deployment, and the terms that most tests use.
abstract contract Deployment is Base {
    address internal constant BURN = 0x000000000000000000000000000000000000dEaD;

    DevToken internal token;
    BlockhashBeacon internal beacon;
    IStakeVault internal vault;
    IRewardLedger internal ledger;
    IOperatorRegistry internal registry;
    IJobMarket internal market;
    IRoundBook internal rounds;
    ITicketBook internal tickets;
    IAuditCourt internal court;
    ICheckpointCourt internal checkpoints;

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
            tickets: vm.computeCreateAddress(address(this), nonce + 5),
            court: vm.computeCreateAddress(address(this), nonce + 6),
            checkpoints: vm.computeCreateAddress(address(this), nonce + 7)
        });
        vault = IStakeVault(create("StakeVault.sol", abi.encode(a)));
        ledger = IRewardLedger(create("RewardLedger.sol", abi.encode(a)));
        registry = IOperatorRegistry(create("OperatorRegistry.sol", ""));
        market = IJobMarket(create("JobMarket.sol", abi.encode(a, p)));
        rounds = IRoundBook(create("RoundBook.sol", abi.encode(a)));
        tickets = ITicketBook(create("TicketBook.sol", abi.encode(a, p)));
        court = IAuditCourt(create("AuditCourt.sol", abi.encode(a, p)));
        checkpoints = ICheckpointCourt(create("CheckpointCourt.sol", abi.encode(a, p)));
        eq(address(checkpoints), a.checkpoints, "predicted address of the last contract");
    }

    /// From the compiled artifact: the tests need not be compiled together with what they test.
    function create(string memory name, bytes memory arguments) internal returns (address at) {
        bytes memory code = bytes.concat(vm.getCode(name), arguments);
        assembly ("memory-safe") {
            at := create(0, add(code, 32), mload(code))
            if iszero(at) {
                let free := mload(64)
                returndatacopy(free, 0, returndatasize())
                revert(free, returndatasize())
            }
        }
    }

    /// The preset of the dev chain, from the file that the Python programs read.
    function preset() internal view virtual returns (Preset memory) {
        string memory file = vm.readFile("../protocol/core/presets/dev.json");
        return
            Preset({
                slashPanel: uint16(parameter(file, "slashPanel")),
                slashNeeded: uint16(parameter(file, "slashNeeded")),
                appealPanel: uint16(parameter(file, "appealPanel")),
                appealNeeded: uint16(parameter(file, "appealNeeded")),
                detectionBps: uint16(parameter(file, "detectionBps")),
                probationAudits: uint16(parameter(file, "probationAudits")),
                abandonAfter: uint32(parameter(file, "abandonAfter")),
                ticketExit: uint32(parameter(file, "ticketExit")),
                minDemand: uint32(parameter(file, "minDemand")),
                minWindow: uint32(parameter(file, "minWindow")),
                ticket: uint96(parameter(file, "ticket")),
                calibrated: vm.parseJsonBool(file, ".parameters.calibrated.value")
            });
    }

    function parameter(string memory file, string memory name) private pure returns (uint256) {
        return vm.parseJsonUint(file, string.concat(".parameters.", name, ".value"));
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
