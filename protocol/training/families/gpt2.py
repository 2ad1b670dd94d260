"""GPT-2: learned positions, LayerNorms with bias, GELU, tied embeddings.

The library keeps the biases of query, key and value in one vector, `c_attn.bias`. A constant added to every key moves
all scores of a query alike and softmax forgets it: the key's gradient is rounding noise, which AdamW would scale up to
full steps, another on every machine. So the whole vector stays zero and is in no checkpoint.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from protocol.training.families.base import (
    DEVIATION,
    FeedForward,
    Heads,
    Layers,
    Layout,
    Model,
    NormEpsilon,
    Vocab,
    Width,
    check_heads,
    layer_norm,
    residual_deviation,
    rule,
    stack,
    transformer_flops,
)
from protocol.training.families.config import Config
from protocol.training.families.tokens import TokenFamily, language_settings

if TYPE_CHECKING:
    from torch import nn

_PREFIX = "transformer."  # the first published files leave it out
_MASKS = re.compile(r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)")  # of the causal attention


class Gpt2Spec(Model, frozen=True, kw_only=True, tag="gpt2"):
    """In Hugging Face's terms. `positions`: learned ones, of which a job's sequences may use fewer."""

    vocab: Vocab
    width: Width
    layers: Layers
    heads: Heads
    feed_forward: FeedForward
    positions: Annotated[int, Meta(ge=8, le=2**17)]
    norm_epsilon: NormEpsilon = 1e-5


class Gpt2Family(TokenFamily):
    """`GPT2LMHeadModel`."""

    def check(self, model: Gpt2Spec) -> None:
        check_heads(model.width, model.heads)

    def check_sequence(self, model: Gpt2Spec, sequence: int) -> None:
        rule(sequence <= model.positions, "inner.sequence", f"at most model.positions ({model.positions})", sequence)

    def shapes(self, model: Gpt2Spec) -> Layout:
        width, hidden = model.width, model.feed_forward
        block: Layout = {
            **layer_norm("ln_1", width),
            "attn.c_attn.weight": (width, 3 * width),
            **_conv("attn.c_proj", width, width),
            **layer_norm("ln_2", width),
            **_conv("mlp.c_fc", width, hidden),
            **_conv("mlp.c_proj", hidden, width),
        }
        return {
            "transformer.wte.weight": (model.vocab, width),
            "transformer.wpe.weight": (model.positions, width),
            **stack("transformer.h", model.layers, block),
            **layer_norm("transformer.ln_f", width),
        }

    def frozen(self, model: Gpt2Spec) -> Layout:
        return stack("transformer.h", model.layers, {"attn.c_attn.bias": (3 * model.width,)})

    def deviation(self, model: Gpt2Spec, name: str) -> float:
        return residual_deviation(model.layers) if name.endswith("c_proj.weight") else DEVIATION

    def flops(self, model: Gpt2Spec, sequence: int, parameters: int) -> int:
        return transformer_flops(parameters, model.layers, model.width, sequence)

    def config(self, model: Gpt2Spec, sequence: int) -> Any:
        from transformers.models.gpt2.configuration_gpt2 import GPT2Config

        settings = language_settings(model.vocab) | dict(
            n_embd=model.width,
            n_inner=model.feed_forward,
            n_layer=model.layers,
            n_head=model.heads,
            n_positions=model.positions,
            activation_function="gelu_new",
            layer_norm_epsilon=model.norm_epsilon,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            tie_word_embeddings=True,
        )
        return GPT2Config(**settings)

    def build(self, config: Any) -> nn.Module:
        from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

        module: nn.Module = GPT2LMHeadModel(config)
        return module

    def read(self, config: Config) -> dict[str, Any]:
        config.only("activation_function", "gelu_new")
        config.only("scale_attn_weights", True)
        config.only("tie_word_embeddings", True)
        for name in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"):
            config.only(name, False)
        width = config.whole("n_embd", "hidden_size")
        return dict(
            vocab=config.whole("vocab_size"),
            width=width,
            layers=config.whole("n_layer", "num_hidden_layers"),
            heads=config.whole("n_head", "num_attention_heads"),
            feed_forward=config.whole("n_inner", default=4 * width),
            positions=config.whole("n_positions", "max_position_embeddings"),
            norm_epsilon=config.number("layer_norm_epsilon", 1e-5),
        )

    def published(self, name: str) -> tuple[str, ...]:
        return (name.removeprefix(_PREFIX),)

    def ignored(self, model: Gpt2Spec, name: str) -> bool:
        return _MASKS.fullmatch(name) is not None


def _conv(name: str, into: int, out: int) -> Layout:
    """The library's Conv1D: a linear layer whose weight lies the other way round."""
    return {f"{name}.weight": (into, out), f"{name}.bias": (out,)}
