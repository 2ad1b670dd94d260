"""What owners and operators do wrong: each mistake is one line with its facts, an exit code, and nothing sent."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from node.cli import main
from node.devnet.people import Person, give_coins
from node.wallet import NotEnough, open_wallet
from protocol.chain.errors import Reverted
from protocol.core.times import until
from protocol.core.units import TOKEN
from protocol.runtime.config import load_config
from protocol.store.database import open_store
from tests.helpers.market import World, open_nodes, open_world
from verifier.station import HomeConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")
OWNERS = 4  # a job of the dev preset needs six


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("mistakes"), people=OWNERS) as made:
        yield made


async def gradmarket(person: Person, *arguments: str) -> Result:
    """A command as a person types it, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["--home", str(person.home), *arguments])


async def refused(person: Person, *arguments: str, code: int = 1) -> str:
    """The one line that a command ends in."""
    done = await gradmarket(person, *arguments)
    assert done.exit_code == code, done.output + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gradmarket: ")
    return line


async def sent(world: World, person: Person) -> int:
    """Transactions of both keys so far."""
    w3 = world.bench.market.connection.w3
    counts = [await w3.eth.get_transaction_count(key.address) for key in (person.owner, person.operator)]
    return sum(counts)


async def newcomer(world: World, name: str, tokens: int = 0) -> Person:
    """A home with coins for gas and some tokens, and nothing on chain yet."""
    person = world.bench.person(name)
    for key in (person.owner, person.operator):
        await give_coins(world.bench.bank, key.address)
    mint = world.bench.market.dev_token.functions.mint(person.owner.address, tokens)
    await world.bench.bank.submit_and_confirm(f"mint:{name}", mint)
    return person


def edit(person: Person, old: str, new: str) -> None:
    path = person.home / "config.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# -- stake -------------------------------------------------------------------------------------------------------------


async def test_a_deposit_beyond_the_wallet_says_have_and_need_and_sends_nothing(world: World) -> None:
    person = await newcomer(world, "poor", 3 * TOKEN)
    line = await refused(person, "stake", "deposit", "3.5")
    assert line.endswith(f"stake deposit: {person.owner.address} has 3 tokens, needs 3.5")
    assert await sent(world, person) == 0


@pytest.mark.parametrize("amount", ["0", "-1", "1e3", "0.0000000000000000001", "much"])
async def test_an_amount_that_is_none_is_refused_before_anything_is_sent(world: World, amount: str) -> None:
    person = world.bench.people[0]
    before = await sent(world, person)
    line = await refused(person, "stake", "deposit", "--", amount)
    assert "amount" in line
    assert await sent(world, person) == before


async def test_more_than_what_is_free_cannot_be_withdrawn_and_the_lock_is_told(world: World) -> None:
    person = world.bench.people[0]
    before = await sent(world, person)
    line = await refused(person, "stake", "withdraw", "40.5")
    assert line.endswith("stake withdraw: 40 tokens are free, 40 are locked, asked for 40.5")
    assert await sent(world, person) == before


async def test_an_empty_stake_and_an_empty_credit_have_nothing_to_withdraw(world: World) -> None:
    person = await newcomer(world, "empty")
    assert "0 tokens are free, 0 are locked" in await refused(person, "stake", "withdraw")
    assert "has 0 tokens of credit" in await refused(person, "rewards", "withdraw")
    assert await sent(world, person) == 0


async def test_what_is_free_can_be_withdrawn_at_once(world: World) -> None:
    person = await newcomer(world, "leaver", 7 * TOKEN)
    assert (await gradmarket(person, "stake", "deposit", "7")).exit_code == 0
    assert "deposited 7  locked 0  free 7" in (await gradmarket(person, "stake", "show")).output
    assert (await gradmarket(person, "stake", "withdraw")).exit_code == 0
    assert await world.bench.market.token_balance(person.owner.address) == 7 * TOKEN


async def test_tickets_beyond_the_free_stake_or_below_one_are_refused(world: World) -> None:
    person = await newcomer(world, "small", 50 * TOKEN)
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_wallet(person.home, config, person.owner) as purse:
        await purse.register(person.operator, person.owner.address, "", bytes(32))
        await purse.deposit(50 * TOKEN)
        before = await sent(world, person)
        with pytest.raises(NotEnough, match=r"enroll: 50 tokens of stake are free, need 80"):
            await purse.enroll(person.operator.address, 2)
    output = await refused(person, "node", "init", "--stake", "50", "--ticket", "39.5")
    assert output.endswith("--ticket: 39.5 tokens make no ticket, need 40")
    assert await sent(world, person) == before


