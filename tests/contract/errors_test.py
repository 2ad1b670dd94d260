"""Every error that an external function of ours can refuse with is provoked by a Solidity test, with its facts.

What can be reached is read off the syntax trees, as for docs/contracts; what is provoked, off the tests: an error that
has facts must be expected once with them, not by its selector alone.
"""

from __future__ import annotations

import re

from docs.make_contracts import ROOT, Node, Reach, Trees, load

SOL = ROOT / "hardhat" / "sol"
# What a library could refuse, and nothing that we can give it makes it.
OUT_OF_REACH = {
    "AddressEmptyCode": "the checker is created with its court",
    "InvalidShortString": "the registry's name and version are short constants",
    "StringTooLong": "the registry's name and version are short constants",
}
EXPECTED = re.compile(r"\b(\w+)\.selector\s*([,);])")
NAMED = re.compile(r"bytes4 (\w+) = [\w.]*?(\w+)\.selector;")


def reachable(trees: Trees) -> dict[str, set[str]]:
    """Each error with its facts' names, as `Error(a, b)`, and the functions that it ends."""
    found: dict[str, set[str]] = {}
    for contract in trees.deployed():
        if trees.files[contract["id"]].startswith("contracts/dev/"):
            continue  # stands in for a token that somebody else wrote
        for function in [*trees.external(contract).values(), *_constructors(trees, contract)]:
            for error in trees.reach(contract, function, Reach(), set()).errors:
                found.setdefault(error, set()).add(f"{contract['name']}.{function.get('name') or 'constructor'}")
    return found


def _constructors(trees: Trees, contract: Node) -> list[Node]:
    ours = [base for base in trees.line(contract) if trees.files[base["id"]].startswith("contracts/")]
    return [node for base in ours for node in base["nodes"] if node.get("kind") == "constructor"]


def provoked(text: str) -> tuple[set[str], set[str]]:
    """Errors that tests expect, and those of them that are expected with facts."""
    uses = EXPECTED.findall(text)
    with_facts = {name for name, after in uses if after == ","}
    with_facts |= {name for alias, name in NAMED.findall(text) if f"encodeWithSelector({alias}, " in text}
    return {name for name, _ in uses}, with_facts


def test_every_error_that_a_function_can_refuse_with_is_provoked_with_its_facts() -> None:
    errors = reachable(load())
    assert len(errors) > 80, "the trees were not followed"
    texts = [provoked(path.read_text()) for path in sorted(SOL.glob("*.sol"))]
    expected, with_facts = (set().union(*(text[i] for text in texts)) for i in (0, 1))
    missing = {
        error: sorted(where)
        for error, where in errors.items()
        for name, facts in [error.removesuffix(")").split("(")]
        if name not in (with_facts if facts else expected) and name not in OUT_OF_REACH
    }
    assert missing == {}


def test_what_is_called_out_of_reach_is_still_what_a_function_names() -> None:
    named = {error.split("(")[0] for error in reachable(load())}
    assert set(OUT_OF_REACH) - named == set()


def test_an_error_that_is_expected_by_its_selector_alone_is_not_expected_with_facts() -> None:
    text = "abi.encodeWithSelector(IA.One.selector, 1)  refused(a, b, c, IA.Two.selector);"
    text += "bytes4 kind = IA.Three.selector;  bytes4 other = IA.Four.selector;  abi.encodeWithSelector(kind, 2)"
    assert provoked(text) == ({"One", "Two", "Three", "Four"}, {"One", "Three"})
