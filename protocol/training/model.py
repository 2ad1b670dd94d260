"""A spec's model as a transformers module, and its trained parameters in order."""

from __future__ import annotations

import torch
from torch import nn

from protocol.training.checkpoint import Tensors
from protocol.training.errors import CheckpointError
from protocol.training.families import family_of
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec


def build(spec: Spec, device: str = "cpu") -> nn.Module:
    """The model in float32 with the library's own random weights, frozen ones zero: fill it with `load_weights`."""
    family = family_of(spec.model)
    module = family.build(family.config(spec.model, spec.inner.sequence))
    parameters = dict(module.named_parameters())
    for name in family.frozen(spec.model):
        nn.init.zeros_(parameters[name].requires_grad_(False))
    module.to(device=device, dtype=torch.float32)
    return module.train()


def parameters_in_order(spec: Spec, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The trained parameters, sorted by name. Raises CheckpointError if the model is not the one of the layout."""
    named = dict(model.named_parameters())
    shapes = parameter_shapes(spec)
    if {name: tuple(p.shape) for name, p in named.items()} != shapes | family_of(spec.model).frozen(spec.model):
        raise CheckpointError("model: the library builds other parameters than this version's layout expects")
    return [(name, named[name]) for name in shapes]


def load_weights(spec: Spec, model: nn.Module, weights: Tensors) -> None:
    """Copy float32 arrays into the model's parameters."""
    with torch.no_grad():
        for name, parameter in parameters_in_order(spec, model):
            parameter.copy_(torch.from_numpy(weights[name].copy()))
