"""Tokenizers: trained here or given, and made to give the same tokens for the same text each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from protocol.training.data import Tokens
from protocol.training.errors import DataError

END_OF_TEXT = "<|endoftext|>"  # token 0 of a tokenizer that is trained here
_ENDINGS = (END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>", "[EOS]")  # what tokenizers call it, in this order


def train_tokenizer(texts: Iterable[str], vocab: int) -> bytes:
    """tokenizer.json of a byte-level BPE: any text can be encoded, and decoding gives it back."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    encoder = Tokenizer(models.BPE())
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoder.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    encoder.train_from_iterator(texts, trainer)
    if encoder.get_vocab_size() > vocab:
        raise DataError(f"tokenizer: bytes alone need {encoder.get_vocab_size()} tokens, asked for {vocab}")
    return str(encoder.to_str()).encode()


def load_tokenizer(data: bytes) -> Any:
    """A `tokenizers.Tokenizer` from tokenizer.json. Raises DataError."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(data)
    except Exception as failure:  # the library raises bare Exception for what it cannot parse
        raise DataError(f"tokenizer: not a tokenizer.json: {str(failure).splitlines()[0][:120]}") from None


def tokenizer_vocab(tokenizer: Any) -> int:
    """The least vocabulary that all its tokens fit into."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)


def end_of_text(tokenizer: Any) -> str | None:
    """The token that its own documents end with, by the names that tokenizers use; None if it knows none."""
    return next((name for name in _ENDINGS if tokenizer.token_to_id(name) is not None), None)


class Encoder:
    """A tokenizer as packing uses it: no chance, no padding, nothing cut off, nothing added to a piece.

    `ending`: the token after each document; "" for none, None for the tokenizer's own.
    """

    def __init__(self, data: bytes, vocab: int, ending: str | None) -> None:
        self._tokenizer = load_tokenizer(data)
        largest = tokenizer_vocab(self._tokenizer) - 1
        if largest >= vocab:
            raise DataError(
                f"tokenizer: its tokens go up to {largest:,}, a vocabulary of {vocab:,} ends at {vocab - 1:,}; "
                f"give a vocabulary of {largest + 1:,} or more"
            )
        name = end_of_text(self._tokenizer) if ending is None else ending
        self._ending = np.array([self._token(name)] if name else [], np.int32)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        for chance in ("dropout", "alpha", "nbest_size"):  # BPE's; Unigram's two
            if getattr(self._tokenizer.model, chance, None) is not None:
                setattr(self._tokenizer.model, chance, None)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Each text's tokens, on its own."""
        encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(entry.ids, np.int32) for entry in encoded]

    @property
    def ending(self) -> Tokens:
        """What follows a document: one token or none."""
        return self._ending

    def _token(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        if token is None:
            raise DataError(f"tokenizer: it has no token {name!r} to end a text with; it must be one of its own")
        return int(token)
