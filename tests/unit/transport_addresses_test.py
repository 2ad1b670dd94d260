"""Which addresses a peer's URL may lead to."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from protocol.transport.addresses import LOCAL, PUBLIC, AddressPolicy, PolicyResolver
from protocol.transport.errors import AddressRefused

PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:127.0.0.1"]
NEVER = [
    "169.254.169.254",
    "169.254.0.1",
    "fd00:ec2::254",
    "100.100.100.200",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "fe80::1%eth0",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
]


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
@pytest.mark.parametrize("policy", [PUBLIC, LOCAL])
def test_a_public_address_is_allowed(policy: AddressPolicy, address: str) -> None:
    assert policy.allows(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_needs_the_local_policy(address: str) -> None:
    assert not PUBLIC.allows(address)
    assert LOCAL.allows(address)


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("policy", [PUBLIC, LOCAL])
def test_metadata_and_link_local_addresses_are_never_allowed(policy: AddressPolicy, address: str) -> None:
    assert not policy.allows(address)


@pytest.mark.parametrize("address", ["64:ff9b::7f00:1", "2002:7f00:1::1", "100.64.0.1", "240.0.0.1"])
def test_a_wrapped_or_reserved_address_is_not_public(address: str) -> None:
    assert not PUBLIC.allows(address)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://peer.example/",
        "gopher://peer.example/",
        "http://",
        "peer.example",
        "http://user:pass@peer.example/",
        "http://peer.example/?x=1",
        "http://peer.example/#x",
        "http://[::1/",
        "http://peer.example:99999/",
        "http://127.0.0.1:8545",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_a_url_that_leads_astray_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        PUBLIC.check_url(url)


def test_a_plain_url_passes() -> None:
    assert str(PUBLIC.check_url("https://seed.example/market")) == "https://seed.example/market"


class Rebinding(AbstractResolver):
    """A name server that answers with a public address first and with this machine's afterwards."""

    def __init__(self) -> None:
        self.answers = ["8.8.8.8", "127.0.0.1"]

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        address = self.answers.pop(0)
        return [ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        pass


async def test_a_name_is_judged_at_every_resolution_not_only_at_the_first() -> None:
    resolver = PolicyResolver(PUBLIC, Rebinding())
    assert [found["host"] for found in await resolver.resolve("peer.example", 80)] == ["8.8.8.8"]
    with pytest.raises(AddressRefused, match=r"leads to 127\.0\.0\.1"):
        await resolver.resolve("peer.example", 80)
