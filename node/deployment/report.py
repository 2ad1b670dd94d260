"""What `deploy` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from protocol.chain.blueprint import Blueprint
from protocol.chain.inspect import Comparison, shown
from protocol.chain.preflight import Survey
from protocol.core.presets import Parameter, Preset
from protocol.core.units import format_tokens

GWEI = 10**9


def plan_lines(blueprint: Blueprint, survey: Survey) -> Iterator[str]:
    """The dry run for people: contracts, cost, parameters, checks."""
    first, last = blueprint.creations[0].nonce, blueprint.creations[-1].nonce
    yield f"chain {blueprint.chain_id}  deployer and guardian {blueprint.deployer}  nonces {first} to {last}"
    yield ""
    for creation in blueprint.creations:
        yield f"  {creation.nonce:>5}  {creation.name:16} {creation.address}  {survey.gas[creation.name]:>10,} gas"
    yield f"  {'':5}  {'together':16} {'':42}  {sum(survey.gas.values()):>10,} gas"
    fee = (survey.base_fee + survey.tip) / GWEI
    yield f"  {format_tokens(survey.cost)} coins at {fee:.3f} gwei now; at most {format_tokens(survey.most)}"
    yield ""
    yield from parameter_lines(blueprint.preset)
    yield ""
    for check in survey.checks:
        yield f"  {'ok' if check.ok else 'FAILS':6} {check.what}: {check.facts}"


def parameter_lines(preset: Preset) -> Iterator[str]:
    """Every number with its unit and its reason."""
    yield f"preset {preset.name}"
    for row in preset.reasons:
        yield _parameter_line(row)
    yield f"beacon {preset.beacon.kind}: {preset.beacon.why}"
    for row in preset.beacon.arguments.values():
        yield _parameter_line(row)


def _parameter_line(row: Parameter) -> str:
    return f"  {row.name:16} {shown(row.value):>20} {row.unit:10} {row.why}"


def plan_table(blueprint: Blueprint, survey: Survey) -> dict[str, Any]:
    """The same for programs. Wei and gas are decimal text where they may exceed 53 bits."""
    return {
        "ok": survey.ok,
        "chain_id": blueprint.chain_id,
        "deployer": blueprint.deployer,
        "preset": blueprint.preset.name,
        "contracts": [
            {"name": made.name, "nonce": made.nonce, "address": made.address, "gas": survey.gas[made.name]}
            for made in blueprint.creations
        ],
        "cost": str(survey.cost),
        "most": str(survey.most),
        "checks": [{"what": check.what, "ok": check.ok, "facts": check.facts} for check in survey.checks],
    }


def check_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """One line a comparison; the expected value only where it was not met."""
    for row in comparisons:
        have = row.have if row.verdict != "ok" or len(row.have) < 60 else row.have[:36] + "…"
        expected = f"; expected {row.want}" if row.verdict == "DIFFERS" else ""
        yield f"  {row.verdict:8} {row.subject:16} {row.what:18} {have}{expected}"


def check_table(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    rows = [
        {"subject": row.subject, "what": row.what, "have": row.have, "want": row.want, "verdict": row.verdict}
        for row in comparisons
    ]
    return {"ok": all(row["verdict"] == "ok" for row in rows), "comparisons": rows}
