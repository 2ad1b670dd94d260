"""From images and their labels to a manifest, its shards and a validation split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocol.training import seeds
from protocol.training.data import encode_manifest
from protocol.training.errors import DataError
from protocol.training.images import ImageManifest, Labels, Pixels, encode_images
from protocol.training.pack.folder import put_blob

_HELD_OUT = 0.05  # share of the images that is never trained


@dataclass(frozen=True)
class ImagePack:
    """Where the pack of images lies (`out_dir`/sha256) and what names it."""

    manifest: ImageManifest
    manifest_digest: str
    out_dir: Path


def pack_images(
    pixels: Pixels,
    labels: Labels,
    out_dir: Path,
    *,
    classes: int,
    shard_images: int,
    seed: int = 0,
    max_shards: int | None = None,
) -> ImagePack:
    """Shuffle images [S, C, H, H] and labels [S] by `seed`, hold out the first 5 %, cut the rest into equal shards.

    Same images, same arguments, same bytes. Raises DataError for other shapes, unknown labels, or too few images.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[2] != pixels.shape[3]:
        raise DataError(f"pack: expected square images [S, C, H, H] of bytes, have {pixels.dtype} {pixels.shape}")
    if labels.shape != (len(pixels),) or not np.isin(labels, np.arange(classes)).all():
        raise DataError(f"pack: expected a label in 0…{classes - 1} for each of {len(pixels)} images")
    order = seeds.order(b"gradmarket/pack\0" + seed.to_bytes(8, "big"), len(pixels))
    held, rest = np.split(order, [max(1, int(len(order) * _HELD_OUT))])
    count = min(len(rest) // shard_images, max_shards or len(rest))
    if not count:
        raise DataError(f"pack: {len(rest)} images to train, a shard needs {shard_images}; give more or smaller shards")
    shards = rest[: count * shard_images].reshape(count, shard_images)
    manifest = ImageManifest(
        channels=pixels.shape[1],
        size=pixels.shape[2],
        classes=classes,
        shard_images=shard_images,
        shards=tuple(put_blob(out_dir, encode_images(pixels[shard], labels[shard])) for shard in shards),
        validation=put_blob(out_dir, encode_images(pixels[held], labels[held])),
        validation_images=len(held),
    )
    return ImagePack(manifest, put_blob(out_dir, encode_manifest(manifest)), out_dir)
