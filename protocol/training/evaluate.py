"""What a model is worth to the person who paid for it: its validation loss, a folder to load, a few words of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocol.training.checkpoint import Checkpoint
from protocol.training.errors import DataError
from protocol.training.families import VitSpec, family_of
from protocol.training.families.base import Rows
from protocol.training.inner import Trainer
from protocol.training.model import build, load_weights
from protocol.training.pack import end_of_text, load_tokenizer
from protocol.training.spec import Spec

_LIKELIEST = 40  # tokens that sampling chooses among


def validation_loss(spec: Spec, checkpoint: Checkpoint, tokens: Rows, trainer: Trainer | None = None) -> float:
    """Mean loss in nats (a token, an image) over examples [S, E]. A trainer of the same spec saves building a model."""
    model = trainer or Trainer(spec)
    model.load(checkpoint)
    return model.validation_loss(tokens)


def generate(
    spec: Spec, checkpoint: Checkpoint, tokenizer: bytes, prompt: str, count: int, *, seed: int = 0, heat: float = 0.8
) -> str:
    """`prompt` and `count` more tokens, drawn from the 40 likeliest at temperature `heat`, by `seed`."""
    if family_of(spec.model).kind != "tokens":
        raise DataError(f"generate: a model of architecture {spec.model.architecture} writes no text")
    encoder = load_tokenizer(tokenizer)
    model = build(spec).eval()
    load_weights(spec, model, checkpoint.weights)
    ids: list[int] = list(encoder.encode(prompt or "\n").ids)
    chance = np.random.default_rng(seed)
    with torch.no_grad():
        for _ in range(count):
            window = torch.tensor([ids[-spec.inner.sequence :]])
            logits = model(input_ids=window).logits[0, -1].double().numpy()
            likeliest = np.argsort(-logits, kind="stable")[:_LIKELIEST]
            odds = np.exp((logits[likeliest] - logits[likeliest[0]]) / heat)
            ids.append(int(chance.choice(likeliest, p=odds / odds.sum())))
    return str(encoder.decode(ids))


def export_model(
    spec: Spec, checkpoint: Checkpoint, tokenizer: bytes | None, out_dir: Path, card: Mapping[str, object]
) -> Path:
    """A Hugging Face folder that the library's Auto classes load, with a model card of the given facts.

    Beside the model lies its tokenizer, or the processor that makes its images.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    model: Any = build(spec)
    load_weights(spec, model, checkpoint.weights)
    model.save_pretrained(out_dir)
    (out_dir / "model.safetensors").chmod(0o644)  # the library leaves it to its owner alone
    if tokenizer is not None:
        _save_tokenizer(spec, tokenizer, out_dir)
    if isinstance(spec.model, VitSpec):
        processor = json.dumps(image_processor(spec.model), indent=2)
        (out_dir / "preprocessor_config.json").write_text(processor, encoding="utf-8")
    (out_dir / "README.md").write_text(model_card(spec, card), encoding="utf-8")
    return out_dir


def image_processor(model: VitSpec) -> dict[str, object]:
    """What the library's ViTImageProcessor is to do: the size of the model, and bytes to -1…1."""
    half = [0.5] * model.channels
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": model.size, "width": model.size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": half,
        "image_std": half,
    }


def _save_tokenizer(spec: Spec, tokenizer: bytes, out_dir: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    encoder = load_tokenizer(tokenizer)
    ending = end_of_text(encoder)
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=encoder, bos_token=ending, eos_token=ending)
    fast.model_max_length = spec.inner.sequence
    fast.save_pretrained(out_dir)


def model_card(spec: Spec, facts: Mapping[str, object]) -> str:
    """Markdown with the front matter that the hub reads. Facts keep their order; lists and objects become JSON."""
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    task = f"pipeline_tag: {family_of(spec.model).pipeline}"
    front = ["---", "library_name: transformers", task, "tags: [gradmarket]", "---"]
    return "\n".join([*front, "", f"# {spec.name}", "", "| fact | value |", "|---|---|", *rows, ""])


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.replace("|", "\\|").replace("\n", " ")
