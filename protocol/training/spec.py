"""A job's spec: what is trained, on what, how, and within which tolerances it is verified. Data only, never code.

Canonical bytes are JSON with sorted keys and no spaces; the digest on the chain is the sha256 of these bytes.
Every field has a bound, because a spec comes from a stranger: unknown fields and values out of bounds are refused.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from protocol.training.documents import canonical_json, parse_json
from protocol.training.errors import SpecError, TrainingError
from protocol.training.families import ModelSpec, family_of
from protocol.training.families.base import rule as _rule

SPEC_VERSION = 1
MAX_SPEC_BYTES = 64 * 2**10
MAX_PARAMETERS = 2**33  # 8.6 billion: beyond it a claim does not fit one device of this version
MAX_STEP_TOKENS = 2**22
MAX_CLAIM_TOKENS = 2**29 - 1  # token weights of the exact outer step are integers below 2**29

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Meta(pattern="^[a-zA-Z0-9][a-zA-Z0-9 ._-]{0,63}$")]
Rate = Annotated[float, Meta(gt=0.0, le=10.0)]
Fraction = Annotated[float, Meta(ge=0.0, lt=1.0)]


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable, named fields only, strict when decoded."""


class DataSpec(_Frozen, frozen=True, kw_only=True):
    """Blobs by sha256: the manifest of the training shards and the validation split that it names."""

    manifest: Digest
    validation: Digest


class EncodingSpec(_Frozen, frozen=True, kw_only=True):
    """How a vector is compressed. `keep`: coordinates of each 4096 that top-k sends; unused by the others."""

    compressor: Literal["fp32", "fp16", "int8", "int4", "int2", "ternary", "sign", "topk"]
    block: Annotated[int, Meta(ge=16, le=4096)] = 256
    keep: Annotated[int, Meta(ge=1, le=4096)] = 128


class MomentsSpec(_Frozen, frozen=True, kw_only=True):
    """The optimizer's moments travel with the payload and stand in the checkpoint, averaged: the next claim starts
    from them. Second moments are sent as means of rows and columns; first ones as `first` says, or begin at zero.
    """

    first: EncodingSpec | None = None


class RateSpec(_Frozen, frozen=True, kw_only=True):
    """The learning rate over the whole job: linear warm-up, then constant or down to `floor` of itself at `steps`."""

    warmup: Annotated[int, Meta(ge=0, le=2**24)] = 0  # inner steps of a worker, counted from the job's first
    decay: Literal["none", "linear", "cosine"] = "none"
    steps: Annotated[int, Meta(ge=1, le=2**24)] = 1
    floor: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0


class PhaseSpec(_Frozen, frozen=True, kw_only=True):
    """The first `rounds` outer steps (of what earlier phases leave) have claims of `steps` inner steps."""

    rounds: Annotated[int, Meta(ge=1, le=2**16)]
    steps: Annotated[int, Meta(ge=1, le=2**16)]


class InnerSpec(_Frozen, frozen=True, kw_only=True):
    """A claim's optimizer: AdamW, or Muon for the matrices inside the model (AdamW for the rest, arXiv:2502.16982).

    Rate of a step: `lr`, times min(1, step of the claim / warmup_steps), times the job's `rate`. Claims have `steps`
    inner steps after those of `phases`.
    """

    optimizer: Literal["adamw", "muon"] = "adamw"
    lr: Rate
    warmup_steps: Annotated[int, Meta(ge=0, le=100_000)] = 0
    rate: RateSpec | None = None
    phases: Annotated[tuple[PhaseSpec, ...], Meta(max_length=16)] = ()
    moments: MomentsSpec | None = None
    muon_momentum: Fraction = 0.95
    weight_decay: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.1
    beta1: Fraction = 0.9
    beta2: Fraction = 0.95
    epsilon: Annotated[float, Meta(ge=1e-12, le=1e-3)] = 1e-8
    clip: Annotated[float, Meta(gt=0.0, le=1000.0)] = 1.0
    steps: Annotated[int, Meta(ge=1, le=2**16)]
    batch: Annotated[int, Meta(ge=1, le=2**16)]  # sequences of one step
    micro_batch: Annotated[int, Meta(ge=1, le=2**16)]  # sequences of one forward pass; part of the rounding
    sequence: Annotated[int, Meta(ge=8, le=2**17)]  # tokens


class OuterSpec(_Frozen, frozen=True, kw_only=True):
    """Nesterov SGD on the mean pseudo-gradient; both constants act as their nearest float32."""

    lr: Rate
    momentum: Fraction