async def test_init_fills_up_to_whole_tickets_and_says_what_they_are_good_for(world: World) -> None:
    person = await newcomer(world, "seated", 3_000 * TOKEN)
    first = await gradmarket(person, "node", "init", "--stake", "2800", "--ticket", "119")
    said = "tickets: 2 of 40 tokens, good for 2 seats at once or more; 2 added, 2720 tokens of stake stay free"
    assert said in first.output
    more = await gradmarket(person, "node", "init", "--ticket", "2640")
    assert "tickets: 66 of 40 tokens" in more.output and "64 added, 160 tokens of stake stay free" in more.output
    again = await gradmarket(person, "node", "init", "--ticket", "100")
    assert "tickets: 66 of 40 tokens" in again.output and "; 0 added, 160 tokens" in again.output
    listed = (await gradmarket(person, "stake", "show")).output
    assert "deposited 2800  locked 2640  free 160" in listed and listed.count(": 40 enrolled") == 66
    held = await world.bench.market.tickets(person.owner.address)
    assert [ticket.amount for ticket in held] == 66 * [40 * TOKEN]
    async with open_wallet(person.home, load_config(person.home / "config.toml", HomeConfig), person.owner) as purse:
        assert await purse.exit_tickets() == 66
    held = await world.bench.market.tickets(person.owner.address)
    assert len({ticket.number for ticket in held if ticket.exit_at}) == 66


# -- registration ------------------------------------------------------------------------------------------------------


async def test_init_can_be_repeated_and_changes_nothing(world: World) -> None:
    person = await newcomer(world, "twice", 100 * TOKEN)
    arguments = ("node", "init", "--stake", "80", "--ticket", "40")
    first = await gradmarket(person, *arguments)
    assert first.exit_code == 0 and "is ready" in first.output
    before = await sent(world, person)
    again = await gradmarket(person, "node", "init", "--ticket", "40")
    assert again.exit_code == 0 and await sent(world, person) == before


async def test_init_leaves_the_address_that_a_running_node_announced(world: World) -> None:
    person, registry = world.bench.people[1], world.bench.market.operator_registry.functions
    call = registry.setEndpoint(person.operator.address, "http://127.0.0.1:7781")
    await world.sender(person.operator).submit_and_confirm("announce", call)
    assert (await gradmarket(person, "node", "init")).exit_code == 0
    entry = await world.bench.market.operator(person.operator.address)
    assert entry.endpoint == "http://127.0.0.1:7781"


async def test_a_payout_that_is_no_address_is_one_line(world: World) -> None:
    line = await refused(world.bench.people[1], "node", "init", "--payout", "0x1234")
    assert "payout '0x1234': expected an address" in line


async def test_an_operator_belongs_to_the_owner_that_named_it_first(world: World) -> None:
    taken, thief = world.bench.people[0], await newcomer(world, "thief")
    config = load_config(thief.home / "config.toml", HomeConfig)
    async with open_wallet(thief.home, config, thief.owner) as purse:
        with pytest.raises(Reverted, match="OperatorTaken") as refusal:
            await purse.register(taken.operator, thief.owner.address, "", bytes(32))
    assert refusal.value.arguments["owner"] == taken.owner.address.lower()


# -- jobs and claims ---------------------------------------------------------------------------------------------------


async def test_a_round_with_too_few_auditors_does_not_open_and_says_have_and_need(world: World) -> None:
    job = await world.post(world.job_terms(), salt=1)
    call = world.bench.market.round_book.functions.open(job)
    with pytest.raises(Reverted, match="TooFewAuditors") as refusal:
        await world.bench.bank.submit_and_confirm("open:few", call)
    live = {ticket.owner for ticket in await world.bench.market.tickets() if not ticket.exit_at}
    assert refusal.value.arguments == {"have": len(live), "need": 6}


async def open_job(world: World, salt: int) -> bytes:
    """A job with an open round: there are auditors enough for it."""
    while await world.bench.market.call(world.bench.market.ticket_book.functions.liveOwners()) < 6:
        await world.bench.settle_in(1)
    job = await world.post(world.job_terms(), salt)
    await world.bench.bank.submit_and_confirm(f"open:{salt}", world.bench.market.round_book.functions.open(job))
    return job


async def test_a_claim_beyond_the_stake_is_refused_with_have_and_need(world: World) -> None:
    market, terms = world.bench.market, world.job_terms()
    job = await open_job(world, salt=2)
    person = await newcomer(world, "stakeless", 20 * TOKEN)
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_wallet(person.home, config, person.owner) as purse:
        await purse.register(person.operator, person.owner.address, "", bytes(32))
    with pytest.raises(Reverted, match="StakeTooSmall") as refusal:
        call = market.round_book.functions.claim(job, 0, [0])
        await world.sender(person.operator).submit_and_confirm("claim:2", call)
    facts = refusal.value.arguments
    assert (facts["have"], facts["need"]) == (0, terms.bond_per_shard)


async def test_a_node_without_coins_takes_no_claim_and_names_what_is_missing(world: World) -> None:
    job = await open_job(world, salt=3)
    async with open_nodes(world, job, 2) as (node,):
        await world.bench.chain.rpc("anvil_setBalance", node.me, "0x1")
        task = asyncio.create_task(node.service.run())
        status = node.person.home / "status.json"
        for _ in range(200):
            await asyncio.sleep(0.05)
            if status.exists() and job.hex() in json.loads(status.read_bytes())["owners"]:
                break
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        idle = json.loads(status.read_bytes())["idle"]
        await world.bench.chain.rpc("anvil_setBalance", node.me, hex(10**18))
    assert f"{node.me} has 0.000000000000000001 coins for gas, a claim needs about 0." in idle
    shown = await gradmarket(node.person, "node", "status")
    assert "no new claim:" in shown.output and "coins for gas" in shown.output
    assert not any(claim.operator == node.me for claim in (await world.round(job)).claims)


