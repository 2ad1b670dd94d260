"""What block explorers and Sourcify need to verify the sources: the compiler's standard input as it was, and each
contract's constructor arguments.

The input is the one of the last full build. A smaller one would compile to other bytes, tests included.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from node.devnet.chain import ROOT
from protocol.chain.bindings import FOREIGN_TOKEN, Deployment, load_artifact
from protocol.chain.blueprint import constructor_arguments, encoded_arguments
from protocol.core.errors import GradmarketError
from protocol.core.presets import Preset

CHECKOUT = ROOT
INPUT, CONTRACTS = "standard-input.json", "contracts.json"


class NoBuild(GradmarketError):
    """A checkout without the build that the shipped contracts come from."""


def write_bundle(book: Deployment, preset: Preset, checkout: Path, folder: Path) -> list[dict[str, str]]:
    """Write both files into `folder` and return the rows of contracts.json.

    Raises NoBuild when the checkout's build is missing or has made other bytes than the deployed ones.
    """
    artifacts = checkout / "hardhat" / "artifacts"
    rows, builds = [], set()
    for name in sorted(set(book.contracts) - {FOREIGN_TOKEN}):
        artifact = _artifact(artifacts, name)
        builds.add(artifact["buildInfoId"])
        arguments = constructor_arguments(name, book.contracts, preset)
        rows.append(
            {
                "name": name,
                "address": book.address(name),
                "contract": f"{artifact['inputSourceName']}:{name}",
                "arguments": encoded_arguments(name, arguments).hex(),
            }
        )
    if len(builds) != 1:
        raise NoBuild(f"{artifacts}: the contracts come from {len(builds)} builds; {_REMEDY}")
    build = _read(artifacts / "build-info" / f"{builds.pop()}.json")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INPUT).write_text(json.dumps(build["input"], indent=1) + "\n", encoding="utf-8")
    rows = [{**row, "compiler": f"v{build['solcLongVersion']}", "chain": str(book.chain_id)} for row in rows]
    (folder / CONTRACTS).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


_REMEDY = "run `npm ci && npm run -s build` in hardhat/ of the version that was deployed"


def _artifact(artifacts: Path, name: str) -> dict[str, Any]:
    path = next((artifacts / "contracts").rglob(f"{name}.json"), None)
    if path is None:
        raise NoBuild(f"{artifacts}: no build of {name}; {_REMEDY}")
    artifact = _read(path)
    if artifact["bytecode"] != load_artifact(name).bytecode:
        raise NoBuild(f"{path}: its bytecode is not the one that this program deploys; {_REMEDY}")
    return artifact


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
    except (OSError, ValueError) as error:
        raise NoBuild(f"{path}: {error}; {_REMEDY}") from None
