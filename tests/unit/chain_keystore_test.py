"""Keys at rest."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from eth_account import Account

from protocol.chain.errors import KeystoreError, WrongPassword
from protocol.chain.keystore import create_key, import_key, load_key, read_address, read_password

FAST = 2**10  # scrypt iterations: these keys guard nothing


def test_a_key_comes_back_with_its_password_and_is_private_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "operator.json"
    address = create_key(path, "correct horse", FAST)
    assert load_key(path, "correct horse").address == address == read_address(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["operator.json"]


def test_an_existing_key_is_imported(tmp_path: Path) -> None:
    account = Account.create()
    assert import_key(tmp_path / "k.json", bytes(account.key), "pw", FAST) == account.address
    assert load_key(tmp_path / "k.json", "pw").key == account.key
    assert bytes(account.key).hex() not in (tmp_path / "k.json").read_text()


def test_a_wrong_password_is_one_line(tmp_path: Path) -> None:
    create_key(tmp_path / "k.json", "right", FAST)
    with pytest.raises(WrongPassword, match=r"k\.json: wrong password$"):
        load_key(tmp_path / "k.json", "wrong")


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    address = create_key(tmp_path / "k.json", "pw", FAST)
    with pytest.raises(KeystoreError, match="exists already"):
        create_key(tmp_path / "k.json", "pw", FAST)
    assert load_key(tmp_path / "k.json", "pw").address == address


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"version": 3, "address": "00"}', '{"crypto": 1}'])
def test_what_is_no_keystore_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(KeystoreError, match=r"key file .*k\.json: "):
        load_key(tmp_path / "k.json", "pw")


def test_a_missing_key_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeystoreError, match="No such file"):
        load_key(tmp_path / "none.json", "pw")


def test_an_empty_password_and_a_false_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeystoreError, match="empty password"):
        create_key(tmp_path / "k.json", "", FAST)
    with pytest.raises(KeystoreError, match="secp256k1"):
        import_key(tmp_path / "k.json", b"\0" * 32, "pw", FAST)


def test_a_password_file_must_be_private(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("se cret\n")
    file.chmod(0o640)
    with pytest.raises(KeystoreError, match=r"mode 0640 lets others read it; run: chmod 600"):
        read_password(file)
    file.chmod(0o600)
    assert read_password(file) == "se cret"