# -- starting ----------------------------------------------------------------------------------------------------------


async def test_a_node_refuses_another_chain_with_its_own_exit_code(world: World) -> None:
    person = world.bench.person("elsewhere")
    edit(person, "id = 31337", "id = 1")
    for command in (("node", "run", "--quiet"), ("stake", "show"), ("stake", "deposit", "1"), ("verifier", "run")):
        assert "serves chain id 31337, expected 1" in await refused(person, *command, code=5)


async def test_a_wrong_password_is_told_at_once_with_its_own_exit_code(world: World) -> None:
    person = world.bench.person("forgetful")
    (person.home / "password").write_text("something else")
    for command in (("node", "run", "--quiet"), ("node", "init"), ("stake", "deposit", "1")):
        assert "password" in await refused(person, *command, code=4)


async def test_a_second_node_in_the_same_home_is_refused(world: World) -> None:
    person = world.bench.people[3]
    async with open_store(person.home / "state"):
        for command in (("node", "run", "--quiet"), ("verifier", "run", "--quiet")):
            assert "is in use by process" in await refused(person, *command, code=7)


async def test_one_operator_in_two_homes_is_told_at_once(world: World) -> None:
    async with open_nodes(world, None, 4) as (node,):
        twin = replace(node.person, home=node.person.home.parent / "twin")
        twin.home.mkdir()
        for name in ("config.toml", "password"):
            shutil.copy2(node.person.home / name, twin.home / name)
        shutil.copytree(node.person.home / "keys", twin.home / "keys")
        assert f"already runs at {node.server.url}" in await refused(twin, "node", "run", "--quiet")


async def test_a_chain_that_does_not_answer_has_its_own_exit_code(world: World) -> None:
    person = world.bench.person("offline")
    edit(person, world.bench.chain.url, "http://127.0.0.1:9")
    assert "the chain does not answer" in await refused(person, "stake", "show", code=6)


@pytest.mark.parametrize(
    ("old", "new", "words"), [("[serve]", "[sevre]", "did you mean serve?"), ("id =", "id", "TOML")]
)
async def test_a_mistake_in_the_configuration_is_one_line(world: World, old: str, new: str, words: str) -> None:
    person = world.bench.person(f"typist-{new.strip('[]')}")
    edit(person, old, new)
    assert words in await refused(person, "node", "run", "--quiet", code=3)


async def test_a_port_in_use_is_one_line(world: World) -> None:
    person = world.bench.people[3]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        edit(person, "port = 0", f"port = {port}")
        line = await refused(person, "node", "run", "--quiet")
        edit(person, f"port = {port}", "port = 0")
    assert f"cannot listen on 127.0.0.1 port {port}" in line and "choose another port" in line


async def test_a_node_that_no_peer_could_reach_does_not_start(world: World) -> None:
    person = world.bench.people[3]
    edit(person, 'host = "127.0.0.1"', 'host = "0.0.0.0"')
    line = await refused(person, "node", "run", "--quiet", code=3)
    edit(person, 'host = "0.0.0.0"', 'host = "127.0.0.1"')
    assert "serve.advertise is missing" in line


async def test_an_operator_that_nobody_registered_is_told_what_to_do(world: World) -> None:
    person = await newcomer(world, "unknown")
    line = await refused(person, "node", "run", "--quiet")
    assert f"operator {person.operator.address} is not registered: run `gradmarket node init`" in line
    assert await sent(world, person) == 0


async def test_a_deployment_of_another_chain_is_one_line(world: World, tmp_path: Path) -> None:
    person = world.bench.person("lost")
    book = json.loads((world.bench.folder / "deployment.json").read_text())
    book["contracts"]["RoundBook"] = "0x" + "00" * 19 + "01"
    (person.home / "wrong.json").write_text(json.dumps(book))
    edit(person, str(world.bench.folder / "deployment.json"), str(person.home / "wrong.json"))
    assert "RoundBook: no contract at" in await refused(person, "stake", "show")
    edit(person, "wrong.json", "missing.json")
    assert "missing.json: No such file" in await refused(person, "stake", "show")


async def test_an_exit_is_shown_with_its_end(world: World) -> None:
    person, market = world.bench.people[1], world.bench.market
    assert (await gradmarket(person, "node", "leave")).exit_code == 0
    (ticket,) = [t for t in await market.tickets() if t.owner == person.owner.address]
    shown = (await gradmarket(person, "stake", "show")).output
    assert f"ticket {ticket.number}: 40 exits {until(ticket.exit_at, await market.connection.now())}" in shown
    assert re.search(r"exits 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, in (10 min|9 min)", shown)