class Tolerances(_Frozen, frozen=True, kw_only=True):
    """Upper ends of the accept and the reject zone of the two graded tests; above the second is the fraud zone."""

    t1_accept: Annotated[float, Meta(gt=0.0, le=1.0)]
    t1_reject: Annotated[float, Meta(gt=0.0, le=1.0)]
    t2_accept: Annotated[float, Meta(gt=0.0, le=1.0)]
    t2_reject: Annotated[float, Meta(gt=0.0, le=1.0)]


PROTOCOL_TOLERANCES = {
    "fp32": Tolerances(t1_accept=5e-4, t1_reject=5e-3, t2_accept=5e-6, t2_reject=5e-4),
    "bf16": Tolerances(t1_accept=0.06, t1_reject=0.10, t2_accept=2e-3, t2_reject=7e-3),
}


class VerifySpec(_Frozen, frozen=True, kw_only=True):
    """`rows` of a trace, each of as many inner steps (0: one step a row). `state_every`: rows between digests of the
    full state. `tolerances`: none, or a wider table.
    """

    tolerance_class: Literal["fp32", "bf16"]
    masked: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=1024)] = ()
    rows: Annotated[int, Meta(ge=0, le=2**16)] = 0
    state_every: Annotated[int, Meta(ge=1, le=2**16)]
    tolerances: Tolerances | None = None


class Spec(_Frozen, frozen=True, kw_only=True):
    """All that a claim and its replay need besides the checkpoint and the shard."""

    version: Literal[1] = 1
    name: Name
    model: ModelSpec
    tokenizer: Digest | None = None  # of a model of tokens
    data: DataSpec
    inner: InnerSpec
    outer: OuterSpec
    exchange: EncodingSpec
    verify: VerifySpec
    genesis: Annotated[int, Meta(ge=0, le=2**53)] | Digest  # a seed for random weights, or a checkpoint blob
    evaluation: Annotated[int, Meta(ge=1, le=10_000)] = 1  # rounds between measurements on the validation split


def parse_spec(text: bytes | str) -> Spec:
    """A spec as a person wrote it: any JSON layout, all rules of the values."""
    data = text.encode() if isinstance(text, str) else text
    spec = parse_json(_name_architecture(data), Spec, SpecError, "spec", MAX_SPEC_BYTES)
    check_spec(spec)
    return spec


def _name_architecture(data: bytes) -> bytes:
    """A model that does not name its architecture is a llama. What is no spec is left to the strict reading."""
    try:
        table = json.loads(data.decode()) if len(data) <= MAX_SPEC_BYTES else None
    except (ValueError, RecursionError):
        return data
    model = table.get("model") if isinstance(table, dict) else None
    if not isinstance(model, dict) or "architecture" in model:
        return data
    model["architecture"] = "llama"
    return json.dumps(table).encode()


def decode_spec(data: bytes) -> Spec:
    """A spec as the chain names it: canonical bytes only, because the digest stands for exactly these."""
    spec = parse_spec(data)
    if canonical_json(spec) != data:
        raise SpecError("spec: expected canonical JSON (sorted keys, no spaces, floats with a point); encode it again")
    return spec


def encode_spec(spec: Spec) -> bytes:
    """Canonical bytes of a checked spec."""
    return canonical_json(parse_spec(canonical_json(spec)))


def spec_digest(spec: Spec) -> str:
    """sha256 of the canonical bytes, hex."""
    return hashlib.sha256(encode_spec(spec)).hexdigest()


def tolerances(spec: Spec) -> Tolerances:
    """The table this job is judged by."""
    return spec.verify.tolerances or PROTOCOL_TOLERANCES[spec.verify.tolerance_class]


def loss_tolerance(spec: Spec) -> int:
    """T2's accept line in units of 1e-9: the job's terms carry it, and the court checks a Match by it."""
    return round(tolerances(spec).t2_accept * 10**9)


def claim_tokens(spec: Spec) -> int:
    """Training tokens of a claim of the last phase (positions, where examples are no texts).

    Every claim weighs as much in the outer step, because all claims of a round train the same number of tokens.
    """
    return spec.inner.steps * step_tokens(spec)


def step_tokens(spec: Spec) -> int:
    """Training tokens of one inner step."""
    return spec.inner.batch * spec.inner.sequence


