"""The chain's events as sentences, in the words of the people who caused them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.chain.logs import Event
from protocol.core.audit import Finding, Outcome
from protocol.core.round import bits
from protocol.core.units import format_tokens


class Narrator:
    """`names`: address to name. Remembers which case is about whose claim."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._claims: dict[tuple[int, int], str] = {}
        self._cases: dict[bytes, str] = {}

    def tell(self, event: Event) -> str:
        """One line, or an empty text for what is not worth one."""
        args = event.args
        if event.name == "Claimed":
            self._claims[args["round"], args["shard"]] = self._who(args["operator"])
        if event.name == "CaseOpened":
            claimant = self._claims.get((args["round"], args["shard"]), "?")
            self._cases[args["caseId"]] = f"{claimant}'s shard {args['shard']} of round {args['round'] + 1}"
        method = getattr(self, f"_{event.name}", None)
        return str(method(args)) if method is not None else ""

    def _who(self, address: str) -> str:
        return self._names.get(address, f"{address[:8]}…")

    def _case(self, args: Mapping[str, object]) -> str:
        ident = args["caseId"]
        return self._cases.get(ident, "a claim") if isinstance(ident, bytes) else "a claim"

    def _JobPosted(self, args: Mapping[str, object]) -> str:
        return f"{self._who(str(args['poster']))} posted the job"

    def _RoundOpened(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} opened"

    def _RoundSealed(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} sealed with {len(bits(args['committedMap']))} commitments"

    def _RoundClosed(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} closed: {len(bits(args['acceptedMap']))} payloads, one checkpoint"

    def _RoundVoided(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} is void"

    def _Lapsed(self, args: dict[str, str]) -> str:
        return f"{self._who(args['operator'])} let a claim lapse"

    def _Drawn(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1}: shards {bits(args['sampledMap'])} are sampled"

    def _CaseOpened(self, args: Mapping[str, object]) -> str:
        return "" if args["sampled"] else f"{self._who(str(args['challenger']))} challenges {self._case(args)}"

    def _LevelStarted(self, args: dict[str, int]) -> str:
        return f"the court doubts {self._case(args)}: {args['seats']} seats" if args["level"] > 1 else ""

    def _Revealed(self, args: dict[str, int]) -> str:
        if args["finding"] == Finding.MATCH:
            return ""
        return f"{self._who(str(args['operator']))} finds {Finding(args['finding']).name.lower()} in {self._case(args)}"

    def _VerdictReached(self, args: dict[str, int]) -> str:
        if args["outcome"] == Outcome.MATCH:
            return ""
        return f"verdict on {self._case(args)}: {Outcome(args['outcome']).name} at level {args['level']}"

    def _Slashed(self, args: dict[str, int]) -> str:
        return f"{self._who(str(args['owner']))} is slashed {format_tokens(args['amount'])} tokens"

    def _RoundSettled(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} is settled"

    def _JobClosed(self, args: Mapping[str, object]) -> str:
        return "the job is closed, the rest goes back to the poster"
