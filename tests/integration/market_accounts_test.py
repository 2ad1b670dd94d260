"""Owners, keys and what one lets the other do: by call, by signature, for a time, and no longer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from node.cli import main
from node.devnet.people import Person, give_coins
from node.wallet import DelegationOver, open_wallet
from protocol.chain.errors import Reverted
from protocol.chain.signer import sign_delegation, sign_registration, sign_revocation
from protocol.core.delegation import Delegation, Domain
from protocol.core.operator import FOREVER, NOBODY, Operator, Scope
from protocol.runtime.config import load_config
from tests.integration.poster_fixtures import Bench, poster_bench
from verifier.station import HomeConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")
NEVER = 2**256 - 1
END_OF_2099 = 4102444799  # 2099-12-31 23:59:59 UTC


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with poster_bench(tmp_path_factory.mktemp("accounts")) as made:
        yield made


async def gradmarket(person: Person, *arguments: str) -> Result:
    """A command as a person types it, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["--home", str(person.home), *arguments])


async def done(person: Person, *arguments: str) -> str:
    result = await gradmarket(person, *arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


async def refused(person: Person, *arguments: str) -> str:
    """The one line that a command ends in."""
    result = await gradmarket(person, *arguments)
    assert result.exit_code == 1, result.output + result.stderr
    (line,) = result.stderr.strip().splitlines()
    return line


async def newcomer(bench: Bench, name: str) -> Person:
    person = bench.person(name)
    for key in (person.owner, person.operator):
        await give_coins(bench.bank, key.address)
    return person


async def entry(bench: Bench, person: Person) -> Operator:
    return await bench.market.operator(person.operator.address)


def purse(person: Person) -> Any:
    return open_wallet(person.home, load_config(person.home / "config.toml", HomeConfig), person.owner)


# -- calls of the owner ------------------------------------------------------------------------------------------------


async def test_an_operator_may_do_everything_for_ever_unless_its_owner_says_less(bench: Bench) -> None:
    person = await newcomer(bench, "usual")
    assert (await entry(bench, person)).owner == NOBODY
    await done(person, "node", "init")
    found = await entry(bench, person)
    assert (found.owner, found.scopes, found.expiry) == (person.owner.address, Scope.ALL, FOREVER)
    assert not found.revoked


async def test_init_without_options_keeps_what_was_narrowed(bench: Bench) -> None:
    person = await newcomer(bench, "careful")
    await done(person, "node", "init", "--scope", "train", "--scope", "audit", "--expires", "2099-12-31")
    narrowed = await entry(bench, person)
    assert (narrowed.scopes, narrowed.expiry) == (Scope.TRAIN | Scope.AUDIT, END_OF_2099)
    await done(person, "node", "init")
    assert await entry(bench, person) == narrowed
    await done(person, "node", "init", "--scope", "train", "--expires", "never")
    changed = await entry(bench, person)
    assert (changed.scopes, changed.expiry) == (Scope.TRAIN, FOREVER)


async def test_an_expiry_that_is_over_is_one_line_and_sends_nothing(bench: Bench) -> None:
    person = await newcomer(bench, "late")
    line = await refused(person, "node", "init", "--expires", "2020-01-01")
    assert "2020-01-01 23:59:59 UTC is over; name a later end with --expires, or never" in line
    assert (await entry(bench, person)).owner == NOBODY


async def test_a_delegation_that_ran_out_is_not_renewed_unasked(bench: Bench) -> None:
    person = await newcomer(bench, "short")
    async with purse(person) as wallet:
        expiry = await bench.market.connection.now() + 3
        await wallet.register(person.operator, person.owner.address, "", bytes(32), expiry=expiry)
        while await bench.market.connection.now() <= expiry:
            await asyncio.sleep(0.5)
            await give_coins(bench.bank, person.owner.address, 1)  # a block
        with pytest.raises(DelegationOver):
            await wallet.register(person.operator, person.owner.address, "", bytes(32))
        assert "is no longer delegated to: run" in await refused(person, "node", "run", "--quiet")
        await wallet.register(person.operator, person.owner.address, "", bytes(32), expiry=FOREVER)
    assert (await entry(bench, person)).is_active(await bench.market.connection.now())


async def test_a_revoked_operator_does_not_start_until_init_brings_it_back(bench: Bench) -> None:
    person = await newcomer(bench, "stolen")
    await done(person, "node", "init", "--scope", "audit")
    assert f"operator {person.operator.address} is revoked" in await done(person, "node", "revoke")
    line = await refused(person, "node", "run", "--quiet")
    assert f"operator {person.operator.address} is revoked: run `gradmarket node init`" in line
    await done(person, "node", "revoke", person.operator.address)
    await done(person, "node", "init")
    found = await entry(bench, person)
    assert not found.revoked and found.scopes == Scope.AUDIT


async def test_a_stranger_revokes_nobody(bench: Bench) -> None:
    person, stranger = await newcomer(bench, "steady"), await newcomer(bench, "stranger")
    await done(person, "node", "init")
    async with purse(stranger) as wallet:
        with pytest.raises(Reverted, match="NotTheOwner"):
            await wallet.revoke(person.operator.address)
    assert not (await entry(bench, person)).revoked


# -- signatures of an owner that sends nothing -------------------------------------------------------------------------


async def test_an_owner_without_a_coin_delegates_and_revokes_by_signing(bench: Bench) -> None:
    cold = bench.person("cold")
    market, registry = bench.market, bench.market.operator_registry
    domain = Domain(market.connection.chain_id, registry.address)
    wanted = Delegation(cold.owner.address, cold.operator.address, cold.owner.address, Scope.TRAIN, FOREVER)
    by_owner = (NEVER, sign_delegation(cold.owner, domain, wanted, 0, NEVER))
    by_operator = (NEVER, sign_registration(cold.operator, domain, wanted.owner, wanted.payout, 0, NEVER))
    message = (wanted.owner, wanted.operator, wanted.payout, int(wanted.scopes), wanted.expiry)
    call = registry.functions.registerFor(message, by_owner, by_operator)
    await bench.bank.submit_and_confirm("register:cold", call)
    found = await entry(bench, cold)
    assert (found.owner, found.payout, found.scopes) == (wanted.owner, wanted.payout, Scope.TRAIN)
    owner = registry.functions.ownerFor(wanted.operator, int(Scope.TRAIN))
    assert await market.call(owner) == wanted.owner
    with pytest.raises(Reverted, match="OutOfScope"):
        await market.call(registry.functions.ownerFor(wanted.operator, int(Scope.AUDIT)))

    with pytest.raises(Reverted, match="BadSignature"):
        await bench.bank.submit_and_confirm("register:again", call)
    end = (NEVER, sign_revocation(cold.owner, domain, wanted.operator, 1, NEVER))
    await bench.bank.submit_and_confirm("revoke:cold", registry.functions.revokeFor(wanted.operator, end))
    assert (await entry(bench, cold)).revoked
    assert await market.gas_balance(cold.owner.address) == 0


async def cold_and_warm(bench: Bench, name: str) -> tuple[Person, Person]:
    """An owner whose home knows no chain, and a device that has the operator's key alone."""
    cold, warm = bench.person(f"{name}-safe"), await newcomer(bench, f"{name}-device")
    edit(cold, bench.chain.url, "http://127.0.0.1:9")
    edit(warm, 'owner = "keys/owner.json"\n', "")
    return cold, warm


def edit(person: Person, old: str, new: str) -> None:
    path = person.home / "config.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


async def test_a_signed_file_goes_from_the_safe_to_the_device_and_the_device_works_for_the_safe(bench: Bench) -> None:
    cold, warm = await cold_and_warm(bench, "vault")
    device, paper = warm.operator.address, str(cold.home / "paper.json")
    said = await done(cold, "delegation", "sign", device, "--scope", "train", "--expires", "2099-12-31", "--out", paper)
    assert "signed with nonce 0" in said
    assert f"operator {device} of owner {cold.owner.address} is registered" in await done(
        warm, "delegation", "submit", paper
    )
    found = await entry(bench, warm)
    assert (found.owner, found.payout) == (cold.owner.address, cold.owner.address)
    assert (found.scopes, found.expiry) == (Scope.TRAIN, END_OF_2099)
    assert "signed with nonce 0, the owner's next is 1: sign it again" in await refused(
        warm, "delegation", "submit", paper
    )

    await done(cold, "delegation", "revoke", device, "--nonce", "1", "--out", paper)
    assert "is revoked" in await done(warm, "delegation", "submit", paper)
    assert (await entry(bench, warm)).revoked
    assert await bench.market.gas_balance(cold.owner.address) == 0


async def test_a_signed_file_for_another_device_or_market_is_one_line_and_sends_nothing(bench: Bench) -> None:
    cold, warm = await cold_and_warm(bench, "other")
    paper = cold.home / "paper.json"
    sign = ("delegation", "sign", warm.operator.address, "--out", str(paper))
    await done(cold, *sign[:2], bench.poster.operator.address, *sign[3:])
    line = await refused(warm, "delegation", "submit", str(paper))
    assert f"it is for operator {bench.poster.operator.address}, keys.operator is {warm.operator.address}" in line
    await done(cold, *sign)
    good = paper.read_text()
    paper.write_text(good.replace('"chain_id": 31337', '"chain_id": 1'))
    assert "it was signed for chain 1 and registry" in await refused(warm, "delegation", "submit", str(paper))
    paper.write_text(good.replace('"nonce": 0', '"nonce": 7'))
    assert "signed with nonce 7, the owner's next is 0" in await refused(warm, "delegation", "submit", str(paper))
    paper.write_text(re.sub(r'"deadline": \d+', '"deadline": 5', good))
    assert "it could be used until 1970-01-01 00:00:05 UTC" in await refused(warm, "delegation", "submit", str(paper))
    assert (await entry(bench, warm)).owner == NOBODY


async def test_a_signed_file_that_was_changed_is_refused_by_the_contract(bench: Bench) -> None:
    cold, warm = await cold_and_warm(bench, "forged")
    paper = cold.home / "paper.json"
    await done(cold, "delegation", "sign", warm.operator.address, "--scope", "train", "--out", str(paper))
    paper.write_text(paper.read_text().replace('"scopes": 1', '"scopes": 7'))
    result = await gradmarket(warm, "delegation", "submit", str(paper))
    assert result.exit_code == 8 and "BadSignature" in result.stderr
    assert (await entry(bench, warm)).owner == NOBODY


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"kind"', '"sort"', "kind"),
        ('"nonce": 0', '"nonce": -1', "Expected `int` >= 0"),
        ('"scopes": 7', '"scopes": 8', "Expected `int` <= 7"),
        ('"signature": "', '"signature": "xy', "non-hexadecimal"),
        ('"owner": "0x', '"owner": "', "is no checksummed address"),
        ("{", "", "malformed"),
    ],
)
async def test_a_file_that_is_no_delegation_is_one_line(bench: Bench, old: str, new: str, words: str) -> None:
    cold, warm = await cold_and_warm(bench, "typist-" + re.sub(r"\W", "", words))
    paper = cold.home / "paper.json"
    await done(cold, "delegation", "sign", warm.operator.address, "--out", str(paper))
    paper.write_text(paper.read_text().replace(old, new, 1))
    assert words in await refused(warm, "delegation", "submit", str(paper))
    paper.unlink()
    assert "No such file" in await refused(warm, "delegation", "submit", str(paper))
