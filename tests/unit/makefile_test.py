"""`make demo` says what it does before each step that takes long."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("-m venv", "pip install -q -c", "npm ci", "gradmarket demo")


def test_every_slow_step_is_announced_with_the_time_it_takes(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints/cpu.txt", "hardhat/package-lock.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    done = subprocess.run(["make", "-n", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for command in SLOW:
        number = next(i for i, line in enumerate(lines) if command in line and not line.startswith("echo"))
        assert lines[number - 1].startswith("echo ") and ("min" in lines[number - 1] or " s" in lines[number - 1])
