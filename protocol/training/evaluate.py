"""What a model is worth to the person who paid for it: its validation loss, a folder to load, a few words of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocol.training.checkpoint import Checkpoint
from protocol.training.data import Tokens
from protocol.training.inner import Trainer
from protocol.training.model import build, load_weights
from protocol.training.pack import END_OF_TEXT, load_tokenizer
from protocol.training.spec import Spec

_LIKELIEST = 40  # tokens that sampling chooses among


def validation_loss(spec: Spec, checkpoint: Checkpoint, tokens: Tokens, trainer: Trainer | None = None) -> float:
    """Mean cross-entropy in nats a token over sequences [S, T+1]. A trainer of the same spec saves building a model."""
    model = trainer or Trainer(spec)
    model.load(checkpoint.weights)
    return model.validation_loss(tokens)


def generate(
    spec: Spec, checkpoint: Checkpoint, tokenizer: bytes, prompt: str, count: int, *, seed: int = 0, heat: float = 0.8
) -> str:
    """`prompt` and `count` more tokens, drawn from the 40 likeliest at temperature `heat`, by `seed`."""
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
    spec: Spec, checkpoint: Checkpoint, tokenizer: bytes, out_dir: Path, card: Mapping[str, object]
) -> Path:
    """A Hugging Face folder that AutoModelForCausalLM and AutoTokenizer load, with a model card of the given facts."""
    from transformers import PreTrainedTokenizerFast

    out_dir.mkdir(parents=True, exist_ok=True)
    model: Any = build(spec)
    load_weights(spec, model, checkpoint.weights)
    model.save_pretrained(out_dir)
    (out_dir / "model.safetensors").chmod(0o644)  # the library leaves it to its owner alone
    encoder = load_tokenizer(tokenizer)
    ending = END_OF_TEXT if encoder.token_to_id(END_OF_TEXT) is not None else None
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=encoder, bos_token=ending, eos_token=ending)
    fast.model_max_length = spec.inner.sequence
    fast.save_pretrained(out_dir)
    (out_dir / "README.md").write_text(model_card(spec, card), encoding="utf-8")
    return out_dir


def model_card(spec: Spec, facts: Mapping[str, object]) -> str:
    """Markdown with the front matter that the hub reads. Facts keep their order; lists and objects become JSON."""
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    front = ["---", "library_name: transformers", "pipeline_tag: text-generation", "tags: [gradmarket]", "---"]
    return "\n".join([*front, "", f"# {spec.name}", "", "| fact | value |", "|---|---|", *rows, ""])


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.replace("|", "\\|").replace("\n", " ")
