"""The chain's events as sentences, in the words of the people who caused them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protocol.chain.logs import Event
from protocol.core.audit import CaseKind, Finding, Outcome
from protocol.core.round import bits
from protocol.core.units import format_tokens


class Narrator:
    """`names`: address to name. Remembers which case is about what, and what the rounds closed with."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._claims: dict[tuple[int, int], str] = {}
        self._cases: dict[bytes, str] = {}
        self._steps: dict[bytes, tuple[int, bytes]] = {}
        self._attested: dict[int, tuple[int, bytes]] = {}
        self._asked: set[bytes] = set()  # cases that a person opened, or appealed

    def tell(self, event: Event) -> str:
        """One line, or an empty text for what is not worth one."""
        args = event.args
        if event.name == "Claimed":
            self._claims[args["round"], args["shard"]] = self._who(args["operator"])
        if event.name == "CaseOpened":
            claimant = self._claims.get((args["round"], args["shard"]), "?")
            where = f"{claimant}'s shard {args['shard']} of round {args['round'] + 1}"
            is_step = args["kind"] == CaseKind.CHECKPOINT
            self._cases[args["caseId"]] = f"the checkpoint of round {args['round'] + 1}" if is_step else where
            if is_step:
                self._steps[args["caseId"]] = self._attested.get(args["round"], (0, b""))
            if args["kind"] != CaseKind.SAMPLED:
                self._asked.add(args["caseId"])
        if event.name == "Appealed":
            self._asked.add(args["caseId"])
        if event.name == "RoundClosed":
            self._attested[args["round"]] = (args["acceptedMap"], args["next"])
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
        if args["kind"] == CaseKind.SAMPLED:
            return ""
        verb = "demands an audit of" if args["kind"] == CaseKind.DEMANDED else "challenges"
        return f"{self._who(str(args['opener']))} {verb} {self._case(args)}"

    def _LevelStarted(self, args: Mapping[str, object]) -> str:
        if args["level"] == 1:
            return ""
        if args["caseId"] in self._asked:
            return f"{args['seats']} seats judge {self._case(args)}"
        return f"the court doubts {self._case(args)}: {args['seats']} seats"

    def _Appealable(self, args: dict[str, int]) -> str:
        return f"{Outcome(args['outcome']).name} on {self._case(args)}, unless somebody appeals"

    def _Appealed(self, args: Mapping[str, object]) -> str:
        return f"{self._who(str(args['operator']))} appeals in the case about {self._case(args)}"

    def _CheckpointReplaced(self, args: dict[str, int]) -> str:
        wrong = "was false" if args["convicted"] else "is not what a panel found"
        return f"the checkpoint of round {args['round'] + 1} {wrong}: it is replaced, what was built on it is orphaned"

    def _Revealed(self, args: dict[str, int]) -> str:
        if args["finding"] == Finding.MATCH:
            return ""
        return f"{self._who(str(args['operator']))} finds {Finding(args['finding']).name.lower()} in {self._case(args)}"

    def _StepRevealed(self, args: dict[str, Any]) -> str:
        attested = self._steps.get(args["caseId"], (0, b""))
        if not any(args["digest"]) or (args["bitmap"], args["digest"]) == attested:
            return ""
        return f"{self._who(args['operator'])} computes another checkpoint than {self._case(args)}"

    def _VerdictReached(self, args: dict[str, int]) -> str:
        if args["outcome"] == Outcome.MATCH and args["level"] == 1:
            return ""
        return f"verdict on {self._case(args)}: {Outcome(args['outcome']).name} at level {args['level']}"

    def _Slashed(self, args: dict[str, int]) -> str:
        return f"{self._who(str(args['owner']))} is slashed {format_tokens(args['amount'])} tokens"

    def _RoundSettled(self, args: dict[str, int]) -> str:
        return f"round {args['round'] + 1} is settled"

    def _JobClosed(self, args: Mapping[str, object]) -> str:
        return "the job is closed, the rest goes back to the poster"
