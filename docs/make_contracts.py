"""Write docs/contracts/<Name>.md from the contracts' syntax trees: `python -m docs.make_contracts`.

What a function promises is its NatSpec; what it refuses, emits and calls is read off its body and everything that the
body reaches inside the contract. A test proves the pages fresh.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "contracts"
Node = dict[str, Any]


@dataclass
class Reach:
    """What a body can do, with everything that it calls inside its contract. Keys keep the order of first sight."""

    errors: dict[str, None] = field(default_factory=dict)
    events: dict[str, None] = field(default_factory=dict)
    calls: dict[str, None] = field(default_factory=dict)


class Trees:
    """All syntax trees of one compilation, indexed."""

    def __init__(self, trees: dict[str, Node]) -> None:
        self.nodes: dict[int, Node] = {}
        self.home: dict[int, Node] = {}  # function or error -> contract
        self.files: dict[int, str] = {}  # contract -> file
        for file, tree in sorted(trees.items()):
            for node in walk(tree):
                self.nodes[node["id"]] = node
            for contract in (n for n in tree["nodes"] if n["nodeType"] == "ContractDefinition"):
                self.files[contract["id"]] = file
                self.home.update({child["id"]: contract for child in contract["nodes"]})

    def deployed(self) -> list[Node]:
        """Our contracts that can be deployed, by name."""
        own = (self.nodes[key] for key, file in self.files.items() if file.startswith("contracts/"))
        return sorted(
            (n for n in own if n["contractKind"] == "contract" and not n["abstract"]), key=lambda n: str(n["name"])
        )

    def line(self, contract: Node) -> list[Node]:
        """A contract and its bases, most derived first."""
        return [self.nodes[key] for key in contract["linearizedBaseContracts"]]

    def external(self, contract: Node) -> dict[str, Node]:
        """Its external functions and getters by signature, most derived first."""
        found: dict[str, Node] = {}
        for base in self.line(contract):
            if base["contractKind"] == "interface" or not self.files[base["id"]].startswith("contracts/"):
                continue
            for node in base["nodes"]:
                getter = node["nodeType"] == "VariableDeclaration" and node["visibility"] == "public"
                called = node["nodeType"] == "FunctionDefinition" and node["visibility"] in ("external", "public")
                if (getter or called) and node.get("kind") != "constructor":
                    found.setdefault(signature(node), node)
        return found

    def words(self, contract: Node, node: Node) -> str:
        """The NatSpec of a function, from its interface where it stands there."""
        own = plain(node)
        if own and "@inheritdoc" not in own:
            return own
        for base in self.line(contract):
            for other in base["nodes"] if base["contractKind"] == "interface" else ():
                named = other["nodeType"] == "FunctionDefinition" and other["name"] == node["name"]
                if named and (node["nodeType"] == "VariableDeclaration" or signature(other) == signature(node)):
                    return plain(other)
        return ""

    def resolve(self, contract: Node, function: Node) -> Node:
        """The most derived form of a function that a contract's body calls."""
        if self.home[function["id"]]["id"] not in contract["linearizedBaseContracts"]:
            return function
        for base in self.line(contract):
            for node in base["nodes"]:
                same = node["nodeType"] == "FunctionDefinition" and node["name"] == function["name"]
                if same and node.get("body") and signature(node) == signature(function):
                    return dict(node)
        return function

    def reach(self, contract: Node, body: Node, into: Reach, seen: set[int]) -> Reach:
        """Follow a body through modifiers and internal calls."""
        if body["id"] in seen:
            return into
        seen.add(body["id"])
        for node in walk(body):
            kind = node["nodeType"]
            if kind == "RevertStatement":
                into.errors[self._call_name(node["errorCall"])] = None
            elif kind == "EmitStatement":
                into.events[self._call_name(node["eventCall"])] = None
            elif kind == "ModifierInvocation":
                self.reach(contract, self.nodes[node["modifierName"]["referencedDeclaration"]], into, seen)
            elif kind == "FunctionCall":
                self._follow(contract, node["expression"], into, seen)
        return into

    def _follow(self, contract: Node, expression: Node, into: Reach, seen: set[int]) -> None:
        target = self.nodes.get(expression.get("referencedDeclaration") or -1)
        if target is None or target["nodeType"] not in ("FunctionDefinition", "VariableDeclaration"):
            return
        home = self.home.get(target["id"])
        if home is None:
            return
        outside = " external" in str(expression["typeDescriptions"].get("typeString"))
        if outside and home["id"] not in contract["linearizedBaseContracts"]:
            if target.get("stateMutability") not in ("view", "pure"):
                into.calls[f"{home['name']}.{target['name']}"] = None
        elif target["nodeType"] == "FunctionDefinition":
            self.reach(contract, self.resolve(contract, target), into, seen)

    def _call_name(self, call: Node) -> str:
        target = self.nodes[call["expression"]["referencedDeclaration"]]
        names = ", ".join(p["name"] for p in target["parameters"]["parameters"])
        return f"{target['name']}({names})"


