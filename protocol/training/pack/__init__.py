"""From files of text to a manifest, its shards, a validation split and a tokenizer: all as blobs named by sha256.

    survey      read everything once: is it text, how much is there, which documents are held out
    tokenizer   the one that was given, or a byte-level BPE trained on a sample
    tokens      two flat files of tokens on disk, the training part and what is held out
    shards      windows of the flat file, gathered by a keyed permutation

No stage holds more in memory than a batch of text, whatever the files' size; each goes on where a killed process left.
"""

from __future__ import annotations

from protocol.training.pack.corpus import corpus_paths
from protocol.training.pack.images import ImagePack, pack_images
from protocol.training.pack.packing import PackResult, pack_text
from protocol.training.pack.progress import Progress, Stage
from protocol.training.pack.tokenizer import (
    END_OF_TEXT,
    end_of_text,
    load_tokenizer,
    tokenizer_vocab,
    train_tokenizer,
)

__all__ = [
    "END_OF_TEXT",
    "ImagePack",
    "PackResult",
    "Progress",
    "Stage",
    "corpus_paths",
    "end_of_text",
    "load_tokenizer",
    "pack_images",
    "pack_text",
    "tokenizer_vocab",
    "train_tokenizer",
]
