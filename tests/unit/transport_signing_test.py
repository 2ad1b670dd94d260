"""Signed requests: what is covered, what expires, what is used once."""

import hashlib
import hmac
from dataclasses import replace

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import given
from hypothesis import strategies as st

from protocol.transport.errors import RequestRefused
from protocol.transport.signing import (
    EXPIRES,
    NONCE,
    SIGNATURE,
    SIGNER,
    NonceTable,
    Request,
    RequestSigner,
    RequestVerifier,
)

ACCOUNT = Account.from_key(hashlib.sha256(b"a test key").digest())
STRANGER = Account.from_key(hashlib.sha256(b"another test key").digest())
REQUEST = Request("POST", "peer.example:7000", "/seal?job=7", b'{"shard": 3}')
NOW = 1_800_000_000


def sign(digest: bytes) -> bytes:
    return bytes(ACCOUNT.sign_message(encode_defunct(digest)).signature)


def recover(digest: bytes, signature: bytes) -> str:
    return str(Account.recover_message(encode_defunct(digest), signature=signature))


def signer(now: float = NOW) -> RequestSigner:
    return RequestSigner(ACCOUNT.address, sign, clock=lambda: now)


def verifier(now: float = NOW) -> RequestVerifier:
    return RequestVerifier(recover, {"peer.example:7000"}, clock=lambda: now)


def test_a_signed_request_tells_its_signer() -> None:
    assert verifier().check(REQUEST, signer().headers(REQUEST)) == ACCOUNT.address.lower()


@pytest.mark.parametrize(
    "changed",
    [
        replace(REQUEST, method="GET"),
        replace(REQUEST, path="/seal?job=8"),
        replace(REQUEST, body=b'{"shard": 4}'),
    ],
)
def test_a_change_of_any_covered_part_is_refused(changed: Request) -> None:
    with pytest.raises(RequestRefused, match="not by"):
        verifier().check(changed, signer().headers(REQUEST))


@pytest.mark.parametrize(
    ("header", "value"),
    [(SIGNER, STRANGER.address), (EXPIRES, str(NOW + 61)), (NONCE, "0" * 32), (SIGNATURE, "00" * 65)],
)
def test_a_change_of_any_header_is_refused(header: str, value: str) -> None:
    with pytest.raises(RequestRefused, match="not by"):
        verifier().check(REQUEST, {**signer().headers(REQUEST), header: value})


def test_a_request_for_another_server_is_refused() -> None:
    elsewhere = replace(REQUEST, server="other.example:7000")
    with pytest.raises(RequestRefused, match="is for other"):
        verifier().check(elsewhere, signer().headers(elsewhere))


def test_a_request_is_good_once() -> None:
    server, headers = verifier(), signer().headers(REQUEST)
    server.check(REQUEST, headers)
    with pytest.raises(RequestRefused, match="used before"):
        server.check(REQUEST, headers)


@pytest.mark.parametrize(("later", "accepted"), [(0, True), (60, True), (90, True), (91, False), (10_000, False)])
def test_a_request_expires_after_its_life_and_the_tolerance(later: int, accepted: bool) -> None:
    headers = signer().headers(REQUEST)
    if accepted:
        verifier(NOW + later).check(REQUEST, headers)
    else:
        with pytest.raises(RequestRefused, match="expired"):
            verifier(NOW + later).check(REQUEST, headers)


def test_a_request_that_would_live_for_years_is_refused() -> None:
    with pytest.raises(RequestRefused, match="at most 300 s"):
        verifier().check(REQUEST, replace(signer(), life=10**8).headers(REQUEST))


def test_a_stranger_is_refused_before_a_nonce_is_stored() -> None:
    server = replace(verifier(), is_known=lambda address: False)
    for _ in range(2):
        with pytest.raises(RequestRefused, match="not known"):
            server.check(REQUEST, signer().headers(REQUEST))


def test_a_full_nonce_table_refuses_rather_than_forgets() -> None:
    table = NonceTable(limit=2)
    assert table.use("a", "1", expires=10, now=0)
    assert table.use("a", "2", expires=20, now=0)
    assert not table.use("a", "3", expires=20, now=0)
    assert not table.use("a", "1", expires=20, now=5)
    assert table.use("a", "3", expires=20, now=11)  # "1" expired and made room


@given(st.dictionaries(st.sampled_from([SIGNER, EXPIRES, NONCE, SIGNATURE]), st.text(max_size=200)))
def test_any_header_text_is_refused_in_one_way(headers: dict[str, str]) -> None:
    with pytest.raises(RequestRefused):
        verifier().check(REQUEST, headers)


def test_the_signed_digest_is_the_one_in_the_spec() -> None:
    text = "\n".join(
        [
            "gradmarket-request-v1",
            "POST",
            "peer.example:7000",
            "/seal?job=7",
            hashlib.sha256(b'{"shard": 3}').hexdigest(),
            "1800000060",
            "00" * 16,
            ACCOUNT.address.lower(),
        ]
    )
    digest = REQUEST.digest(ACCOUNT.address, NOW + 60, "00" * 16)
    assert hmac.compare_digest(digest, hashlib.sha256(text.encode()).digest())
