"""attack: JSON nested a hundred thousand times · gain: every auditor that asks for the trace dies · defence: the
recursion limit at which the interpreter raises, restored after a library raised it."""

from __future__ import annotations

import subprocess
import sys

import pytest

NESTED = "b'[' * 100_000"


@pytest.mark.parametrize("module", ["protocol.chain", "node.cli", "verifier.cli", "node.operator.service"])
def test_nesting_raises_in_a_process_that_loaded_the_chain(module: str) -> None:
    code = f"import json, {module}\ntry: json.loads({NESTED})\nexcept RecursionError: print('raised')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "raised"), done.stderr[-500:]
