"""The registry of architectures: one module a family, chosen by the `architecture` of a spec's model.

No code ever comes from a job: what is not in this table is not trained.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.training.documents import parse_json
from protocol.training.errors import SpecError
from protocol.training.families.base import Family
from protocol.training.families.config import parse_config
from protocol.training.families.gpt2 import Gpt2Family, Gpt2Spec
from protocol.training.families.llama import LlamaFamily, LlamaSpec
from protocol.training.families.qwen3 import Qwen3Family, Qwen3Spec
from protocol.training.families.vit import VitFamily, VitSpec

__all__ = [
    "FAMILIES",
    "Family",
    "Gpt2Spec",
    "LlamaSpec",
    "ModelSpec",
    "Qwen3Spec",
    "VitSpec",
    "family_of",
    "model_from_config",
]

ModelSpec = LlamaSpec | Qwen3Spec | Gpt2Spec | VitSpec

FAMILIES: dict[str, Family[Any]] = {
    "llama": LlamaFamily(),
    "qwen3": Qwen3Family(),
    "gpt2": Gpt2Family(),
    "vit": VitFamily(),
}


class _Model(msgspec.Struct, frozen=True):
    model: ModelSpec


def family_of(model: ModelSpec) -> Family[Any]:
    """The family of a spec's model."""
    return FAMILIES[model.architecture]


def model_from_config(data: bytes) -> ModelSpec:
    """A spec's model from a Hugging Face config.json.

    Raises SpecError in one line for what this version does not train. Dropout is left out: a claim has none.
    """
    config = parse_config(data)
    kind = config.value("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise SpecError(f"config.json model_type: expected {' or '.join(FAMILIES)}, have {str(kind)[:60]}")
    for name in ("auto_map", "quantization_config", "num_experts", "num_local_experts", "pruned_heads"):
        if config.value(name) not in ({}, 0):
            config.absent(name)
    fields = FAMILIES[kind].read(config) | {"architecture": kind}
    model = parse_json(msgspec.json.encode({"model": fields}), _Model, SpecError, "config.json", 2**16).model
    FAMILIES[kind].check(model)
    return model