def inner_steps(spec: Spec, progress: int) -> int:
    """H of a claim that starts from a checkpoint after `progress` outer steps."""
    end = 0
    for phase in spec.inner.phases:
        end += phase.rounds
        if progress < end:
            return phase.steps
    return spec.inner.steps


def steps_before(spec: Spec, progress: int) -> int:
    """Inner steps that a worker made before that checkpoint."""
    steps, left = 0, progress
    for phase in spec.inner.phases:
        steps += min(left, phase.rounds) * phase.steps
        left -= min(left, phase.rounds)
    return steps + left * spec.inner.steps


def trace_rows(spec: Spec) -> int:
    """Rows of every trace of the job, whatever the phase: the chain knows this number as inner steps."""
    return spec.verify.rows or spec.inner.steps


def check_spec(spec: Spec) -> None:
    """The rules between fields. Raises SpecError with the field, the bound and the value."""
    from protocol.training.layout import parameter_count, parameter_shapes  # layout needs the types above

    model, inner, verify = spec.model, spec.inner, spec.verify
    family = family_of(model)
    family.check(model)
    family.check_sequence(model, inner.sequence)
    _check_tokenizer(spec, family.kind == "tokens")
    count = parameter_count(spec)
    _rule(count <= MAX_PARAMETERS, "model", f"at most {MAX_PARAMETERS} parameters", count)
    _rule(
        inner.batch % inner.micro_batch == 0,
        "inner.micro_batch",
        f"a divisor of batch ({inner.batch})",
        inner.micro_batch,
    )
    tokens = step_tokens(spec)
    _rule(tokens <= MAX_STEP_TOKENS, "inner.batch", f"at most {MAX_STEP_TOKENS} tokens a step", inner.batch)
    rows = trace_rows(spec)
    for name, steps in [
        *((f"inner.phases[{i}].steps", p.steps) for i, p in enumerate(inner.phases)),
        ("inner.steps", inner.steps),
    ]:
        _rule(steps % rows == 0, name, f"a multiple of the {rows} rows of a trace (verify.rows)", steps)
        _rule(steps * tokens <= MAX_CLAIM_TOKENS, name, f"at most {MAX_CLAIM_TOKENS} tokens a claim", steps)
    _rule(verify.state_every <= rows, "verify.state_every", f"at most the {rows} rows of a trace", verify.state_every)
    if inner.rate is not None:
        _rule(
            inner.rate.decay == "none" or inner.rate.warmup < inner.rate.steps,
            "inner.rate.steps",
            f"more than its warmup ({inner.rate.warmup})",
            inner.rate.steps,
        )
    _check_headers(spec)
    shapes = parameter_shapes(spec)
    for name in verify.masked:
        _rule(name in shapes, "verify.masked", "names of parameters", name)
    _check_tolerances(verify)


def _check_tokenizer(spec: Spec, needed: bool) -> None:
    """A model of tokens names its tokenizer, another one none."""
    expected = "the sha256 of a tokenizer.json" if needed else f"none for architecture {spec.model.architecture}"
    _rule((spec.tokenizer is not None) == needed, "tokenizer", expected, spec.tokenizer or "none")


def _check_headers(spec: Spec) -> None:
    """Every file of the job has a header that a decoder reads: a claim must not fail when its work is done."""
    from protocol.training.canonical import encode_header
    from protocol.training.checkpoint import checkpoint_bytes, end_state_bytes
    from protocol.training.compress import max_payload_bytes
    from protocol.training.layout import FULL_STATE_METADATA, full_state_table

    try:
        for size in (max_payload_bytes, checkpoint_bytes, end_state_bytes):
            size(spec)
        encode_header(full_state_table(spec), FULL_STATE_METADATA)
    except TrainingError as error:
        raise SpecError(f"spec model: too many tensors for one file ({error}); give it fewer layers") from None


def _check_tolerances(verify: VerifySpec) -> None:
    """A spec may widen the protocol's table and never narrow it."""
    if verify.tolerances is None:
        return
    table = PROTOCOL_TOLERANCES[verify.tolerance_class]
    for field in table.__struct_fields__:
        have, least = getattr(verify.tolerances, field), getattr(table, field)
        _rule(have >= least, f"verify.tolerances.{field}", f"at least the protocol's {least}", have)
    for test in ("t1", "t2"):
        accept, reject = (getattr(verify.tolerances, f"{test}_{end}") for end in ("accept", "reject"))
        _rule(accept < reject, f"verify.tolerances.{test}_accept", f"below {test}_reject ({reject})", accept)
