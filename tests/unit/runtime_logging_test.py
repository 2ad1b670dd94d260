"""Logs: JSON lines in a file, readable lines on the console, secrets nowhere."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from protocol.runtime.logging import HIDDEN, configure_logging


@pytest.fixture(autouse=True)
def _quiet_again() -> Iterator[None]:
    yield
    configure_logging(None, console=False)
    structlog.reset_defaults()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_is_a_json_line_and_a_console_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(tmp_path / "logs" / "node.jsonl")
    structlog.get_logger("operator").info("commitment_posted", job=7, shard=3)
    (line,) = lines(tmp_path / "logs" / "node.jsonl")
    assert (line["event"], line["job"], line["shard"]) == ("commitment_posted", 7, 3)
    assert (line["level"], line["logger"]) == ("info", "operator")
    assert line["timestamp"].endswith("Z")
    assert "commitment_posted" in capsys.readouterr().err


def test_a_secret_is_hidden_at_any_depth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(tmp_path / "log")
    secrets = {"private_key": "hunter2", "Password": "hunter2", "client_secret": "hunter2", "mnemonic": "hunter2"}
    secrets["api_token"] = "hunter2"
    structlog.get_logger().info("started", **secrets, config={"keys": ["hunter2"], "list": [{"apiKey": "hunter2"}]})
    logging.getLogger("some.library").warning("plain", extra={"password": "hunter2"})
    text = (tmp_path / "log").read_text() + capsys.readouterr().err
    assert "hunter2" not in text
    assert HIDDEN in text


def test_ordinary_names_stay_readable(tmp_path: Path) -> None:
    configure_logging(tmp_path / "log", console=False)
    structlog.get_logger().info(
        "trained", tokens=8192, tokenizer="ab", digest="ab" * 32, action="train:7:3", path=Path("/x")
    )
    (line,) = lines(tmp_path / "log")
    assert (line["tokens"], line["tokenizer"], line["action"], line["path"]) == (8192, "ab", "train:7:3", "/x")


def test_a_traceback_stays_inside_its_line(tmp_path: Path) -> None:
    configure_logging(tmp_path / "log", console=False)
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        structlog.get_logger().warning("action_failed", exc_info=error)
    (line,) = lines(tmp_path / "log")
    assert "ValueError: two" in line["exception"]


def test_configuring_again_replaces_and_the_level_holds(tmp_path: Path) -> None:
    configure_logging(tmp_path / "first", console=False)
    configure_logging(tmp_path / "second", console=False, level="warning")
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    logging.getLogger("aiohttp.server").info("noise")
    assert (tmp_path / "first").read_text() == ""
    assert [line["event"] for line in lines(tmp_path / "second")] == ["loud"]
