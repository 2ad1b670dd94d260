"""The registry of architectures: a spec's model becomes a transformers module. No code ever comes from a job."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from protocol.training.checkpoint import Tensors
from protocol.training.errors import CheckpointError
from protocol.training.layout import parameter_shapes
from protocol.training.spec import ModelSpec, Spec


def build(spec: Spec, device: str = "cpu") -> nn.Module:
    """The model in float32 with the library's own random weights: fill it with `load_weights` before use."""
    from transformers.models.llama.modeling_llama import LlamaForCausalLM  # 2 s: only who trains pays for it

    module: nn.Module = LlamaForCausalLM(llama_config(spec.model, spec.inner.sequence))
    module.to(device=device, dtype=torch.float32)
    return module.train()


def llama_config(model: ModelSpec, sequence: int) -> Any:
    """Hugging Face's configuration. Eager attention: its order of operations is fixed on every device."""
    from transformers.models.llama.configuration_llama import LlamaConfig

    settings: dict[str, Any] = dict(
        vocab_size=model.vocab,
        hidden_size=model.width,
        intermediate_size=model.feed_forward,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        max_position_embeddings=sequence,
        rms_norm_eps=model.norm_epsilon,
        rope_theta=model.rope_theta,
        tie_word_embeddings=model.tie_embeddings,
        attention_bias=False,
        attention_dropout=0.0,
        use_cache=False,
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
    )
    return LlamaConfig(**settings)


def parameters_in_order(spec: Spec, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The trained parameters, sorted by name. Raises CheckpointError if the model is not the one of the layout."""
    named = dict(model.named_parameters())
    shapes = parameter_shapes(spec)
    if {name: tuple(p.shape) for name, p in named.items()} != shapes:
        raise CheckpointError("model: the library builds other parameters than this version's layout expects")
    return [(name, named[name]) for name in shapes]


def load_weights(spec: Spec, model: nn.Module, weights: Tensors) -> None:
    """Copy float32 arrays into the model's parameters."""
    with torch.no_grad():
        for name, parameter in parameters_in_order(spec, model):
            parameter.copy_(torch.from_numpy(weights[name].copy()))
