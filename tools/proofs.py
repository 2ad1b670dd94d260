"""The proofs of hardhat/sym: halmos for `check_…`, plain trial of every value under forge for `test_…`.

`python tools/proofs.py [CONTRACT…]`. Fails unless each of them is proved: a time-out, a path that was cut off by a
loop bound, and a proof that did not run, or did not end in ten minutes, are failures too. Wants forge on the path
(`npm ci` in hardhat/ installs it).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HARDHAT = ROOT / "hardhat"
HALMOS = ROOT / ".venv-analysis" / "bin" / "halmos"
LOOP = 300  # more than any loop of the libraries makes: a proof that is cut off is none
SECONDS = 60  # for one question to the solver
LIMIT = 600  # seconds for one proof by halmos, or for all trials of a contract
PROOF = re.compile(r"function ((?:check|test)_\w+)\(")
PROVED = re.compile(r"\[PASS\]\S* (\w+)\([^)]*\) \((?:paths: (\d+), time: ([\d.]+)s|gas: (\d+)\))")
CUT_OFF = re.compile(r"WARNING\s+(\w+)\(")


def wanted(contracts: list[str]) -> dict[str, set[str]]:
    """The proofs of each contract in sym/, by the contract's name."""
    files = {f"{path.name.removesuffix('.t.sol')}Proof": path for path in sorted((HARDHAT / "sym").glob("*.t.sol"))}
    return {
        name: set(PROOF.findall(path.read_text())) for name, path in files.items() if name in contracts or not contracts
    }


def outcome(said: str) -> dict[str, str]:
    """What halmos or forge proved, with what it took; not what a warning names as cut off."""
    cut = set(CUT_OFF.findall(said))
    return {
        name: f"{paths} paths, {seconds} s" if paths else f"every value, {int(gas) / 1e6:.0f} M gas"
        for name, paths, seconds, gas in PROVED.findall(said)
        if name not in cut
    }


def _say(words: list[str]) -> str:
    binaries = HARDHAT / "node_modules" / ".bin"
    env = {**os.environ, "FOUNDRY_PROFILE": "proofs", "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    try:
        done = subprocess.run(words, cwd=HARDHAT, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no end in {LIMIT} s: {' '.join(words)}\n"
    return re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)


def prove(contract: str, names: set[str]) -> list[str]:
    """Print what was proved; the names of what was not."""
    said = ""
    for name in sorted(name for name in names if name.startswith("check_")):
        words = [str(HALMOS), "--root", ".", "--forge-build-out", "cache/proofs/out", "--no-status"]
        words += ["--contract", contract, "--function", rf"{name}\("]
        said += _say([*words, "--loop", str(LOOP), "--solver-timeout-assertion", str(1000 * SECONDS)])
    if any(name.startswith("test_") for name in names):
        said += _say(["forge", "test", "--match-contract", f"^{contract}$"])
    proved = outcome(said)
    for name in sorted(names & proved.keys()):
        print(f"proved: {contract}.{name}  {proved[name]}", flush=True)
    missing = sorted(names - proved.keys())
    if missing:
        print(said)
    return [f"{contract}.{name}" for name in missing]


def main() -> int:
    proofs = wanted(sys.argv[1:])
    if not any(proofs.values()):
        raise SystemExit("no proofs of that name")
    built = _say(["forge", "build", "--force"])
    if "Compiler run successful" not in built:
        raise SystemExit(built)
    missing = [name for contract, names in proofs.items() for name in prove(contract, names)]
    for name in missing:
        print(f"not proved: {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
