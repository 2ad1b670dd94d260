"""Names and shapes of a model's parameters, worked out from the spec without building it (and without torch)."""

from __future__ import annotations

from math import prod

from protocol.training.spec import ModelSpec, Spec

Layout = dict[str, tuple[int, ...]]  # parameter name → shape, in sorted order of the names


def parameter_shapes(spec: Spec) -> Layout:
    """Every trained parameter under its Hugging Face name, sorted: the order of all canonical bytes."""
    return dict(sorted(_llama(spec.model).items()))


def parameter_count(spec: Spec) -> int:
    """N: trained parameters, tied embeddings once."""
    return sum(prod(shape) for shape in parameter_shapes(spec).values())


def claim_flops(spec: Spec) -> int:
    """Floating-point operations of one claim: (6·N + 12·L·d·T) a token, forward and backward (arXiv:2204.02311, B)."""
    tokens = spec.inner.steps * spec.inner.batch * spec.inner.sequence
    return tokens * (6 * parameter_count(spec) + 12 * spec.model.layers * spec.model.width * spec.inner.sequence)


def _llama(model: ModelSpec) -> Layout:
    width, hidden = model.width, model.feed_forward
    kv_width = width // model.heads * model.kv_heads
    shapes: Layout = {"model.embed_tokens.weight": (model.vocab, width), "model.norm.weight": (width,)}
    if not model.tie_embeddings:
        shapes["lm_head.weight"] = (model.vocab, width)
    block: Layout = {
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
        "self_attn.q_proj.weight": (width, width),
        "self_attn.k_proj.weight": (kv_width, width),
        "self_attn.v_proj.weight": (kv_width, width),
        "self_attn.o_proj.weight": (width, width),
        "mlp.gate_proj.weight": (hidden, width),
        "mlp.up_proj.weight": (hidden, width),
        "mlp.down_proj.weight": (width, hidden),
    }
    for layer in range(model.layers):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in block.items()}
    return shapes
