"""What a policy agent is asked, and what its answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
import trio.testing

from gateway.errors import ConfigurationError
from gateway.remote.opa import LARGEST_ANSWER, PAUSE, PolicyAgent, Settings, read_answer
from gateway.wire.account import Right
from gateway.wire.services import Undecided
from gateway.wire.subject import Caller, Subject, TopicName
from tests.support.agent import HOST, Agent, serving

TOPIC = TopicName("public", "public/default", "persistent://public/default/orders")
OTHER = TopicName("public", "public/default", "persistent://public/default/other")


def client(topic: TopicName | None = TOPIC, principal: str = "alice") -> Subject:
    return Subject(Caller(listener="clients", host="192.0.2.7", principal=principal), topic)


class Clock:
    """A clock that stands still until it is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class House:
    """A policy agent's server, and what asks it."""

    built: ClassVar[list[House]] = []

    def __init__(self, agent: Agent, **settings: Any) -> None:
        self.agent = agent
        self.clock = Clock()
        self.logged: list[tuple[str, dict[str, Any]]] = []
        usual: dict[str, Any] = {
            "deadline": 5.0,
            "lasting": 10.0,
            "most": 100,
            "at_once": 8,
            "away": False,
        }
        self.asking = PolicyAgent(
            Settings(agent.url, **(usual | settings)),
            lambda event, **values: self.logged.append((event, values)),
            self.clock,
        )
        self.built.append(self)

    async def allows(self, subject: Subject, right: Right = Right.PRODUCE) -> bool:
        found = self.asking.judge(right, subject)
        if isinstance(found, Undecided):
            await found.ask()
            found = self.asking.judge(right, subject)
        assert isinstance(found, bool)
        return found


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while House.built:
        await House.built.pop().asking.close()


@pytest.fixture
def agent() -> Iterator[Agent]:
    """An agent that lets alice do everything."""
    agent = Agent(lambda asked: asked["principal"] == "alice")
    with serving(agent):
        yield agent


# -- questions ---------------------------------------------------------------------------------


async def test_the_input_says_who_wants_to_do_what(agent: Agent) -> None:
    assert await House(agent).allows(client())
    assert agent.asked == [
        {
            "action": "produce",
            "principal": "alice",
            "address": "192.0.2.7",
            "listener": "clients",
            "tenant": "public",
            "namespace": "public/default",
            "topic": "persistent://public/default/orders",
        }
    ]


async def test_a_subscription_is_part_of_the_input(agent: Agent) -> None:
    await House(agent).allows(client()._replace(subscription="billing"), Right.CONSUME)
    assert agent.asked[0]["subscription"] == "billing"


async def test_the_token_is_read_for_each_question(agent: Agent, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    house = House(agent, token=token)
    await house.allows(client())
    token.write_text("second\n")
    await house.allows(client(OTHER))
    assert agent.tokens == ["Bearer first", "Bearer second"]


async def test_an_answer_is_known_for_a_while(agent: Agent) -> None:
    house = House(agent)
    assert await house.allows(client())
    assert not await house.allows(client(principal="bob"))
    house.clock.now += 9.9
    assert await house.allows(client())
    assert not await house.allows(client(principal="bob"))
    assert len(agent.asked) == 2
    house.clock.now += 0.1
    agent.decide = lambda _: False
    assert not await house.allows(client())
    assert len(agent.asked) == 3


async def test_partitions_share_the_answer_about_their_topic(agent: Agent) -> None:
    house = House(agent)
    for number in range(3):
        partition = TOPIC._replace(partition=f"{TOPIC.whole}-partition-{number}")
        assert await house.allows(client(partition))
    assert len(agent.asked) == 1


async def test_many_who_wait_for_one_answer_ask_once(agent: Agent) -> None:
    house, allowed = House(agent), []

    async def ask() -> None:
        allowed.append(await house.allows(client()))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    assert allowed == [True] * 20
    assert len(agent.asked) == 1


async def test_who_gives_up_leaves_the_question_to_the_others(agent: Agent) -> None:
    house, allowed = House(agent), []
    agent.may_answer.clear()

    async def ask() -> None:
        allowed.append(await house.allows(client()))

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as gives_up:
            async with trio.open_nursery() as impatient:
                impatient.start_soon(ask)
                await until(lambda: agent.under_way == 1)
                again = house.asking.judge(Right.PRODUCE, client())
                assert isinstance(again, Undecided)
                nursery.start_soon(again.ask)
                await trio.testing.wait_all_tasks_blocked(0.01)
                gives_up.cancel()
        agent.may_answer.set()
    assert allowed == []
    assert await house.allows(client())


# -- bounds ------------------------------------------------------------------------------------


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110 — in another thread
        await trio.sleep(0.01)


async def ask_of(house: House, principal: str, number: int) -> None:
    topic = TOPIC._replace(whole=f"{TOPIC.whole}-{principal}-{number}")
    await house.allows(client(topic, principal))


async def test_one_principal_does_not_keep_others_from_asking(agent: Agent) -> None:
    house = House(agent, deadline=20.0)
    agent.may_answer.clear()
    async with trio.open_nursery() as nursery:
        for number in range(30):
            nursery.start_soon(ask_of, house, "mallory", number)
        await until(lambda: agent.under_way == 2)
        nursery.start_soon(ask_of, house, "alice", 0)
        await until(lambda: agent.under_way == 3)
        assert [it["principal"] for it in agent.asked] == ["mallory", "mallory", "alice"]
        agent.may_answer.set()
    assert agent.most_under_way <= 3


async def test_questions_under_way_have_a_bound(agent: Agent) -> None:
    house = House(agent, at_once=4, deadline=20.0)
    agent.may_answer.clear()
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask_of, house, f"user-{number}", 0)
        await until(lambda: agent.under_way == 4)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert agent.under_way == 4
        agent.may_answer.set()
    assert len(agent.asked) == 10


