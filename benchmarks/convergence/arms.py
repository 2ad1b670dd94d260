"""The arms: each is a spec and a way to run it. Every arm sees the same tokens and makes the same inner steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.convergence.text import SEQUENCE, VOCAB
from protocol.training.compress import max_payload_bytes
from protocol.training.families import LlamaSpec
from protocol.training.layout import parameter_count
from protocol.training.spec import (
    DataSpec,
    EncodingSpec,
    InnerSpec,
    MomentsSpec,
    OuterSpec,
    RateSpec,
    Spec,
    VerifySpec,
    encode_spec,
    parse_spec,
)

WORKERS, BATCH = 4, 8  # sequences of a worker's step: 1,024 tokens, 4,096 of all workers
STEP_TOKENS = WORKERS * BATCH * SEQUENCE
Kind = Literal["alone", "all-reduce", "market"]
_NOTHING = "0" * 64


@dataclass(frozen=True)
class Arm:
    """`lr`: 0 until the sweep has found it. `steps` is H; `update` and `first` are encodings (block 4096), `first` ""
    for moments that begin at zero.
    """

    name: str
    kind: Kind
    optimizer: str
    lr: float
    steps: int = 1
    update: str = "fp32"
    first: str = ""
    outer_lr: float = 1.0
    outer_momentum: float = 0.0

    def spec(self, total_steps: int, genesis: int) -> Spec:
        """`total_steps`: inner steps of a worker over the whole run. Rate: 5 % linear warm-up, then a cosine to 0."""
        moments = MomentsSpec(first=EncodingSpec(compressor=self.first, block=4096)) if self.first else None  # type: ignore[arg-type]
        spec = Spec(
            name="convergence",
            model=LlamaSpec(vocab=VOCAB, width=128, layers=4, heads=4, kv_heads=4, feed_forward=344),
            tokenizer=_NOTHING,
            data=DataSpec(manifest=_NOTHING, validation=_NOTHING),
            inner=InnerSpec(
                optimizer=self.optimizer,  # type: ignore[arg-type]
                lr=self.lr,
                rate=RateSpec(warmup=max(1, total_steps // 20), decay="cosine", steps=total_steps),
                moments=moments,
                steps=self.steps,
                batch=BATCH,
                micro_batch=BATCH,
                sequence=SEQUENCE,
            ),
            outer=OuterSpec(lr=self.outer_lr, momentum=self.outer_momentum),
            exchange=EncodingSpec(compressor=self.update, block=4096),  # type: ignore[arg-type]
            verify=VerifySpec(tolerance_class="fp32", state_every=self.steps),
            genesis=genesis,
        )
        return parse_spec(encode_spec(spec))  # every rule of a job's spec

    def at(self, lr: float) -> Arm:
        return replace(self, lr=lr)

    def reduction(self) -> tuple[float, float]:
        """(R_up, R_total): fp32 gradients at each step, sent once, over what a worker sends; and over what it sends
        and fetches, where all-reduce counts both directions too.
        """
        spec = self.spec(1000, 0)
        dense = 4 * parameter_count(spec) * self.steps
        sent = max_payload_bytes(spec)
        return dense / sent, 2 * dense / (sent * WORKERS)


ALONE = Arm("alone", "alone", "adamw", 0.0)
ALL_REDUCE = Arm("all-reduce AdamW", "all-reduce", "adamw", 0.0)
MUON_TOGETHER = Arm("all-reduce Muon", "all-reduce", "muon", 0.0)
ARMS: tuple[Arm, ...] = (
    ALONE,
    ALL_REDUCE,
    Arm("Muon H36 sign", "market", "muon", 0.0, steps=36, update="sign"),
    Arm("Muon H126 sign", "market", "muon", 0.0, steps=126, update="sign"),
    Arm("Muon H126 fp32", "market", "muon", 0.0, steps=126, update="fp32"),
    Arm("Muon H36 fp32", "market", "muon", 0.0, steps=36, update="fp32"),
    MUON_TOGETHER,
    Arm("DiLoCo AdamW H36 fp32", "market", "adamw", 0.0, steps=36, update="fp32", first="fp32"),
    Arm("Muon H36 fp16", "market", "muon", 0.0, steps=36, update="fp16"),
)
SMALL_ARMS = (ALONE, ALL_REDUCE, Arm("Muon H8 sign", "market", "muon", 0.0, steps=8, update="sign"))
