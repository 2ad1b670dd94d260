"""ViT: a classifier of images, cut into square patches. Query, key and value without bias, as everywhere here.

An example is a row of C·H·W pixels (0…255, row-major), then its label. `inner.sequence` counts positions: the patches
and one more, whose last state is classified.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from protocol.training.errors import DataError
from protocol.training.families.base import (
    DEVIATION,
    FeedForward,
    Heads,
    Kind,
    Layers,
    Layout,
    Model,
    NormEpsilon,
    Rows,
    Width,
    check_heads,
    layer_norm,
    linear,
    residual_deviation,
    rule,
    stack,
    transformer_flops,
)
from protocol.training.families.config import Config

if TYPE_CHECKING:
    import torch
    from torch import nn

_PUBLISHED = (  # of a layer: the library's name, the one in files
    ("attention.q_proj.", "attention.attention.query."),
    ("attention.k_proj.", "attention.attention.key."),
    ("attention.v_proj.", "attention.attention.value."),
    ("attention.o_proj.", "attention.output.dense."),
    ("mlp.fc1.", "intermediate.dense."),
    ("mlp.fc2.", "output.dense."),
)


class VitSpec(Model, frozen=True, kw_only=True, tag="vit"):
    """In Hugging Face's terms. `size`, `patch`: pixels of a side."""

    channels: Annotated[int, Meta(ge=1, le=16)]
    size: Annotated[int, Meta(ge=4, le=1024)]
    patch: Annotated[int, Meta(ge=1, le=256)]
    classes: Annotated[int, Meta(ge=2, le=2**16)]
    width: Width
    layers: Layers
    heads: Heads
    feed_forward: FeedForward
    norm_epsilon: NormEpsilon = 1e-12

    @property
    def positions(self) -> int:
        """Patches, and the one that is classified."""
        return (self.size // self.patch) ** 2 + 1


class VitFamily:
    """`ViTForImageClassification`."""

    kind: Kind = "images"
    pipeline = "image-classification"

    def check(self, model: VitSpec) -> None:
        check_heads(model.width, model.heads)
        rule(model.size % model.patch == 0, "model.size", f"a multiple of model.patch ({model.patch})", model.size)

    def check_sequence(self, model: VitSpec, sequence: int) -> None:
        expected = f"the model's positions, patches and one ({model.positions})"
        rule(sequence == model.positions, "inner.sequence", expected, sequence)

    def shapes(self, model: VitSpec) -> Layout:
        width, patch = model.width, model.patch
        block: Layout = {f"attention.{name}_proj.weight": (width, width) for name in "qkv"}
        block |= linear("attention.o_proj", width, width)
        block |= layer_norm("layernorm_before", width) | layer_norm("layernorm_after", width)
        block |= linear("mlp.fc1", model.feed_forward, width) | linear("mlp.fc2", width, model.feed_forward)
        return {
            "vit.embeddings.cls_token": (1, 1, width),
            "vit.embeddings.position_embeddings": (1, model.positions, width),
            "vit.embeddings.patch_embeddings.projection.weight": (width, model.channels, patch, patch),
            "vit.embeddings.patch_embeddings.projection.bias": (width,),
            **stack("vit.layers", model.layers, block),
            **layer_norm("vit.layernorm", width),
            **linear("classifier", model.classes, width),
        }

    def frozen(self, model: VitSpec) -> Layout:
        return {}

    def is_end(self, name: str) -> bool:
        return name == "classifier.weight"

    def deviation(self, model: VitSpec, name: str) -> float:
        back = name.endswith(("o_proj.weight", "fc2.weight"))
        return residual_deviation(model.layers) if back else DEVIATION

    def flops(self, model: VitSpec, sequence: int, parameters: int) -> int:
        return transformer_flops(parameters, model.layers, model.width, sequence)

    def manifest_fields(self, model: VitSpec, sequence: int) -> dict[str, int]:
        return {"channels": model.channels, "size": model.size, "classes": model.classes}

    def check_rows(self, model: VitSpec, sequence: int, rows: Rows) -> None:
        length = model.channels * model.size**2 + 1
        if rows.ndim != 2 or rows.shape[1] != length or not len(rows):
            raise DataError(f"shard: expected images of {length - 1} pixels and a label, have shape {rows.shape}")
        if int(rows[:, :-1].max()) > 255 or int(rows.min()) < 0:
            raise DataError(f"shard: pixels must be in 0…255, have {rows.min()}…{rows[:, :-1].max()}")
        if int(rows[:, -1].max()) >= model.classes:
            raise DataError(f"shard: labels must be in 0…{model.classes - 1}, have up to {rows[:, -1].max()}")

    def config(self, model: VitSpec, sequence: int) -> Any:
        from transformers.models.vit.configuration_vit import ViTConfig

        settings: dict[str, Any] = dict(
            num_channels=model.channels,
            image_size=model.size,
            patch_size=model.patch,
            num_labels=model.classes,
            hidden_size=model.width,
            num_hidden_layers=model.layers,
            num_attention_heads=model.heads,
            intermediate_size=model.feed_forward,
            hidden_act="gelu",
            layer_norm_eps=model.norm_epsilon,
            qkv_bias=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
        return ViTConfig(**settings)

    def build(self, config: Any) -> nn.Module:
        from transformers.models.vit.modeling_vit import ViTForImageClassification

        module: nn.Module = ViTForImageClassification(config)
        return module

    def loss(
        self, module: nn.Module, model: VitSpec, rows: torch.Tensor, precision: AbstractContextManager[object]
    ) -> torch.Tensor:
        """Mean cross-entropy in nats an image. Pixels become -1…1."""
        from torch.nn.functional import cross_entropy

        pixels_BCHW = rows[:, :-1].float().div(127.5).sub(1.0).view(-1, model.channels, model.size, model.size)
        with precision:
            logits_BV = module(pixel_values=pixels_BCHW).logits
        return cross_entropy(logits_BV.float(), rows[:, -1])

    def read(self, config: Config) -> dict[str, Any]:
        config.only("qkv_bias", False, default=True)
        config.only("hidden_act", "gelu")
        heads, width = config.whole("num_attention_heads", default=12), config.whole("hidden_size", default=768)
        if heads:
            config.only("head_dim", width // heads)
        names = config.table("id2label")
        return dict(
            channels=config.whole("num_channels", default=3),
            size=config.whole("image_size", default=224),
            patch=config.whole("patch_size", default=16),
            classes=len(names) or config.whole("num_labels", default=2),
            width=width,
            layers=config.whole("num_hidden_layers", default=12),
            heads=heads,
            feed_forward=config.whole("intermediate_size", default=3072),
            norm_epsilon=config.number("layer_norm_eps", 1e-12),
        )

    def published(self, name: str) -> tuple[str, ...]:
        changed = name.replace("vit.layers.", "vit.encoder.layer.")
        for own, other in _PUBLISHED:
            changed = changed.replace(own, other)
        return (changed,) if changed != name else ()

    def ignored(self, model: VitSpec, name: str) -> bool:
        return False
