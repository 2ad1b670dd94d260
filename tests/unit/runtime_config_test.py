"""Configuration files: what is right is typed, what is wrong is one line that says where."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.runtime.config import Config, load_config
from protocol.runtime.errors import ConfigError


class Chain(Config):
    urls: list[str]
    confirmations: int = 12
    cap: float = 2.5


class Device(Config):
    name: str


class Node(Config):
    chain: Chain
    state: Path = Path("state")
    devices: tuple[Device, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    backup: Chain | None = None


GOOD = """
state = "data"
[chain]
urls = ["http://127.0.0.1:8545"]
[[devices]]
name = "gpu0"
[labels]
anything = "goes"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "node.toml").write_text(text)
    return folder / "node.toml"


def test_a_good_file_is_typed_and_its_paths_start_at_its_folder(tmp_path: Path) -> None:
    node = load_config(write(tmp_path, GOOD), Node)
    assert node.chain == Chain(urls=["http://127.0.0.1:8545"])
    assert node.state == tmp_path / "data"
    assert node.devices == (Device(name="gpu0"),)
    assert node.labels == {"anything": "goes"}


def test_a_path_may_start_at_home_or_at_the_root(tmp_path: Path) -> None:
    home = load_config(write(tmp_path, GOOD.replace('"data"', '"~/data"')), Node)
    assert home.state == Path.home() / "data"
    root = load_config(write(tmp_path, GOOD.replace('"data"', '"/srv/data"')), Node)
    assert root.state == Path("/srv/data")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("urls", "url"), r"unknown field chain\.url; did you mean urls\?"),
        (('name = "gpu0"', 'name = "gpu0"\ncolour = 1'), r"unknown field devices\[0\]\.colour; valid names: name"),
        (("state", "stat"), r"unknown field stat; did you mean state\?"),
        (('state = "data"', "[backup]\nurls = []\nconfirmation = 1"), r"unknown field backup\.confirmation; did you"),
        (('["http://127.0.0.1:8545"]', '"http://x"'), r"chain\.urls: Expected `array`, got `str`"),
        (("[chain]", "[chain]\nconfirmations = '6'"), r"chain\.confirmations: Expected `int`, got `str`"),
        (("[chain]", "[chain]\nconfirmations = true"), r"chain\.confirmations: Expected `int`, got `bool`"),
        (('state = "data"', "state = 5"), "state: Expected a path as a string, got int"),
        (('urls = ["http://127.0.0.1:8545"]', ""), "chain: Object missing required field `urls`"),
        (('state = "data"', "state ="), r"not TOML: Invalid value \(at line 2"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_field(tmp_path: Path, change: tuple[str, str], line: str) -> None:
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(ConfigError, match=line) as error:
        load_config(path, Node)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"node\.toml: cannot read the configuration: No such file"):
        load_config(tmp_path / "node.toml", Node)


def test_a_huge_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected at most 1048576"):
        load_config(write(tmp_path, "#" * (2**20 + 1)), Node)
    (tmp_path / "node.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match="not UTF-8 text at byte 5"):
        load_config(tmp_path / "node.toml", Node)


@given(text=st.text(max_size=300))
def test_any_text_is_refused_as_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError):
        load_config(path, Node)