def walk(node: Any) -> Iterator[Node]:
    """Every node below, parents first."""
    if isinstance(node, dict):
        if "nodeType" in node and "id" in node:
            yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def plain(node: Node) -> str:
    """A node's NatSpec as one paragraph."""
    documentation = node.get("documentation") or {}
    return " ".join(str(documentation.get("text", "")).split())


def shown(parameter: Node) -> str:
    kind = str(parameter["typeDescriptions"]["typeString"])
    kind = kind.replace("struct ", "").replace("enum ", "").replace("contract ", "")
    return f"{kind} {parameter['name']}".strip()


def signature(node: Node) -> str:
    """Name and parameter types, alike in a contract and its interface."""
    if node["nodeType"] == "VariableDeclaration":
        return f"{node['name']}()"
    kinds = [shown({**p, "name": ""}).split(" ")[0] for p in node["parameters"]["parameters"]]
    return f"{node['name']}({','.join(kinds)})"


def load() -> Trees:
    """Parse the contracts as they are."""
    run = subprocess.run(["node", "scripts/ast.js"], cwd=ROOT / "hardhat", check=True, capture_output=True, text=True)
    return Trees(json.loads(run.stdout))


def render(trees: Trees, contract: Node) -> str:
    """One contract's page."""
    return "\n".join([*_head(trees, contract), *_functions(trees, contract)]).rstrip() + "\n"


def _head(trees: Trees, contract: Node) -> Iterator[str]:
    yield from (f"# {contract['name']}", "", "Written by `python -m docs.make_contracts`; do not edit.", "")
    ours = [base for base in trees.line(contract) if trees.files[base["id"]].startswith("contracts/")]
    for base in ours:
        lines = str((base.get("documentation") or {}).get("text", "")).splitlines()
        text = [line.strip().removeprefix("@notice ") for line in lines if not line.strip().startswith("@title")]
        if base["contractKind"] != "interface" and any(text):
            rules = [line for line in text if line.startswith("INV-")]
            prose = " ".join(line for line in text if line and line not in rules)
            yield from (prose, "") if base is contract else (f"*{base['name']}.* {prose}", "")
            yield from (*(f"- {rule}" for rule in rules), *([""] if rules else []))
    files = [f"`{trees.files[base['id']]}`" for base in ours]
    yield f"**Files.** {', '.join(files)}"
    yield ""
    makers = [n for n in contract["nodes"] if n.get("kind") == "constructor"]
    parameters = [shown(p) for n in makers for p in n["parameters"]["parameters"]]
    yield from (f"**Constructor.** {', '.join(f'`{p}`' for p in parameters) or 'no parameters'}", "")


def _functions(trees: Trees, contract: Node) -> Iterator[str]:
    found = trees.external(contract)
    views = {key: n for key, n in found.items() if n.get("stateMutability", "view") in ("view", "pure")}
    writes = {key: n for key, n in found.items() if key not in views}
    for _, node in sorted(writes.items()):
        yield from (f"## {node['name']}", "", f"`{_call(node)}`", "", trees.words(contract, node), "")
        reach = trees.reach(contract, node, Reach(), set())
        for label, names in (("Refuses", reach.errors), ("Emits", reach.events), ("Calls", reach.calls)):
            if names:
                yield from (f"- {label}: {' · '.join(f'`{name}`' for name in sorted(names))}",)
        yield ""
    if views:
        yield from ("## Views", "", "| view | says |", "|---|---|")
        for _, node in sorted(views.items()):
            words = trees.words(contract, node) or "set at deployment"
            yield f"| `{_call(node)}` | {words.replace('|', '∣')} |"


def _call(node: Node) -> str:
    if node["nodeType"] == "VariableDeclaration":
        kind = str(node["typeDescriptions"]["typeString"]).replace("contract ", "")
        return f"{node['name']}: {kind}"
    inputs = ", ".join(shown(p) for p in node["parameters"]["parameters"])
    outputs = ", ".join(shown(p) for p in node["returnParameters"]["parameters"])
    return f"{node['name']}({inputs})" + (f" → {outputs}" if outputs else "")


def pages() -> dict[Path, str]:
    """Every page by its path."""
    trees = load()
    return {FOLDER / f"{contract['name']}.md": render(trees, contract) for contract in trees.deployed()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
        print(path.relative_to(ROOT))
