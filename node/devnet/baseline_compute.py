"""The demo's own compute process: the two baselines, and a sample of the finished model."""

from __future__ import annotations

from pathlib import Path

from node.devnet.baselines import Curve, all_reduce_curve, alone_curve
from node.devnet.demo_spec import ALL_REDUCE_LR, ALONE_LR
from protocol.runtime.child import serve
from protocol.training.data import Tokens, decode_manifest, load_shard, load_validation, shard_digest
from protocol.training.spec import Spec, decode_spec

Inputs = tuple[Spec, list[list[Tokens]], Tokens]


def all_reduce(spec: str, blobs: str, rounds: int, shards: int) -> Curve:
    """Every device in step over all shards of all rounds."""
    return all_reduce_curve(*_load(spec, blobs, rounds, shards), ALL_REDUCE_LR)


def alone(spec: str, blobs: str, rounds: int, shards: int) -> Curve:
    """One device for the same number of steps, on one shard a round."""
    return alone_curve(*_load(spec, blobs, rounds, shards), ALONE_LR)


def write_text(model: str, prompt: str, count: int) -> str:
    """Text from a Hugging Face folder, with transformers alone: nothing of this project is needed to use the model."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model)
    ids = tokenizer(prompt, return_tensors="pt")
    made = network.generate(
        **ids, max_new_tokens=count, do_sample=True, top_k=40, temperature=0.8, pad_token_id=tokenizer.eos_token_id
    )
    return str(tokenizer.decode(made[0]))


def _load(spec: str, blobs: str, rounds: int, shards: int) -> Inputs:
    folder = Path(blobs)
    job = decode_spec((folder / spec).read_bytes())
    manifest = decode_manifest((folder / job.data.manifest).read_bytes())
    tokens = [
        [load_shard((folder / shard_digest(manifest, r, s, shards)).read_bytes(), manifest) for s in range(shards)]
        for r in range(rounds)
    ]
    return job, tokens, load_validation((folder / manifest.validation).read_bytes(), manifest)


if __name__ == "__main__":
    serve({"all_reduce": all_reduce, "alone": alone, "write_text": write_text})
