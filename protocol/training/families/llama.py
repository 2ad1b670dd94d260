"""Llama: rotary positions, RMS norms, grouped keys and values, a gated feed-forward; also SmolLM and SmolLM2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    check_heads,
    residual_deviation,
    rule,
    stack,
    transformer_flops,
)
from protocol.training.families.config import Config
from protocol.training.families.tokens import TokenFamily, language_settings

if TYPE_CHECKING:
    from torch import nn

RESIDUAL = ("o_proj.weight", "down_proj.weight")


class LlamaSpec(Model, frozen=True, kw_only=True, tag="llama"):
    """In Hugging Face's terms. No attention bias: the key's gradient is rounding noise."""

    vocab: Vocab
    width: Width
    layers: Layers
    heads: Heads
    kv_heads: Heads
    feed_forward: FeedForward
    tie_embeddings: bool = True
    rope_theta: RopeTheta = 10000.0
    norm_epsilon: NormEpsilon = 1e-5


class LlamaFamily(TokenFamily):
    """`LlamaForCausalLM`."""

    def check(self, model: LlamaSpec) -> None:
        width, heads, kv_heads = model.width, model.heads, model.kv_heads
        check_heads(width, heads)
        rule(width // heads % 2 == 0, "model.heads", "an even width per head (rotary embedding)", heads)
        rule(heads % kv_heads == 0, "model.kv_heads", f"a divisor of heads ({heads})", kv_heads)

    def check_sequence(self, model: LlamaSpec, sequence: int) -> None:
        """Rotary positions have no end."""

    def shapes(self, model: LlamaSpec) -> Layout:
        head = model.width // model.heads
        block = decoder_block(model.width, model.heads * head, model.kv_heads * head, model.feed_forward)
        return decoder(model.vocab, model.width, model.tie_embeddings) | stack("model.layers", model.layers, block)

    def frozen(self, model: LlamaSpec) -> Layout:
        return {}

    def deviation(self, model: LlamaSpec, name: str) -> float:
        return residual_deviation(model.layers) if name.endswith(RESIDUAL) else DEVIATION

    def flops(self, model: LlamaSpec, sequence: int, parameters: int) -> int:
        return transformer_flops(parameters, model.layers, model.width, sequence)

    def config(self, model: LlamaSpec, sequence: int) -> Any:
        from transformers.models.llama.configuration_llama import LlamaConfig

        settings = language_settings(model.vocab) | dict(
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
        )
        return LlamaConfig(**settings)

    def build(self, config: Any) -> nn.Module:
        from transformers.models.llama.modeling_llama import LlamaForCausalLM  # 2 s: only who trains pays for it

        module: nn.Module = LlamaForCausalLM(config)
        return module

    def read(self, config: Config) -> dict[str, Any]:
        fields = read_decoder(config)
        config.only("mlp_bias", False)
        config.only("pretraining_tp", 1)
        config.only("rope_interleaved", False)
        if fields["heads"]:  # a head of another width is another model; 0 heads are told by the bounds
            config.only("head_dim", fields["width"] // fields["heads"])
        return fields

    def published(self, name: str) -> tuple[str, ...]:
        return ()

    def ignored(self, model: LlamaSpec, name: str) -> bool:
        return name.endswith("rotary_emb.inv_freq")


def decoder(vocab: int, width: int, tied: bool) -> Layout:
    """Embeddings, last norm, and the head where it is not the embedding."""
    shapes: Layout = {"model.embed_tokens.weight": (vocab, width), "model.norm.weight": (width,)}
    return shapes if tied else shapes | {"lm_head.weight": (vocab, width)}


def decoder_block(width: int, query: int, key: int, hidden: int) -> Layout:
    """A layer. query, key: widths of all heads together."""
    return {
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
        "self_attn.q_proj.weight": (query, width),
        "self_attn.k_proj.weight": (key, width),
        "self_attn.v_proj.weight": (key, width),
        "self_attn.o_proj.weight": (width, query),
        "mlp.gate_proj.weight": (hidden, width),
        "mlp.up_proj.weight": (hidden, width),
        "mlp.down_proj.weight": (width, hidden),
    }


def read_decoder(config: Config) -> dict[str, Any]:
    """What the configurations of these models have in common. An attention's bias would be one of the key too."""
    config.only("attention_bias", False)
    config.only("hidden_act", "silu")
    heads = config.whole("num_attention_heads")
    return dict(
        vocab=config.whole("vocab_size"),
        width=config.whole("hidden_size"),
        layers=config.whole("num_hidden_layers"),
        heads=heads,
        kv_heads=config.whole("num_key_value_heads", default=heads),
        feed_forward=config.whole("intermediate_size"),
        tie_embeddings=config.flag("tie_word_embeddings", False),
        rope_theta=config.rope_theta(),
        norm_epsilon=config.number("rms_norm_eps", 1e-6),
    )
