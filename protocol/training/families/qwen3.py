"""Qwen3 (dense): as llama, with heads of any width and a norm of each query and key."""

from __future__ import annotations

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
    RopeTheta,
    Vocab,
    Width,
    residual_deviation,
    rule,
    stack,
    transformer_flops,
)
from protocol.training.families.config import Config
from protocol.training.families.llama import RESIDUAL, decoder, decoder_block, read_decoder
from protocol.training.families.tokens import TokenFamily, language_settings

if TYPE_CHECKING:
    from torch import nn


class Qwen3Spec(Model, frozen=True, kw_only=True, tag="qwen3"):
    """In Hugging Face's terms; `head_width` need not be width / heads. No attention bias."""

    vocab: Vocab
    width: Width
    layers: Layers
    heads: Heads
    kv_heads: Heads
    head_width: Annotated[int, Meta(ge=2, le=512)]
    feed_forward: FeedForward
    tie_embeddings: bool = True
    rope_theta: RopeTheta = 1e6
    norm_epsilon: NormEpsilon = 1e-6


class Qwen3Family(TokenFamily):
    """`Qwen3ForCausalLM`."""

    def check(self, model: Qwen3Spec) -> None:
        heads, kv_heads = model.heads, model.kv_heads
        rule(model.head_width % 2 == 0, "model.head_width", "an even number (rotary embedding)", model.head_width)
        rule(heads % kv_heads == 0, "model.kv_heads", f"a divisor of heads ({heads})", kv_heads)

    def check_sequence(self, model: Qwen3Spec, sequence: int) -> None:
        """Rotary positions have no end."""

    def shapes(self, model: Qwen3Spec) -> Layout:
        head = model.head_width
        block = decoder_block(model.width, model.heads * head, model.kv_heads * head, model.feed_forward)
        block |= {"self_attn.q_norm.weight": (head,), "self_attn.k_norm.weight": (head,)}
        return decoder(model.vocab, model.width, model.tie_embeddings) | stack("model.layers", model.layers, block)

    def frozen(self, model: Qwen3Spec) -> Layout:
        return {}

    def deviation(self, model: Qwen3Spec, name: str) -> float:
        return residual_deviation(model.layers) if name.endswith(RESIDUAL) else DEVIATION

    def flops(self, model: Qwen3Spec, sequence: int, parameters: int) -> int:
        return transformer_flops(parameters, model.layers, model.heads * model.head_width, sequence)

    def config(self, model: Qwen3Spec, sequence: int) -> Any:
        from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

        settings = language_settings(model.vocab) | dict(
            hidden_size=model.width,
            intermediate_size=model.feed_forward,
            num_hidden_layers=model.layers,
            num_attention_heads=model.heads,
            num_key_value_heads=model.kv_heads,
            head_dim=model.head_width,
            max_position_embeddings=sequence,
            rms_norm_eps=model.norm_epsilon,
            rope_theta=model.rope_theta,
            tie_word_embeddings=model.tie_embeddings,
            attention_bias=False,
            attention_dropout=0.0,
            use_sliding_window=False,
        )
        return Qwen3Config(**settings)

    def build(self, config: Any) -> nn.Module:
        from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

        module: nn.Module = Qwen3ForCausalLM(config)
        return module

    def read(self, config: Config) -> dict[str, Any]:
        fields = read_decoder(config)
        config.only("use_sliding_window", False)
        config.all_of("layer_types", "full_attention")
        return fields | {"head_width": config.whole("head_dim", default=128)}

    def published(self, name: str) -> tuple[str, ...]:
        return ()

    def ignored(self, model: Qwen3Spec, name: str) -> bool:
        return name.endswith("rotary_emb.inv_freq")
