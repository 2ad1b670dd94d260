"""What the market is compared with: the same model, tokens and steps, trained by one device alone or by all in step.

Both baselines keep their AdamW moments from the first step to the last, as an ordinary run does.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from protocol.training.checkpoint import genesis_checkpoint
from protocol.training.data import Tokens, batch_order
from protocol.training.evaluate import validation_loss
from protocol.training.inner import Trainer
from protocol.training.outer import compute_outer_step
from protocol.training.spec import Spec

Curve = list[tuple[int, float]]  # (rounds done, validation loss)

_JOB = b"baseline"  # the batch order of a run that has no job on a chain


def all_reduce_curve(spec: Spec, rounds: Sequence[Sequence[Tokens]], validation: Tokens, lr: float) -> Curve:
    """All devices in step: each inner step averages the gradients of one batch of every shard of the round.

    rounds: for each round its shards, each [S, T+1]. Uses every token that the market uses.
    """
    batches = [[_batches(spec, tokens, r, s) for s, tokens in enumerate(shards)] for r, shards in enumerate(rounds)]
    steps = [[np.concatenate(parts) for parts in zip(*shards, strict=True)] for shards in batches]
    return _continuous(spec, steps, validation, lr)


def alone_curve(spec: Spec, rounds: Sequence[Sequence[Tokens]], validation: Tokens, lr: float) -> Curve:
    """One device for the same time: the first shard of every round, hence a share of the tokens."""
    return _continuous(spec, [_batches(spec, shards[0], r, 0) for r, shards in enumerate(rounds)], validation, lr)


def market_curve(spec: Spec, rounds: Sequence[Sequence[Tokens]], validation: Tokens) -> Curve:
    """The market's own claims and outer steps without the chain: what the sweep tunes."""
    trainer, checkpoint = Trainer(spec), genesis_checkpoint(spec)
    curve = [(0, validation_loss(spec, checkpoint, validation, trainer))]
    for number, shards in enumerate(rounds):
        payloads = [
            (s, trainer.train(checkpoint, tokens, job_id=_JOB, round=number, shard=s).payload)
            for s, tokens in enumerate(shards)
        ]
        checkpoint = compute_outer_step(spec, checkpoint, payloads)
        curve.append((number + 1, validation_loss(spec, checkpoint, validation, trainer)))
    return curve


def _continuous(spec: Spec, rounds: Sequence[Sequence[Tokens]], validation: Tokens, lr: float) -> Curve:
    """One AdamW run over all rounds. rounds: for each round its steps, each [B, T+1]."""
    trainer = Trainer(msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, lr=lr)))
    trainer.load(genesis_checkpoint(spec))
    curve, step = [(0, trainer.validation_loss(validation))], 0
    for number, steps in enumerate(rounds, start=1):
        for sequences in steps:
            step += 1
            trainer.step(sequences, step)
        curve.append((number, trainer.validation_loss(validation)))
    return curve


def _batches(spec: Spec, tokens: Tokens, round: int, shard: int) -> list[Tokens]:
    order = batch_order(_JOB, round, shard, len(tokens), spec.inner.steps, spec.inner.batch)
    return [tokens[batch] for batch in order]
