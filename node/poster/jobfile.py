"""job.toml: what a person decides about a job. Everything else follows from its spec and the market's preset."""

from __future__ import annotations

import hashlib
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from node.poster.errors import JobFileError
from protocol.core.errors import GradmarketError
from protocol.core.presets import Preset
from protocol.core.terms import TOLERANCE_CLASSES, Terms, Windows
from protocol.core.units import mul_down, mul_up, parse_tokens
from protocol.runtime.config import Config, load_config
from protocol.training.layout import claim_flops
from protocol.training.spec import (
    MAX_SPEC_BYTES,
    Spec,
    encode_spec,
    loss_tolerance,
    parse_spec,
    spec_digest,
    trace_rows,
)
from protocol.transport.addresses import LOCAL

PRICED_FLOPS = 10**15  # a price is tokens for so many floating-point operations
MAX_SEED_BYTES = 256  # JobMarket.sol


class WindowsConfig(Config, frozen=True, kw_only=True):
    """Seconds of block time; what is left out is the preset's."""

    train: int | None = None
    round: int | None = None
    attest: int | None = None
    challenge: int | None = None
    audit_commit: int | None = None
    audit_reveal: int | None = None
    demand: int | None = None


class JobFile(Config, frozen=True, kw_only=True):
    """Amounts are texts such as "0.5", because a TOML float would be rounded.

    `price`: tokens for 1e15 FLOP. `bond_rewards`, `audit_fee_rewards`: in rewards; left out, they and
    `audit_rate_bps` are the preset's. `min_shards`, `probation_slots`: 0 for half and for a quarter of the shards.
    `deposit`: tokens, empty for the whole job. `seed`: the URL of `blobs`.
    """

    spec: Path
    blobs: Path
    rounds: int
    shards_per_round: int
    price: str | int
    seed: str
    min_shards: int = 0
    probation_slots: int = 0
    bond_rewards: str | int | None = None
    audit_rate_bps: int | None = None
    audit_fee_rewards: str | int | None = None
    salt: str = ""
    deposit: str | int = ""
    windows: WindowsConfig = WindowsConfig()


class JobPlan:
    """A job file with its spec, ready to be priced."""

    def __init__(self, path: Path, file: JobFile, spec: Spec) -> None:
        self.path, self.file, self.spec = path, file, spec
        self.spec_blob, self.spec_digest = encode_spec(spec), spec_digest(spec)
        self.salt = hashlib.sha256(file.salt.encode()).digest()

    def terms(self, preset: Preset, genesis: bytes) -> Terms:
        """What will stand on chain. The reward is rounded down; bond and fee, in the operators' favour, up."""
        file, spec = self.file, self.spec
        reward = mul_down(claim_flops(spec), self._tokens("price", file.price), PRICED_FLOPS)
        bond, fee = (
            self._number("bond_rewards", file.bond_rewards, preset),
            self._number("audit_fee_rewards", file.audit_fee_rewards, preset),
        )
        return Terms(
            spec_digest=bytes.fromhex(self.spec_digest),
            genesis_digest=genesis,
            reward_per_shard=reward,
            bond_per_shard=mul_up(reward, bond.numerator, bond.denominator),
            rounds=file.rounds,
            inner_steps=trace_rows(spec),
            audit_fee=mul_up(reward, fee.numerator, fee.denominator),
            audit_rate_bps=int(preset.terms["auditRateBps"]) if file.audit_rate_bps is None else file.audit_rate_bps,
            probation_slots=file.probation_slots or max(1, file.shards_per_round // 4),
            shards_per_round=file.shards_per_round,
            min_shards=file.min_shards or max(1, file.shards_per_round // 2),
            tolerance_class=TOLERANCE_CLASSES.index(spec.verify.tolerance_class),
            loss_tolerance=loss_tolerance(spec),
            windows=self._windows(preset),
        )

    def deposit(self, reservation: int) -> int:
        """Wei to fund the job with: what the file says, or as much as all rounds can cost."""
        if self.file.deposit == "":
            return self.file.rounds * reservation
        return self._tokens("deposit", self.file.deposit)

    def _windows(self, preset: Preset) -> Windows:
        chosen = self.file.windows
        values = {}
        for name in Windows.__dataclass_fields__:
            own: int | None = getattr(chosen, name)
            values[name] = preset.windows[_camel(name)] if own is None else own
        return Windows(**values)

    def _tokens(self, field: str, value: str | int) -> int:
        try:
            return parse_tokens(str(value))
        except GradmarketError as error:
            raise JobFileError(f"{self.path}: {field}: {error}") from None

    def _number(self, field: str, value: str | int | None, preset: Preset) -> Fraction:
        try:
            number = Decimal(str(preset.terms[_camel(field)] if value is None else value))
        except InvalidOperation:
            number = Decimal(-1)
        if not number.is_finite() or number < 0:
            raise JobFileError(f'{self.path}: {field}: expected a number of rewards such as "1.1", have {value!r}')
        return Fraction(number)


def _camel(name: str) -> str:
    """A field's name in the preset's file."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def load_job(path: Path) -> JobPlan:
    """Read a job file and its spec. Raises ConfigError, SpecError or JobFileError, each with the file and the field."""
    file = load_config(path, JobFile)
    for name in ("rounds", "shards_per_round"):
        if getattr(file, name) < 1:
            raise JobFileError(f"{path}: {name}: expected at least 1, have {getattr(file, name)}")
    if len(file.seed.encode()) > MAX_SEED_BYTES:
        raise JobFileError(f"{path}: seed: {len(file.seed.encode())} bytes, at most {MAX_SEED_BYTES} go on chain")
    try:
        LOCAL.check_url(file.seed)
    except GradmarketError as error:
        raise JobFileError(f"{path}: seed: {error}") from None
    return JobPlan(path, file, _load_spec(path, file.spec))


def _load_spec(path: Path, spec: Path) -> Spec:
    try:
        with spec.open("rb") as file:
            data = file.read(MAX_SPEC_BYTES + 1)
    except OSError as error:
        raise JobFileError(f"{path}: spec: cannot read {spec}: {error.strerror}") from None
    try:
        return parse_spec(data)
    except GradmarketError as error:
        raise JobFileError(f"{spec}: {error}") from None
