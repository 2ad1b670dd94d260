"""Language models: an example is T+1 tokens, each but the first the target of those before it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from protocol.training.errors import DataError
from protocol.training.families.base import Kind, Rows

if TYPE_CHECKING:
    import torch
    from torch import nn


class Vocabulary(Protocol):
    """A model of tokens."""

    @property
    def vocab(self) -> int:
        """Tokens of the vocabulary."""


class TokenFamily:
    """What language models have in common."""

    kind: Kind = "tokens"
    pipeline = "text-generation"

    def manifest_fields(self, model: Vocabulary, sequence: int) -> dict[str, int]:
        return {"vocab": model.vocab, "sequence": sequence}

    def is_end(self, name: str) -> bool:
        return name.endswith(("embed_tokens.weight", "lm_head.weight", "wte.weight", "wpe.weight"))

    def check_rows(self, model: Vocabulary, sequence: int, rows: Rows) -> None:
        if rows.ndim != 2 or rows.shape[1] != sequence + 1 or not len(rows):
            raise DataError(f"shard: expected sequences of {sequence + 1} tokens, have shape {rows.shape}")
        if int(rows.max()) >= model.vocab or int(rows.min()) < 0:
            raise DataError(f"shard: tokens must be in 0…{model.vocab - 1}, have {rows.min()}…{rows.max()}")

    def loss(
        self, module: nn.Module, model: Vocabulary, rows: torch.Tensor, precision: AbstractContextManager[object]
    ) -> torch.Tensor:
        """Mean cross-entropy in nats a token. rows: [B, T+1]."""
        from torch.nn.functional import cross_entropy

        with precision:
            logits_BTV = module(input_ids=rows[:, :-1]).logits
        return cross_entropy(logits_BTV.float().reshape(-1, model.vocab), rows[:, 1:].reshape(-1))


def language_settings(vocab: int) -> dict[str, Any]:
    """What all of the library's configurations of language models are given."""
    return dict(vocab_size=vocab, use_cache=False, attn_implementation="eager", bos_token_id=0, eos_token_id=0)
