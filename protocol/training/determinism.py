"""The name of the class of machines whose runs agree to the bit, and the self-test that proves membership."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

import numpy as np
import torch

from protocol.training.checkpoint import genesis_checkpoint
from protocol.training.documents import canonical_json
from protocol.training.inner import Trainer
from protocol.training.spec import parse_spec

_SPEC = """{"name": "self test", "genesis": 1,
 "tokenizer": "%(z)s", "data": {"manifest": "%(z)s", "validation": "%(z)s"},
 "model": {"vocab": 64, "width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "feed_forward": 48},
 "inner": {"lr": 0.01, "steps": 3, "batch": 4, "micro_batch": 2, "sequence": 16},
 "outer": {"lr": 1.0, "momentum": 0.5}, "exchange": {"compressor": "int8"},
 "verify": {"tolerance_class": "%(precision)s", "state_every": 1}}"""


def determinism_class(precision: str = "fp32", device: str = "cpu") -> str:
    """sha256 hex over software, device family, precision and switches: equal bits are expected within one class."""
    digest = self_test_digest(precision, device)  # first: it sets the switches that are read below
    facts = {
        "torch": str(torch.__version__),
        "family": device_family(device),
        "precision": precision,
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "self_test": digest,
    }
    return hashlib.sha256(canonical_json(facts)).hexdigest()


def self_test_digest(precision: str = "fp32", device: str = "cpu") -> str:
    """End-state digest (sha256 hex) of a fixed claim of three inner steps on a model of a few thousand weights."""
    spec = parse_spec(_SPEC % {"z": "0" * 64, "precision": precision})
    tokens = (np.arange(8 * 17, dtype=np.int32) * 29 % 64).reshape(8, 17)
    trainer = Trainer(spec, device)
    return trainer.train(genesis_checkpoint(spec), tokens, job_id=b"self test", round=0, shard=0).state_digest


def device_family(device: str = "cpu") -> str:
    """Hardware and kernels whose bits agree: a CPU's maker and instruction set, a GPU's model and capability."""
    if torch.device(device).type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        return f"{torch.cuda.get_device_name(device)} sm_{major}{minor} cuda {torch.version.cuda}"
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()} {_cpu_maker()}".strip()


def _cpu_maker() -> str:
    """The maker's name decides which kernels MKL picks. Empty where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "")
