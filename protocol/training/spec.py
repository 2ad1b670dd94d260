"""A job's spec: what is trained, on what, how, and within which tolerances it is verified. Data only, never code.

Canonical bytes are JSON with sorted keys and no spaces; the digest on the chain is the sha256 of these bytes.
Every field has a bound, because a spec comes from a stranger: unknown fields and values out of bounds are refused.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from protocol.training.documents import canonical_json, parse_json
from protocol.training.errors import SpecError

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


class ModelSpec(_Frozen, frozen=True, kw_only=True):
    """A transformer of the registry, in Hugging Face's terms. No attention bias: its gradient is rounding noise."""

    architecture: Literal["llama"] = "llama"
    vocab: Annotated[int, Meta(ge=16, le=2**18)]
    width: Annotated[int, Meta(ge=8, le=2**14)]
    layers: Annotated[int, Meta(ge=1, le=128)]
    heads: Annotated[int, Meta(ge=1, le=128)]
    kv_heads: Annotated[int, Meta(ge=1, le=128)]
    feed_forward: Annotated[int, Meta(ge=8, le=2**16)]
    tie_embeddings: bool = True
    rope_theta: Annotated[float, Meta(ge=100.0, le=1e8)] = 10000.0
    norm_epsilon: Annotated[float, Meta(ge=1e-8, le=1e-3)] = 1e-5


class DataSpec(_Frozen, frozen=True, kw_only=True):
    """Blobs by sha256: the manifest of the training shards and the validation split that it names."""

    manifest: Digest
    validation: Digest


class InnerSpec(_Frozen, frozen=True, kw_only=True):
    """AdamW from fresh moments in every claim. Rate: a linear warm-up inside the claim, then constant."""

    optimizer: Literal["adamw"] = "adamw"
    lr: Rate
    warmup_steps: Annotated[int, Meta(ge=0, le=100_000)] = 0
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


class ExchangeSpec(_Frozen, frozen=True, kw_only=True):
    """How a pseudo-gradient is compressed. `keep`: coordinates of each 4096 that top-k sends; unused by the others."""

    compressor: Literal["fp16", "int8", "int4", "topk"]
    block: Annotated[int, Meta(ge=16, le=4096)] = 256
    keep: Annotated[int, Meta(ge=1, le=4096)] = 128


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
    """`state_every`: inner steps between digests of the full state. `tolerances`: none, or a wider table."""

    tolerance_class: Literal["fp32", "bf16"]
    masked: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=1024)] = ()
    state_every: Annotated[int, Meta(ge=1, le=2**16)]
    tolerances: Tolerances | None = None


class Spec(_Frozen, frozen=True, kw_only=True):
    """All that a claim and its replay need besides the checkpoint and the shard."""

    version: Literal[1] = 1
    name: Name
    model: ModelSpec
    tokenizer: Digest
    data: DataSpec
    inner: InnerSpec
    outer: OuterSpec
    exchange: ExchangeSpec
    verify: VerifySpec
    genesis: Annotated[int, Meta(ge=0, le=2**53)] | Digest  # a seed for random weights, or a checkpoint blob
    evaluation: Annotated[int, Meta(ge=1, le=10_000)] = 1  # rounds between measurements on the validation split


def parse_spec(text: bytes | str) -> Spec:
    """A spec as a person wrote it: any JSON layout, all rules of the values."""
    data = text.encode() if isinstance(text, str) else text
    spec = parse_json(data, Spec, SpecError, "spec", MAX_SPEC_BYTES)
    check_spec(spec)
    return spec


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
    """Training tokens of one claim: also its integer weight in the outer step."""
    return spec.inner.steps * spec.inner.batch * spec.inner.sequence


def check_spec(spec: Spec) -> None:
    """The rules between fields. Raises SpecError with the field, the bound and the value."""
    from protocol.training.layout import parameter_count, parameter_shapes  # layout needs the types above

    model, inner, verify = spec.model, spec.inner, spec.verify
    _rule(model.width % model.heads == 0, "model.width", f"a multiple of model.heads ({model.heads})", model.width)
    _rule(model.width // model.heads % 2 == 0, "model.heads", "an even width per head (rotary embedding)", model.heads)
    _rule(model.heads % model.kv_heads == 0, "model.kv_heads", f"a divisor of heads ({model.heads})", model.kv_heads)
    count = parameter_count(spec)
    _rule(count <= MAX_PARAMETERS, "model", f"at most {MAX_PARAMETERS} parameters", count)
    _rule(
        inner.batch % inner.micro_batch == 0,
        "inner.micro_batch",
        f"a divisor of batch ({inner.batch})",
        inner.micro_batch,
    )
    _rule(
        inner.batch * inner.sequence <= MAX_STEP_TOKENS,
        "inner.batch",
        f"at most {MAX_STEP_TOKENS} tokens a step",
        inner.batch,
    )
    _rule(
        claim_tokens(spec) <= MAX_CLAIM_TOKENS, "inner.steps", f"at most {MAX_CLAIM_TOKENS} tokens a claim", inner.steps
    )
    _rule(
        verify.state_every <= inner.steps,
        "verify.state_every",
        f"at most inner.steps ({inner.steps})",
        verify.state_every,
    )
    shapes = parameter_shapes(spec)
    for name in verify.masked:
        _rule(name in shapes, "verify.masked", "names of parameters", name)
    _check_tolerances(verify)


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


def _rule(holds: bool, field: str, expected: str, have: object) -> None:
    if not holds:
        raise SpecError(f"spec {field}: expected {expected}, have {have}")
