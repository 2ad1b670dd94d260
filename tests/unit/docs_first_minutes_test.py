"""The README's first five minutes, as they stand there."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
PORTS = (8545, 7790)  # the README's
START = "set -eu\ntrap 'kill $(jobs -p); wait' EXIT\n"  # what runs in the background would hold the pipes open
CHECK = "gradmarket --home vera verifier check $job 0 0\n"


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@pytest.fixture
def devnet(tmp_path: Path, environment: dict[str, str]) -> Iterator[None]:
    if not all(is_free(port) for port in PORTS):
        pytest.skip(f"the ports {PORTS} of the README are in use")
    process = subprocess.Popen(["gradmarket", "devnet", "up"], cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "devnet" / "deployment.json").exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


@pytest.mark.slow
@pytest.mark.usefixtures("devnet")
def test_the_first_five_minutes_go_as_the_readme_says(tmp_path: Path, environment: dict[str, str]) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", README.read_text(), re.M | re.S)
    assert len(blocks) == 4
    done = subprocess.run(
        ["bash", "-c", START + "".join(blocks) + CHECK],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    (tmp_path / "output").write_text(done.stdout + done.stderr)
    assert "no new claim" in done.stdout, done.stderr[-2000:]
    assert "verdict: match" in done.stdout and "job is closed at checkpoint 3" in done.stdout, done.stderr[-2000:]
    assert (tmp_path / "model" / "model.safetensors").exists()
