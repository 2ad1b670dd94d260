"""A market in which the real contracts draw by the thousand: many tickets, rounds of 256 accepted claims.

Claims belong to owners without tickets, so that nobody who holds one is a party. Nothing is settled: only the draws
matter here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eth_account import Account

from protocol.core.delegation import Domain, registration_digest
from protocol.core.encoding import keccak
from protocol.core.operator import FOREVER as NEVER
from protocol.core.operator import Scope
from protocol.core.trace import TraceRow, trace_root
from tests.helpers.evm import Chain

TOKEN = 10**18
SHARDS = 256
FOREVER = 2**256 - 1
# Everybody trains the same three steps: whose trace it is does not matter to a draw.
ROWS = tuple(TraceRow(step, 2 * 10**9, 10**9, bytes([step] * 32), bytes(32)) for step in (1, 2, 3))
OPENING = (b"\x01" * 32, trace_root(ROWS), b"\x03" * 32)
_PLENTY = 10**9 * TOKEN
_TRAINERS = 4
_DAY = 24 * 3600
_CASE_WORDS = 18
_COMMITMENT = slice(32 * 5, 32 * 6)  # in the answer of `claimOf`
_SEAT_WORDS = 9


def address_of(number: int) -> str:
    """The owner with that number."""
    return "0x" + f"{0xAA0000 + number:040x}"


class Arena:
    """A deployment with `tickets[i]` tickets of owner i, and one job."""

    def __init__(self, tickets: Sequence[int], panel: tuple[int, int], audit_rate_bps: int, first_block: int) -> None:
        appeal = (panel[0] + 1, panel[0] + 1)  # nobody appeals here
        preset = (*panel, *appeal, 10_000, 0, 600, 600, 10, 1, 10**6 * TOKEN, 0)  # tickets that are never busy
        self.height, self.time = first_block, 1_700_000_000
        self.chain = Chain(preset, self.time, self.height)
        self.owners = [address_of(i) for i in range(len(tickets))]
        self.trainers = [address_of(10_000 + i) for i in range(_TRAINERS + 1)]
        self.operators = {owner: self._join(owner) for owner in (*self.owners, *self.trainers)}
        for owner, count in zip(self.owners, tickets, strict=True):
            self.chain.send(owner, "tickets", "enroll", (self.operators[owner], count))
        self.job = self._post(audit_rate_bps)
        self.round = -1

    def _join(self, owner: str) -> str:
        key = keccak(owner.encode())
        operator = str(Account.from_key(key).address).lower()
        self.chain.send(owner, "token", "mint", (owner, _PLENTY))
        self.chain.send(owner, "token", "approve", (self.chain.address["vault"], FOREVER))
        self.chain.send(owner, "vault", "deposit", (owner, _PLENTY))
        digest = registration_digest(Domain(1, self.chain.address["registry"]), owner, operator, owner, 0, FOREVER)
        signature = bytes(Account.unsafe_sign_hash(digest, key).signature)
        entry = (operator, owner, Scope.ALL, NEVER, "http://peer", bytes(32), bytes(32), FOREVER, signature)
        self.chain.send(owner, "registry", "register", entry)
        return operator

    def _post(self, rate: int) -> bytes:
        windows = (_DAY, 2 * _DAY, _DAY, 30 * _DAY, _DAY, _DAY, 10)
        numbers = (TOKEN, 200 * TOKEN, 10**6, 3, TOKEN, rate, SHARDS, SHARDS, 1, 0, 5_000, windows)
        poster, chain = address_of(20_000), self.chain
        chain.send(poster, "token", "mint", (poster, _PLENTY))
        chain.send(poster, "token", "approve", (chain.address["ledger"], FOREVER))
        terms = (keccak(b"spec"), keccak(b"genesis"), *numbers)
        return chain.send(poster, "market", "post", (terms, bytes(32), _PLENTY, "seed"))

    def pass_blocks(self, blocks: int) -> None:
        """Later by so many blocks."""
        self.height, self.time = self.height + blocks, self.time + blocks
        self.chain.move_to(self.time, self.height)

    def close_round(self) -> int:
        """Another round with 256 accepted claims, and its sample drawn: the map of what is sampled."""
        chain, job = self.chain, self.job
        self.round += 1
        chain.send(self.owners[0], "rounds", "open", (job,))
        base = chain.view("rounds", "roundOf", job, self.round)[:32]
        for trainer, shards in self._parts():
            operator = self.operators[trainer]
            chain.send(operator, "rounds", "claim", (job, self.round, shards))
            for shard in shards:
                chain.send(operator, "rounds", "commit", (job, self.round, shard, base, OPENING))
        vote = (job, self.round, base, 2**SHARDS - 1, keccak(base))
        for trainer, _ in self._parts():
            if int.from_bytes(chain.view("rounds", "roundOf", job, self.round)[32 * 9 : 32 * 10]) == 0:
                chain.send(self.operators[trainer], "rounds", "attest", vote)
        self.pass_blocks(2)
        chain.send(self.owners[0], "rounds", "draw", (job, self.round))
        return int.from_bytes(chain.view("rounds", "drawOf", job, self.round)[64:96])

    def _parts(self) -> Iterator[tuple[str, list[int]]]:
        for i in range(_TRAINERS):
            yield self.trainers[i], list(range(i * SHARDS // _TRAINERS, (i + 1) * SHARDS // _TRAINERS))

    def first_seats(self, shards: Sequence[int]) -> list[int]:
        """Convene sampled claims: the owner in the first seat of each."""
        self.chain.send(self.owners[0], "court", "convene", (self.job, self.round, list(shards)))
        return [self.seats(shard)[0] for shard in shards]

    def panels(self, shards: Sequence[int]) -> list[list[int]]:
        """Challenge claims that are not sampled: the owners in the seats of each panel."""
        for shard in shards:
            doubter = self.trainers[_TRAINERS]
            commitment = self.chain.view("rounds", "claimOf", self.job, self.round, shard)[_COMMITMENT]
            call = (self.job, self.round, shard, commitment)
            self.chain.send(self.operators[doubter], "court", "challenge", call)
        self.pass_blocks(2)
        for shard in shards:
            self.chain.send(self.owners[0], "court", "advance", (self.case_of(shard),))
        return [self.seats(shard) for shard in shards]

    def case_of(self, shard: int) -> bytes:
        """The case about a claim of the newest round."""
        return self.chain.view("court", "caseIdOf", self.job, self.round, shard)

    def seats(self, shard: int) -> list[int]:
        """The numbers of the owners in a case's seats."""
        return [owner for owner, _ in self.seat_states(shard)]

    def seat_states(self, shard: int) -> list[tuple[int, int]]:
        """The owner and the state of each seat."""
        answer = self.chain.view("court", "caseOf", self.case_of(shard))
        words = [int.from_bytes(answer[at : at + 32]) for at in range(0, len(answer), 32)]
        seats = words[_CASE_WORDS + 2 :]
        return [(seats[at] - 0xAA0000, seats[at + 3]) for at in range(0, len(seats), _SEAT_WORDS)]
