"""What re-executing a claim needs, fetched from whoever has it: spec, manifest, shards, checkpoints, payloads."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from protocol.chain.market import Market
from protocol.core.audit import Case
from protocol.core.commitment import Opening
from protocol.core.round import Round, RoundStatus, bits
from protocol.core.terms import TOLERANCE_CLASSES, Terms
from protocol.runtime.process import ComputeProcess
from protocol.training.checkpoint import checkpoint_bytes
from protocol.training.compress import max_payload_bytes
from protocol.training.data import (
    MAX_MANIFEST_BYTES,
    Manifest,
    check_manifest,
    decode_manifest,
    shard_bytes,
    shard_digest,
    validation_bytes,
)
from protocol.training.layout import parameter_count
from protocol.training.spec import MAX_SPEC_BYTES, Spec, decode_spec, loss_tolerance, trace_rows
from protocol.transport.blobs import BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.errors import BlobTooLarge, PeerFailed, Unavailable
from protocol.transport.signing import RequestSigner
from verifier.errors import InputsUnavailable, JobRefused, TooLarge
from verifier.openings import Openings

Sources = Callable[[], Sequence[str]]  # base URLs of everybody who may hold a blob
MAX_TOKENIZER_BYTES = 64 * 2**20
FETCH_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """What this machine takes on; a spec of some hundred bytes can ask for any memory and any disk."""

    parameters: int
    shard_bytes: int


class JobInputs:
    """One job's artefacts in the local blob store. Every method returns a path to verified bytes."""

    def __init__(
        self,
        market: Market,
        job_id: bytes,
        terms: Terms,
        store: BlobStore,
        client: BlobClient,
        compute: ComputeProcess,
        openings: Openings,
        sources: Sources,
        limits: Limits,
    ) -> None:
        self.job_id, self.terms = job_id, terms
        self._market, self._store, self._client, self._compute = market, store, client, compute
        self._openings, self._sources, self._limits = openings, sources, limits
        self._spec: Spec | None = None
        self._log = structlog.get_logger("inputs")
        self._manifest: Manifest | None = None

    async def spec(self) -> Spec:
        """The job's spec, checked against its terms. Raises JobRefused when they contradict each other."""
        if self._spec is None:
            path = await self._fetch(self.terms.spec_digest.hex(), MAX_SPEC_BYTES, "spec")
            spec = decode_spec(path.read_bytes())
            check_terms_of(spec, self.terms)
            _check_limit("parameters", parameter_count(spec), self._limits.parameters)
            self._spec = spec
        return self._spec

    async def spec_path(self) -> str:
        await self.spec()
        return str(self._store.path(self.terms.spec_digest.hex()))

    async def manifest(self) -> Manifest:
        """The job's manifest, checked against its spec. Raises DataError."""
        if self._manifest is None:
            digest = (await self.spec()).data.manifest
            path = await self._fetch(digest, MAX_MANIFEST_BYTES, "manifest")
            manifest = decode_manifest(path.read_bytes())
            check_manifest(await self.spec(), manifest)
            _check_limit("bytes a shard", shard_bytes(manifest), self._limits.shard_bytes)
            self._manifest = manifest
        return self._manifest

    async def manifest_path(self) -> str:
        await self.manifest()
        return str(self._store.path((await self.spec()).data.manifest))

    async def shard(self, round: int, shard: int) -> Path:
        """The tokens that a claim trains on."""
        manifest = await self.manifest()
        digest = shard_digest(manifest, round, shard, self.terms.shards_per_round)
        return await self._fetch(digest, shard_bytes(manifest), "shard")

    async def validation(self) -> Path:
        manifest = await self.manifest()
        return await self._fetch(manifest.validation, validation_bytes(manifest), "validation")

    async def tokenizer(self) -> Path | None:
        """None for a model whose examples are no texts."""
        digest = (await self.spec()).tokenizer
        return None if digest is None else await self._fetch(digest, MAX_TOKENIZER_BYTES, "tokenizer")

    async def payload(self, opening: Opening, first: str | None = None, timeout: float = FETCH_SECONDS) -> Path:
        """A committed payload, from its operator or from any peer that has it."""
        limit = max_payload_bytes(await self.spec())
        return await self._fetch(opening.payload_digest.hex(), limit, "payload", first, timeout)

    def has_checkpoint(self, digest: bytes) -> bool:
        return self._store.has(digest.hex())

    async def checkpoint(self, digest: bytes) -> Path:
        """A checkpoint by its agreed digest, as it is."""
        return await self._fetch(digest.hex(), checkpoint_bytes(await self.spec()), "checkpoint")

    async def genesis(self) -> Path:
        """Checkpoint 0: drawn from the spec's seed, or the blob that the spec names."""
        digest = self.terms.genesis_digest.hex()
        spec = await self.spec()
        if isinstance(spec.genesis, str) or self._store.has(digest):
            return await self.checkpoint(self.terms.genesis_digest)
        out = self._scratch("genesis")
        made = await self._compute.call("genesis", spec=await self.spec_path(), out=str(out))
        if made != digest:
            raise JobRefused(f"job {self.job_id.hex()[:10]}…: the terms say genesis {digest}, the spec gives {made}")
        return self._adopt(out, digest)

    async def next_checkpoint(self, round: Round, payloads: dict[int, Path], base: Path | None = None) -> str:
        """Compute the checkpoint that follows from a round's base and these payloads; its digest, hex."""
        base = base or await self.base(round)
        out = self._scratch(f"next-{round.number}")
        paths = {str(shard): str(path) for shard, path in payloads.items()}
        digest = str(
            await self._compute.call(
                "outer_step", spec=await self.spec_path(), base=str(base), payloads=paths, out=str(out)
            )
        )
        self._adopt(out, digest)
        return digest

    async def base(self, round: Round) -> Path:
        """The checkpoint that a round starts from: at hand, recomputed from the round before, or fetched."""
        if round.base == self.terms.genesis_digest:
            return await self.genesis()
        if self._store.has(round.base.hex()):
            return self._store.path(round.base.hex())
        return await self.recompute(round.base, round.number)

    async def agreed_base(self, round: Round) -> Path:
        """The checkpoint that a round starts from, right or not: what the step of this one round is judged by."""
        try:
            return await self.base(round)
        except JobRefused:
            return await self.checkpoint(round.base)

    async def recompute(self, digest: bytes, before: int) -> Path:
        """Checkpoint `digest`, the end of a round below `before`: by the exact step from that round's base.

        Where payloads are gone, the bytes that hash to the agreed digest serve as well.
        """
        source = await self.round_that_ends_in(digest, before)
        if source is None:
            return await self.checkpoint(digest)
        try:
            return await self.exact_end(source)
        except (Unavailable, BlobTooLarge):
            return await self.checkpoint(digest)

    async def exact_end(self, source: Round) -> Path:
        """The checkpoint that a round ended in, by the exact step from its base and from nobody's word.

        Raises JobRefused when the step gives another one; Unavailable when a payload cannot be had.
        """
        start = source.base
        if start == self.terms.genesis_digest:
            await self.genesis()
        elif not self._store.has(start.hex()):
            await self.checkpoint(start)
        openings = await self._openings.of_round(self.job_id, source)
        if unknown := [shard for shard in bits(source.accepted_map) if shard not in openings]:
            raise Unavailable(f"round {source.number}", {"RPC node": f"shows no commitment of shards {unknown}"})
        payloads = {shard: await self.payload(openings[shard]) for shard in bits(source.accepted_map)}
        made, agreed = await self.next_checkpoint(source, payloads), source.next.hex()
        if made != agreed:
            raise JobRefused(
                f"job {self.job_id.hex()[:10]}… round {source.number}: the agreed checkpoint {agreed[:10]}… "
                f"is not the exact step of its base ({made[:10]}…): do not build on it"
            )
        return self._store.path(made)

    async def call_operator(self, endpoint: str, path: str, limit: int, signer: RequestSigner) -> bytes | None:
        """A private artefact from its operator; None when it is not given."""
        try:
            return await self._client.call(endpoint, path, max_bytes=limit, signer=signer)
        except PeerFailed as error:
            self._log.info("artefact_refused", source=endpoint, path=path, reason=str(error))
            return None

    async def opening_of(self, case: Case, round: Round) -> Opening | None:
        return await self._openings.of_claim(self.job_id, round, case.shard)

    async def openings_of(self, round: Round) -> dict[int, Opening]:
        return await self._openings.of_round(self.job_id, round)

    async def round_that_ends_in(self, digest: bytes, before: int) -> Round | None:
        """The newest round below `before` whose checkpoint it is."""
        for number in range(before - 1, -1, -1):
            round = await self._market.round(self.job_id, number)
            if round.next == digest and round.status != RoundStatus.VOID:
                return round
        return None

    async def _fetch(
        self, digest: str, limit: int, kind: str, first: str | None = None, timeout: float = FETCH_SECONDS
    ) -> Path:
        sources = [url for url in self._sources() if url]
        try:
            return await self._client.fetch(
                digest, sources, max_bytes=limit, kind=kind, timeout=timeout, first=first or None
            )
        except (Unavailable, BlobTooLarge) as error:
            if kind in ("payload", "checkpoint"):
                raise
            if isinstance(error, BlobTooLarge):
                raise InputsUnavailable(f"job {self.job_id.hex()[:10]}…: its {kind} cannot be: {error}") from None
            raise InputsUnavailable(
                f"job {self.job_id.hex()[:10]}…: nobody serves its {kind} {digest[:12]}… "
                f"({len(sources)} asked; {next(iter(error.reasons.values()), 'no address is known')})"
            ) from None

    def _scratch(self, name: str) -> Path:
        return self._store.root / "tmp" / f"{self.job_id.hex()[:16]}-{name}-{secrets.token_hex(4)}"

    def _adopt(self, path: Path, digest: str) -> Path:
        self._store.put_file(path, kind="checkpoint")
        path.unlink(missing_ok=True)
        return self._store.path(digest)


def _check_limit(what: str, have: int, most: int) -> None:
    if have > most:
        raise TooLarge(f"job left alone: it has {have:,} {what}, config.toml [work] allows {most:,}")


def check_terms_of(spec: Spec, terms: Terms) -> None:
    """Refuse a job whose terms on chain say something else than its spec."""
    pairs = {
        "rows of a trace": (terms.inner_steps, trace_rows(spec)),
        "tolerance class": (TOLERANCE_CLASSES[terms.tolerance_class], spec.verify.tolerance_class),
        # The court refuses a Match beyond the terms' line: an honest seat would lose its fee.
        "loss tolerance": (terms.loss_tolerance, loss_tolerance(spec)),
    }
    for what, (on_chain, in_spec) in pairs.items():
        if on_chain != in_spec:
            raise JobRefused(f"job refused: its terms say {what} {on_chain}, its spec {in_spec}")
