"""Commands of an owner that must not half-happen, and a status that must not lie."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from node.cli import main
from protocol.chain.keystore import create_key
from protocol.store.lock import lock_folder


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *arguments])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Keys under one password, and a password file with another."""
    create_key(tmp_path / "keys" / "owner.json", "right", iterations=2)
    (tmp_path / "password").touch(0o600)
    (tmp_path / "password").write_text("wrong\n")
    (tmp_path / "config.toml").write_text(
        '[chain]\nrpc = ["http://127.0.0.1:1"]\nid = 1\ndeployment = "d.json"\n'
        '[keys]\nowner = "keys/owner.json"\npassword = "password"\n'
    )
    return tmp_path


def test_a_failed_leave_leaves_nothing_behind(home: Path) -> None:
    done = run(home, "node", "leave")
    assert done.exit_code == 4 and "wrong password" in done.stderr
    assert not (home / "drain").exists()


@pytest.mark.parametrize("name", ["../../evil", "a/b", "", ".hidden"])
def test_a_key_lies_in_the_home_and_nowhere_else(home: Path, name: str) -> None:
    (home / "new").touch(0o600)
    (home / "new").write_text("secret\n")
    done = run(home, "wallet", "new", name, "--password-file", str(home / "new"), "--fast-key")
    assert done.exit_code == 2 and "NAME" in done.stderr
    assert [path.name for path in home.rglob("*.json")] == ["owner.json"]


def test_a_dead_node_is_not_shown_as_alive(home: Path) -> None:
    status = {"operator": "0xabc", "block": 7, "turns": 3, "doing": [], "idle": "", "failures": {}}
    (home / "status.json").write_bytes(msgspec.json.encode(status))
    dead = run(home, "node", "status")
    assert dead.exit_code == 1 and "no node runs in" in dead.stderr
    with lock_folder(home / "state"):
        alive = run(home, "node", "status")
    assert alive.exit_code == 0 and "doing: nothing" in alive.stdout
