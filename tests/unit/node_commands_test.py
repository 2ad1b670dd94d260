"""Commands of an owner that must not half-happen, and a status that must not lie."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from node.cli import main
from node.commands.node import read_expiry
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


def test_a_home_without_keys_says_how_to_make_one(home: Path, tmp_path: Path) -> None:
    empty = run(tmp_path / "new", "wallet", "show")
    assert empty.exit_code == 0 and empty.stdout == "", "scripts read the keys from there"
    (line,) = empty.stderr.splitlines()
    assert line == f"no keys in {tmp_path / 'new' / 'keys'}: make one with `gradmarket wallet new owner`"
    full = run(home, "wallet", "show")
    assert full.stdout.startswith("owner ") and full.stderr == ""


def test_a_remedy_is_shown_with_its_last_moment(home: Path) -> None:
    command = "gradmarket node appeal ab"
    remedy = {"about": "shard 0", "command": command, "until": 1_900_012_000, "bond": str(7 * 10**18)}
    status = {"operator": "0xabc", "block": 7, "turns": 3, "doing": [], "idle": "", "failures": {}}
    data = msgspec.json.encode({**status, "block_time": 1_900_000_000, "remedies": [remedy]})
    (home / "status.json").write_bytes(data)
    with lock_folder(home / "state"):
        shown = run(home, "node", "status").stdout
    assert f"`{command}` by 2030-03-17 21:06:40 UTC, in 3 h 20 min, bond 7" in shown


def test_a_dead_node_is_not_shown_as_alive(home: Path) -> None:
    status = {"operator": "0xabc", "block": 7, "turns": 3, "doing": [], "idle": "", "failures": {}}
    (home / "status.json").write_bytes(msgspec.json.encode(status))
    dead = run(home, "node", "status")
    assert dead.exit_code == 1 and "no node runs in" in dead.stderr
    with lock_folder(home / "state"):
        alive = run(home, "node", "status")
    assert alive.exit_code == 0 and "doing: nothing" in alive.stdout


@pytest.mark.parametrize("text", ["soon", "2030-13-01", "0", "1969-01-01", ""])
def test_an_end_that_is_no_time_is_refused(home: Path, text: str) -> None:
    done = run(home, "node", "init", "--expires", text)
    assert done.exit_code == 2 and "expected a" in done.stderr


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2030-06-30", 1909094399),
        ("2030-06-30T12:00:00", 1909051200),
        ("2030-06-30T14:00:00+02:00", 1909051200),
        ("never", 2**64 - 1),
    ],
)
def test_a_day_counts_until_its_last_second_and_times_are_utc(text: str, second: int) -> None:
    assert read_expiry(click.Context(main), main.params[0], text) == second
