"""Which network addresses a peer's URL may lead to.

The check is made on the addresses that a name resolves to, inside the resolver of the very connection: what was
checked is what is dialled, so a name that changes its answer (DNS rebinding) gains nothing.
"""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from protocol.transport.errors import AddressRefused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Cloud metadata services: they hand out credentials, so no mode may reach them.
METADATA: Final = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200")))
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True)
class AddressPolicy:
    """Public peers only, or (allow_private) also loopback and private networks, for a dev chain or a LAN."""

    allow_private: bool = False

    def allows(self, text: str) -> bool:
        address = _embedded(ipaddress.ip_address(text.split("%")[0]))
        if address in METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
            return False
        return address.is_global or (self.allow_private and (address.is_private or address.is_loopback))

    def check_url(self, text: str) -> URL:
        """The URL, or AddressRefused. A literal address is judged here: it never reaches a resolver."""
        try:
            url = URL(text)
            host = url.host
        except ValueError as error:
            raise AddressRefused(f"peer URL {text[:200]!r} is malformed: {error}") from None
        if url.scheme not in ("http", "https") or not host:
            raise AddressRefused(f"peer URL {text[:200]!r}: expected http:// or https:// and a host")
        if url.user is not None or url.password is not None or url.query_string or url.fragment:
            raise AddressRefused(f"peer URL of {host}: no user, password, query or fragment is allowed")
        if _is_literal(host) and not self.allows(host):
            raise AddressRefused(self.refusal(host, [host]))
        return url

    def refusal(self, host: str, addresses: list[str]) -> str:
        expected = "a public, loopback or private address" if self.allow_private else "a public address"
        return f"peer {host} leads to {', '.join(addresses) or 'no address'}; expected {expected}"


PUBLIC: Final = AddressPolicy()
LOCAL: Final = AddressPolicy(allow_private=True)


class PolicyResolver(AbstractResolver):
    """Resolves as the system does and keeps only what the policy allows."""

    def __init__(self, policy: AddressPolicy, resolver: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._resolver = resolver or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        allowed = [result for result in found if self._policy.allows(result["host"])]
        if not allowed:
            raise AddressRefused(self._policy.refusal(host, sorted({result["host"] for result in found})))
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    return True


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries (mapped, 6to4, Teredo, NAT64), or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
