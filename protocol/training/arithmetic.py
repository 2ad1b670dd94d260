"""The switches of this process that change how torch rounds."""

from __future__ import annotations

import os

import torch


def prepare_process(threads: int = 1) -> None:
    """Make a run repeatable to the bit on this machine. Call before the first tensor is made; idempotent.

    One thread: a matrix product split over two has other bits, and a shared CPU gains nothing from spinning threads.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with a fixed workspace
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(False)
    torch.set_float32_matmul_precision("highest")  # no TF32 in the fp32 class
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