async def test_nothing_is_kept_of_principals_that_asked(agent: Agent) -> None:
    house = House(agent)
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask_of, house, f"user-{number}", 0)
    assert not house.asking._own_turns
    assert not house.asking._under_way


async def test_known_answers_have_a_bound(agent: Agent) -> None:
    house = House(agent, most=3)
    for number in range(10):
        await ask_of(house, "alice", number)
    assert house.asking.figures.known == 3


# -- an agent that is away ---------------------------------------------------------------------

BROKEN: dict[str, tuple[int, bytes]] = {
    "error": (500, b'{"code": "internal_error"}'),
    "unauthorized": (401, b"{}"),
    "redirect": (302, b""),
    "no JSON": (200, b"<html>"),
    "a list": (200, b"[true]"),
    "a word": (200, b'{"result": "yes"}'),
    "a number": (200, b'{"result": 1}'),
    "null": (200, b'{"result": null}'),
    "deep": (200, b'{"result": ' + b"[" * 20_000),
    "endless": (200, b" " * (LARGEST_ANSWER + 1)),
}


@pytest.mark.parametrize("away", [False, True], ids=["denies", "allows"])
@pytest.mark.parametrize("broken", list(BROKEN))
async def test_a_stated_answer_takes_the_place_of_none(
    agent: Agent, broken: str, away: bool
) -> None:
    agent.status, agent.said = BROKEN[broken]
    house = House(agent, away=away)
    assert await house.allows(client()) is away
    assert house.logged[0][0] == "policy_agent_unavailable"
    assert house.asking.figures.failed == 1


@pytest.mark.parametrize("away", [False, True], ids=["denies", "allows"])
async def test_a_silent_agent_is_given_up(agent: Agent, away: bool) -> None:
    agent.may_answer.clear()
    house = House(agent, away=away, deadline=0.05)
    assert await house.allows(client()) is away
    assert house.logged == [
        ("policy_agent_unavailable", {"error": "no answer in 0.05 s", "allows": away})
    ]


async def test_nobody_waits_for_an_agent_that_just_failed(agent: Agent) -> None:
    agent.status = 500
    house = House(agent)
    for number in range(5):
        await ask_of(house, "alice", number)
    assert len(agent.asked) == 1
    # The first is told what is stated too, which is not kept as an answer.
    assert house.asking.figures.stated == 5
    agent.status = 200
    house.clock.now += PAUSE
    assert await house.allows(client())
    assert [event for event, _ in house.logged] == [
        "policy_agent_unavailable",
        "policy_agent_back",
    ]


async def test_what_is_known_stays_known_while_the_agent_is_away(agent: Agent) -> None:
    house = House(agent)
    assert await house.allows(client())
    agent.status = 500
    assert not await house.allows(client(OTHER))
    assert await house.allows(client())


async def test_nobody_listens(agent: Agent) -> None:
    agent.port = 1
    house = House(agent)
    assert not await house.allows(client())
    assert "connect" in str(house.logged[0][1]["error"])


async def test_a_missing_token_is_a_failure(agent: Agent, tmp_path: Path) -> None:
    house = House(agent, token=tmp_path / "token")
    assert not await house.allows(client())
    assert agent.asked == []


async def test_a_file_without_authorities_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    with pytest.raises(ConfigurationError):
        PolicyAgent(Settings(f"https://{HOST}", 1.0, 1.0, 100, 1, False, tmp_path / "ca"))


# -- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "allowed"),
    [
        ('{"result": true}', True),
        ('{"result": false}', False),
        ('{"result": {"allow": true, "reason": "friend"}}', True),
        ('{"result": {"allow": false}}', False),
        ('{"result": {}}', False),
        ('{"decision_id": "1"}', False),
        ("{}", False),
    ],
)
async def test_a_result_that_is_missing_allows_nothing(content: str, allowed: bool) -> None:
    assert read_answer(content.encode()) is allowed
