"""Names and shapes of a model's parameters, worked out from the spec without building it (and without torch)."""

from __future__ import annotations

from math import prod

from protocol.training.families import family_of
from protocol.training.families.base import Layout as Layout
from protocol.training.spec import Spec

FULL_STATE = ("first_moment", "second_moment", "weights")  # its parts, sorted
FULL_STATE_METADATA = {"format": "gradmarket-full-state-1"}


def parameter_shapes(spec: Spec) -> Layout:
    """Every trained parameter under its Hugging Face name, sorted: the order of all canonical bytes."""
    return dict(sorted(family_of(spec.model).shapes(spec.model).items()))


def parameter_count(spec: Spec) -> int:
    """N: trained parameters, tied embeddings once."""
    return sum(prod(shape) for shape in parameter_shapes(spec).values())


def state_parts(spec: Spec) -> dict[str, Layout]:
    """What a job shares besides the weights: part → tensor names and shapes. Empty parts are left out.

    `first`: averaged first moments (Muon's momentum is one). `second`: factors of averaged second moments, of the
    parameters that AdamW trains. `momentum`: the outer optimizer's.
    """
    shapes, moments = parameter_shapes(spec), spec.inner.moments
    parts: dict[str, Layout] = {"weights": shapes}
    if spec.outer.momentum > 0:
        parts["momentum"] = shapes
    if moments is not None and moments.first is not None:
        parts["first"] = shapes
    if moments is not None:
        parts["second"] = factor_shapes({n: s for n, s in shapes.items() if n not in muon_parameters(spec)})
    return {part: layout for part, layout in parts.items() if layout}


def factor_shapes(shapes: Layout) -> Layout:
    """Of a matrix its means of rows and of columns (arXiv:1804.04235), of anything else every value."""
    factors: Layout = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            factors |= {f"{name}/rows": (shape[0],), f"{name}/columns": (shape[1],)}
        else:
            factors[name] = shape
    return dict(sorted(factors.items()))


def muon_parameters(spec: Spec) -> frozenset[str]:
    """The matrices inside the model: not the embeddings, not the output head."""
    if spec.inner.optimizer != "muon":
        return frozenset()
    family = family_of(spec.model)
    return frozenset(n for n, shape in parameter_shapes(spec).items() if len(shape) == 2 and not family.is_end(n))


def full_state_table(spec: Spec) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Names, types and shapes of the full inner state, whose digests stand in a trace."""
    shapes = parameter_shapes(spec)
    return {f"{part}/{name}": ("F32", shape) for part in FULL_STATE for name, shape in shapes.items()}


def claim_flops(spec: Spec) -> int:
    """Floating-point operations of one claim: those of an example, steps times batch."""
    inner = spec.inner
    return inner.steps * inner.batch * family_of(spec.model).flops(spec.model, inner.sequence, parameter_count(spec))
