"""What a family of models is: everything about an architecture that the rest of training does not know.

Shapes: B examples of a batch, E integers of an example (a row), V classes that the model chooses among.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from protocol.training.errors import SpecError
from protocol.training.families.config import Config

if TYPE_CHECKING:
    import torch
    from torch import nn

Layout = dict[str, tuple[int, ...]]  # parameter name → shape
Rows = npt.NDArray[np.integer[Any]]  # examples [S, E], each a row of integers that its family understands
Kind = Literal["tokens", "images"]  # what the examples are

Vocab = Annotated[int, Meta(ge=16, le=2**18)]
Width = Annotated[int, Meta(ge=8, le=2**14)]
Layers = Annotated[int, Meta(ge=1, le=128)]
Heads = Annotated[int, Meta(ge=1, le=128)]
FeedForward = Annotated[int, Meta(ge=8, le=2**16)]
RopeTheta = Annotated[float, Meta(ge=100.0, le=1e8)]
NormEpsilon = Annotated[float, Meta(ge=1e-12, le=1e-3)]

DEVIATION = 0.02  # of first weights


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="architecture"):
    """A spec's model: immutable, strict when decoded, told apart by its `architecture`."""

    @property
    def architecture(self) -> str:
        """The family's name."""
        return str(self.__struct_config__.tag)


M_contra = TypeVar("M_contra", bound=Model, contravariant=True)


class Family(Protocol[M_contra]):
    """One architecture. Methods that take or give a module load torch and the library; the others load neither."""

    kind: Kind
    pipeline: str  # what the hub calls the task

    def check(self, model: M_contra) -> None:
        """The rules between the fields. Raises SpecError."""

    def check_sequence(self, model: M_contra, sequence: int) -> None:
        """The rules of `inner.sequence`, the positions of an example. Raises SpecError."""

    def shapes(self, model: M_contra) -> Layout:
        """Every trained parameter under its Hugging Face name, tied ones once."""

    def frozen(self, model: M_contra) -> Layout:
        """Parameters of the library's module that stay zero: never trained, never sent, in no checkpoint."""

    def is_end(self, name: str) -> bool:
        """Is a matrix an embedding or an output layer? Muon leaves those to AdamW."""

    def deviation(self, model: M_contra, name: str) -> float:
        """Standard deviation of a matrix's first weights."""

    def flops(self, model: M_contra, sequence: int, parameters: int) -> int:
        """Floating-point operations of one example, forward and backward."""

    def manifest_fields(self, model: M_contra, sequence: int) -> dict[str, int]:
        """Fields that the manifest of this model's data must have."""

    def check_rows(self, model: M_contra, sequence: int, rows: Rows) -> None:
        """Raise DataError for examples that this model cannot take."""

    def config(self, model: M_contra, sequence: int) -> Any:
        """Hugging Face's configuration: eager attention, whose order of operations is fixed, and no dropout."""

    def build(self, config: Any) -> nn.Module:
        """The library's module, with its own random weights."""

    def loss(
        self, module: nn.Module, model: M_contra, rows: torch.Tensor, precision: AbstractContextManager[object]
    ) -> torch.Tensor:
        """Mean loss of examples [B, E] in nats, float32; `precision` is the forward pass's."""

    def read(self, config: Config) -> dict[str, Any]:
        """The model's fields out of a config.json. Raises SpecError for what this version does not train."""

    def published(self, name: str) -> tuple[str, ...]:
        """Other names by which published files call a parameter."""

    def ignored(self, model: M_contra, name: str) -> bool:
        """Is a tensor of a published file no weight, but something that the module computes itself?"""


def rule(holds: bool, field: str, expected: str, have: object) -> None:
    """Raise SpecError in one line unless a rule between a spec's fields holds."""
    if not holds:
        raise SpecError(f"spec {field}: expected {expected}, have {have}")


def check_heads(width: int, heads: int) -> None:
    """Heads of equal width."""
    rule(width % heads == 0, "model.width", f"a multiple of model.heads ({heads})", width)


def transformer_flops(parameters: int, layers: int, attention: int, sequence: int) -> int:
    """(6·N + 12·L·d·T) a position, forward and backward (arXiv:2204.02311, B). attention: width of all heads."""
    return sequence * (6 * parameters + 12 * layers * attention * sequence)


def residual_deviation(layers: int) -> float:
    """Of the projections back into the residual stream: smaller by sqrt(2·layers), as in GPT-2."""
    return float(DEVIATION / (2 * layers) ** 0.5)


def stack(prefix: str, layers: int, block: Layout) -> Layout:
    """The parameters of equal layers."""
    return {f"{prefix}.{layer}.{name}": shape for layer in range(layers) for name, shape in block.items()}


def layer_norm(name: str, width: int) -> Layout:
    """A LayerNorm's weight and bias."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def linear(name: str, out: int, into: int) -> Layout:
    """A linear layer's weight [out, into] and bias."""
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}
