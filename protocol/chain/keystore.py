"""Keys at rest: keystore v3 files, opened once at start. Passwords come from a private file or a prompt, only."""

from __future__ import annotations

import getpass
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import AsyncWeb3

from protocol.chain.errors import KeystoreError, WrongPassword

SCRYPT_ITERATIONS = 2**18  # 0.6 s and 256 MiB for every guess; tests pass less
MAX_KEYSTORE_BYTES = 2**16


def create_key(path: Path, password: str, iterations: int = SCRYPT_ITERATIONS) -> str:
    """Make a new key, write it encrypted to `path` (mode 0600) and return its address."""
    account: LocalAccount = Account.create()
    return import_key(path, bytes(account.key), password, iterations)


def import_key(path: Path, private_key: bytes, password: str, iterations: int = SCRYPT_ITERATIONS) -> str:
    """Write an existing 32-byte key encrypted to `path`. An existing file is never overwritten."""
    if not password:
        raise KeystoreError(f"key file {path}: an empty password protects nothing; choose one")
    try:
        account: LocalAccount = Account.from_key(private_key)
    except (ValueError, TypeError):
        raise KeystoreError("the private key is no 32-byte number of the curve secp256k1") from None
    document: Any = Account.encrypt(private_key, password, kdf="scrypt", iterations=iterations)
    document["address"] = account.address[2:].lower()
    _write_private(path, msgspec.json.encode(document))
    return str(account.address)


def load_key(path: Path, password: str) -> LocalAccount:
    """Decrypt a key file. Raises WrongPassword or KeystoreError."""
    document = _read_document(path)
    try:
        key = Account.decrypt(document, password)
    except (ValueError, KeyError, TypeError, NotImplementedError) as error:
        if "MAC mismatch" in str(error):
            raise WrongPassword(f"key file {path}: wrong password") from None
        raise KeystoreError(f"key file {path}: no keystore of version 3 ({error})") from None
    account: LocalAccount = Account.from_key(key)
    return account


def read_address(path: Path) -> str:
    """The address that a key file names, without its password; the file could lie, load_key cannot."""
    try:
        return str(AsyncWeb3.to_checksum_address("0x" + str(_read_document(path)["address"]).removeprefix("0x")))
    except (KeyError, ValueError, TypeError):
        raise KeystoreError(f"key file {path}: it names no address") from None


def read_password(file: Path | None, prompt: str = "Password: ") -> str:
    """From a file that only its owner can read (its one trailing newline is dropped), or from a prompt."""
    if file is None:
        return getpass.getpass(prompt)
    try:
        mode = file.stat().st_mode
        text = file.read_text("utf-8")
    except OSError as error:
        raise KeystoreError(f"password file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeystoreError(f"password file {file}: not UTF-8 text") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeystoreError(
            f"password file {file}: mode {stat.S_IMODE(mode):04o} lets others read it; run: chmod 600 {file}"
        )
    return text.removesuffix("\n").removesuffix("\r")


def _read_document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEYSTORE_BYTES + 1)
    except OSError as error:
        raise KeystoreError(f"key file {path}: {error.strerror}") from None
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise KeystoreError(f"key file {path}: not JSON; expected a keystore of version 3") from None
    if not isinstance(document, dict):
        raise KeystoreError(f"key file {path}: expected a keystore of version 3")
    return document


def _write_private(path: Path, data: bytes) -> None:
    """Create `path` with mode 0600 from its first byte on; it is whole or absent after a crash."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(scratch, path)  # refuses an existing target, unlike rename
        finally:
            scratch.unlink()
    except FileExistsError:
        raise KeystoreError(f"key file {path} exists already; it is never overwritten") from None
    except OSError as error:
        raise KeystoreError(f"key file {path}: {error.strerror}") from None
