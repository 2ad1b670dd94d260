"""A trained checkpoint becomes a folder that the usual tools load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.training.checkpoint import genesis_checkpoint
from protocol.training.evaluate import export_model, generate, validation_loss
from protocol.training.families import LlamaSpec
from protocol.training.inner import Trainer
from protocol.training.pack import train_tokenizer
from tests.unit.training_fixtures import a_shard, a_spec


def test_an_export_loads_with_the_usual_classes_and_has_the_same_loss(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = a_spec(model=LlamaSpec(vocab=300, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48))
    checkpoint, tokens = genesis_checkpoint(spec), a_shard(spec)[:4]
    tokenizer = train_tokenizer(["the owls watch | from an old oak tree\n" * 50], 300)
    folder = export_model(spec, checkpoint, tokenizer, tmp_path / "model", {"job": "7", "losses": [5.7, 5.1]})
    model = AutoModelForCausalLM.from_pretrained(folder)
    sequences = torch.from_numpy(tokens.astype(np.int64))
    with torch.no_grad():
        logits = model(input_ids=sequences[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 300), sequences[:, 1:].reshape(-1))
    assert float(loss) == pytest.approx(validation_loss(spec, checkpoint, tokens, Trainer(spec)), rel=1e-5)
    words = AutoTokenizer.from_pretrained(folder)
    assert words.decode(words("the owls").input_ids) == "the owls"
    assert "| losses | [5.7, 5.1] |" in (folder / "README.md").read_text(encoding="utf-8")


def test_generated_text_begins_with_the_prompt_and_follows_the_seed() -> None:
    spec = a_spec(model=LlamaSpec(vocab=300, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48))
    tokenizer = train_tokenizer(["the owls watch from an old oak tree\n" * 50], 300)
    texts = [generate(spec, genesis_checkpoint(spec), tokenizer, "the owls", 40, seed=seed) for seed in (1, 1, 2)]
    assert texts[0].startswith("the owls")
    assert texts[0] == texts[1] != texts[2]
