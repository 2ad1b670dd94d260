"""The documentation says what is there: links, commands, files, examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.make_cli import PAGE, render
from node.cli import main
from node.poster.jobfile import JobFile
from protocol.runtime.config import load_config
from protocol.training.spec import parse_spec
from verifier.station import HomeConfig

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
EXAMPLE_DIGEST = "0" * 64


def commands_in(text: str) -> Iterator[list[str]]:
    """Every `gradmarket …` of the page, in a block or in a line, as its words."""
    blocks = [line for _, block in BLOCK.findall(text) for line in block.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    for line in [*blocks, *inline]:
        for found in re.findall(r"(?:^|[$({;|!]\s*|do\s)(gradmarket\s[^|&;>#)}]*)", line.strip()):
            yield shlex.split(re.sub(r"\$\((\w+)?", "x", found).replace("'", ""))


def check_command(words: list[str]) -> None:
    """Walk down the groups; options must belong to a command on the way."""
    command: click.Command = main
    known = set(main.params)
    for word in words[1:]:
        if word.startswith("--"):
            names = {name for param in known for name in param.opts}
            assert word.split("=")[0] in names or word == "--help", f"{' '.join(words)}: no option {word}"
        elif isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            known |= set(command.params)
        elif isinstance(command, click.Group) and command is not main:
            assert command.name == "demo", f"{' '.join(words)}: no command {word}"


@pytest.mark.parametrize("name", NAMES)
def test_every_link_inside_the_repository_resolves(name: str) -> None:
    page = ROOT / name
    targets = [t for t in LINK.findall(page.read_text()) if not t.startswith(("http://", "https://", "#"))]
    missing = [t for t in targets if not (page.parent / t.split("#")[0]).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """The names that a heading can be linked by."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_to_a_heading_resolves(name: str) -> None:
    page = ROOT / name
    targets = [t.split("#") for t in LINK.findall(page.read_text()) if "#" in t and not t.startswith("http")]
    missing = [t for t in targets if t[1] not in anchors(page.parent / t[0] if t[0] else page)]
    assert not missing


@pytest.mark.parametrize("name", NAMES)
def test_no_page_points_outside_the_repository(name: str) -> None:
    text = (ROOT / name).read_text()
    for target in LINK.findall(text):
        if not target.startswith(("http", "#")):
            assert ((ROOT / name).parent / target.split("#")[0]).resolve().is_relative_to(ROOT), target
    places = re.findall(r"(?<![\w.~}>/])/(?:work|home|tmp|opt|root|mnt|usr)/[\w./-]*", text)
    assert not places


@pytest.mark.parametrize("name", [name for name in NAMES if name != "docs/cli.md"])
def test_every_command_in_the_documentation_exists(name: str) -> None:
    for words in commands_in((ROOT / name).read_text()):
        check_command(words)


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    for text in ("`gradmarket job launch x`", "```\ngradmarket node run --gpu 1\n```", "`gradmarket demo --fast`"):
        with pytest.raises(AssertionError):
            for words in commands_in(text):
                check_command(words)


def test_the_page_of_commands_is_fresh() -> None:
    assert PAGE.read_text() == render(), "run `python -m docs.make_cli`"


def heredocs(text: str, name: str) -> Iterator[str]:
    """What a page writes into files that end in `name`."""
    yield from re.findall(rf"^cat > \S*{re.escape(name)} <<'?END'?\n(.*?)^END$", text, re.M | re.S)


@pytest.mark.parametrize("name", NAMES)
def test_every_example_file_is_accepted(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text()
    for example in heredocs(text, "spec.json"):
        parse_spec(re.sub(r"\$\(digest \w+\)", EXAMPLE_DIGEST, example))
    for number, (language, block) in enumerate(BLOCK.findall(text)):
        if language == "toml":
            (tmp_path / f"{number}.toml").write_text(block)
            load_config(tmp_path / f"{number}.toml", JobFile if "shards_per_round" in block else HomeConfig)
    for kind, file in ((HomeConfig, "config.toml"), (JobFile, "job.toml")):
        for number, example in enumerate(heredocs(text, file)):
            (tmp_path / f"{number}-{file}").write_text(example)
            load_config(tmp_path / f"{number}-{file}", kind)


@pytest.mark.parametrize("name", NAMES)
def test_every_test_that_a_page_names_exists(name: str) -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    sources += "\n".join(path.read_text() for path in (ROOT / "hardhat").glob("s??/*.sol"))
    named = re.findall(r"`(test\w*_[a-z]\w+)`", (ROOT / name).read_text())
    missing = [test for test in named if not re.search(rf"\b{test}\b", sources)]
    assert not missing


def test_the_layout_names_every_folder() -> None:
    tree = BLOCK.search((ROOT / "docs" / "layout.md").read_text())
    assert tree is not None
    for root in ("contracts", "protocol", "node", "verifier", "tests", "benchmarks"):
        folders = [path for path in (ROOT / root).iterdir() if path.is_dir() and path.name != "__pycache__"]
        missing = [str(path.relative_to(ROOT)) for path in folders if f"{path.name}/" not in tree.group(2)]
        assert not missing
