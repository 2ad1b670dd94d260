"""Images as a job's data: a manifest of shards of pixels and labels. In training an image is one row of integers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from protocol.training.canonical import Array, Table, encode_tensors
from protocol.training.errors import DataError
from protocol.training.families.base import Rows
from protocol.training.spec import Digest

IMAGE_METADATA = {"format": "gradmarket-image-shard-1"}

Pixels = npt.NDArray[np.uint8]  # [S, C, H, W]
Labels = npt.NDArray[np.integer[Any]]  # [S]


class ImageManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every shard holds `shard_images` square images of `channels` × `size` × `size` bytes, each with a label."""

    version: Annotated[int, Meta(ge=1, le=1)] = 1
    kind: Literal["images"] = "images"
    channels: Annotated[int, Meta(ge=1, le=16)]
    size: Annotated[int, Meta(ge=4, le=1024)]
    classes: Annotated[int, Meta(ge=2, le=2**16)]
    shard_images: Annotated[int, Meta(ge=1, le=2**22)]
    shards: Annotated[tuple[Digest, ...], Meta(min_length=1, max_length=900_000)]
    validation: Digest
    validation_images: Annotated[int, Meta(ge=1, le=2**22)]

    @property
    def shard_examples(self) -> int:
        """Examples of a shard."""
        return self.shard_images

    @property
    def validation_examples(self) -> int:
        """Examples of the validation split."""
        return self.validation_images


def image_table(channels: int, size: int, images: int) -> Table:
    """The tensors of a file of images."""
    return {"labels": ("U16", (images,)), "pixels": ("U8", (images, channels, size, size))}


def encode_images(pixels: Pixels, labels: Labels) -> bytes:
    """Canonical bytes of images [S, C, H, H] and their labels [S]."""
    images, channels, size, _ = pixels.shape
    tensors: dict[str, Array] = {"labels": labels.astype("<u2"), "pixels": pixels}
    return encode_tensors(image_table(channels, size, images), IMAGE_METADATA, tensors)


def image_rows(tensors: dict[str, Array], classes: int, what: str) -> Rows:
    """Rows [S, C·H·W + 1] of a decoded file: pixels, then the label. Raises DataError for an unknown label."""
    pixels, labels = tensors["pixels"], tensors["labels"]
    rows: Rows = np.concatenate([pixels.reshape(len(pixels), -1), labels[:, None]], axis=1, dtype=np.uint16)
    if int(rows[:, -1].max()) >= classes:
        raise DataError(f"{what}: labels must be in 0…{classes - 1}, have up to {rows[:, -1].max()}")
    return rows
