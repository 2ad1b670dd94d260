"""The demo's job: a Llama of 0.9 million parameters on Shakespeare, 36 claims of about a second of one CPU core each.

Learning rates come from benchmarks/convergence/sweep.py; all arms of the demo were tuned there alike.
"""

from __future__ import annotations

from pathlib import Path

from protocol.training.data import TokenManifest
from protocol.training.families import LlamaSpec
from protocol.training.pack import PackResult, pack_text
from protocol.training.spec import (
    DataSpec,
    EncodingSpec,
    InnerSpec,
    OuterSpec,
    Spec,
    Tolerances,
    VerifySpec,
)

ROUNDS = 6
SHARDS_PER_ROUND = 6
VOCAB = 1024
SEQUENCE = 128
SHARD_SEQUENCES = 64  # 8192 tokens a claim
VALIDATION_SEQUENCES = 192  # 24,576 tokens: a measurement costs less than a claim

# Honest runs on other instruction sets lie up to 9e-5 (T1) and 2.3e-6 (T2) apart, cheats at least 1.4e-2 and 3e-4
# (benchmarks/convergence/zones.py). The protocol's table would leave T2 a factor of two: both accept zones are wider.
TOLERANCES = Tolerances(t1_accept=1e-3, t1_reject=5e-3, t2_accept=2e-5, t2_reject=5e-4)

ALL_REDUCE_LR = 3e-3
ALONE_LR = 2e-3


def pack_demo(paths: list[Path], out_dir: Path, *, seed: int = 0, spare_shards: int = 0) -> PackResult:
    """The demo's shards, and `spare_shards` after them that no claim trains."""
    return pack_text(
        paths,
        out_dir,
        vocab=VOCAB,
        sequence=SEQUENCE,
        shard_sequences=SHARD_SEQUENCES,
        seed=seed,
        max_shards=ROUNDS * SHARDS_PER_ROUND + spare_shards,
        max_validation=VALIDATION_SEQUENCES,
    )


def demo_spec(manifest_digest: str, manifest: TokenManifest, *, name: str = "demo", genesis: int = 0) -> Spec:
    """`genesis`: the seed of the first weights."""
    return Spec(
        name=name,
        model=LlamaSpec(vocab=VOCAB, width=128, layers=4, heads=4, kv_heads=4, feed_forward=344),
        tokenizer=manifest.tokenizer,
        data=DataSpec(manifest=manifest_digest, validation=manifest.validation),
        inner=InnerSpec(lr=4.5e-3, warmup_steps=8, beta1=0.8, steps=16, batch=4, micro_batch=4, sequence=SEQUENCE),
        outer=OuterSpec(lr=0.8, momentum=0.2),
        exchange=EncodingSpec(compressor="int4", block=256),
        verify=VerifySpec(tolerance_class="fp32", state_every=4, tolerances=TOLERANCES),
        genesis=genesis,
    )
