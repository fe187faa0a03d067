"""Members of groups, and the rounds by which they share partitions. The clock is the tests' own."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.lab.kafka import groups
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.groups import LONGEST_ID, MOST_MEMBERS, MOST_METADATA
from tests.unit.lab.kafka.playbook import Body, Brokers, Client, errors

GROUP = "g"
SESSION, REBALANCE = 10.0, 60.0
"""Seconds."""


class Person:
    """A member of the group, by a connection of its own. `joined`, `synced`: the last answers."""

    def __init__(self, brokers: Brokers, instance: str | None = None, *likes: str) -> None:
        self.client = brokers.coordinator(GROUP)
        self.id, self.generation, self.instance = "", -1, instance
        self.likes = likes or ("range",)
        self.joined: Body | None = None
        self.synced: Body | None = None

    async def join(self, version: int = 9, **fields: Any) -> Body:
        """Join, with the id that is given at first."""
        self.joined = None
        told = await self._join(version, **fields)
        if told["ErrorCode"] == Error.MEMBER_ID_REQUIRED:
            self.id = told["MemberId"]
            told = await self._join(version, **fields)
        self.id, self.generation, self.joined = told["MemberId"], told["GenerationId"], told
        return told

    async def _join(self, version: int, **fields: Any) -> Body:
        body = {
            "GroupId": GROUP,
            "SessionTimeoutMs": int(SESSION * 1000),
            "RebalanceTimeoutMs": int(REBALANCE * 1000),
            "MemberId": self.id,
            "GroupInstanceId": self.instance,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": it, "Metadata": it.encode()} for it in self.likes],
        }
        return await self.client.ask(Key.JOIN_GROUP, version, **body | fields)

    async def sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Body:
        self.synced = None
        told = [{"MemberId": id, "Assignment": it} for id, it in (assignments or {}).items()]
        self.synced = await self.client.ask(
            Key.SYNC_GROUP, **self._who() | {"Assignments": told} | fields
        )
        return self.synced

    async def heartbeat(self, **fields: Any) -> int:
        told = await self.client.ask(Key.HEARTBEAT, **self._who() | fields)
        return int(told["ErrorCode"])

    async def leave(self) -> Body:
        members = [{"MemberId": self.id, "GroupInstanceId": self.instance}]
        return await self.client.ask(Key.LEAVE_GROUP, GroupId=GROUP, Members=members)

    def _who(self) -> Body:
        return {
            "GroupId": GROUP,
            "GenerationId": self.generation,
            "MemberId": self.id,
            "GroupInstanceId": self.instance,
        }


@pytest.fixture
async def pair(brokers: Brokers, nursery: trio.Nursery) -> tuple[Person, Person]:
    """Return the leader and another member of a stable group."""
    first, second = Person(brokers), Person(brokers)
    await first.join()
    nursery.start_soon(second.join)
    await wait_all_tasks_blocked()
    await first.join()
    await wait_all_tasks_blocked()
    nursery.start_soon(second.sync)
    await wait_all_tasks_blocked()
    assert second.synced is None
    await first.sync({first.id: b"one", second.id: b"two"})
    await wait_all_tasks_blocked()
    return first, second


@pytest.mark.parametrize("version", range(10))
async def test_in_each_version_a_single_member_leads(brokers: Brokers, version: int) -> None:
    person = Person(brokers)
    told = await person.join(version)
    assert (told["ErrorCode"], told["GenerationId"], told["ProtocolName"]) == (0, 1, "range")
    assert told["Leader"] == told["MemberId"] == person.id
    assert [(it["MemberId"], it["Metadata"]) for it in told["Members"]] == [(person.id, b"range")]
    told = await person.sync({person.id: b"all"})
    assert (told["ErrorCode"], told["Assignment"]) == (0, b"all")


async def test_members_get_what_the_leader_says(pair: tuple[Person, Person]) -> None:
    first, second = pair
    assert first.joined is not None
    assert second.joined is not None
    assert second.joined["Leader"] == first.id
    assert {it["MemberId"] for it in first.joined["Members"]} == {first.id, second.id}
    assert second.joined["Members"] == []
    assert first.generation == second.generation == 2
    assert first.synced is not None
    assert second.synced is not None
    assert (first.synced["Assignment"], second.synced["Assignment"]) == (b"one", b"two")
    assert (await second.sync())["Assignment"] == b"two"
    assert [await it.heartbeat() for it in pair] == [0, 0]


async def test_a_new_member_has_the_others_join_again(
    brokers: Brokers, pair: tuple[Person, Person], nursery: trio.Nursery
) -> None:
    third = Person(brokers)
    nursery.start_soon(third.join)
    await wait_all_tasks_blocked()
    assert third.joined is None
    for person in pair:
        assert await person.heartbeat() == Error.REBALANCE_IN_PROGRESS
        assert (await person.sync())["ErrorCode"] == Error.REBALANCE_IN_PROGRESS
        nursery.start_soon(person.join)
    await wait_all_tasks_blocked()
    assert third.generation == 3
    assert {it.generation for it in pair} == {3}


async def test_a_member_that_does_not_join_again_in_time_is_left_out(
    autojump_clock: MockClock, brokers: Brokers, pair: tuple[Person, Person], nursery: trio.Nursery
) -> None:
    first, second = pair
    third = Person(brokers)
    nursery.start_soon(third.join)
    nursery.start_soon(first.join)
    for _ in range(7):  # it says that it is there, but does not join
        await trio.sleep(SESSION - 1)
        last = await second.heartbeat()
    assert last == Error.UNKNOWN_MEMBER_ID
    assert third.generation == first.generation == 3


async def test_a_silent_member_is_noticed_by_the_others(
    autojump_clock: MockClock, pair: tuple[Person, Person]
) -> None:
    first, second = pair
    await trio.sleep(SESSION - 1)
    assert await first.heartbeat() == Error.NONE
    await trio.sleep(2)
    assert await first.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert await second.heartbeat() == Error.UNKNOWN_MEMBER_ID
    assert (await first.join())["GenerationId"] == 3


async def test_a_leader_that_is_silent_does_not_hold_the_others(
    autojump_clock: MockClock, pair: tuple[Person, Person], nursery: trio.Nursery
) -> None:
    first, second = pair
    nursery.start_soon(second.join, 9)
    await first.join()
    await wait_all_tasks_blocked()
    assert (await second.sync())["ErrorCode"] == Error.REBALANCE_IN_PROGRESS
    told = await second.join()
    assert (told["Leader"], told["GenerationId"]) == (second.id, 4)


async def test_who_leaves_is_gone_at_once(pair: tuple[Person, Person]) -> None:
    first, second = pair
    told = await first.leave()
    assert errors([told, *told["Members"]]) == [0, 0]
    assert await second.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert (await second.join())["Leader"] == second.id
    told = await first.leave()
    assert errors([told, *told["Members"]]) == [0, Error.UNKNOWN_MEMBER_ID]


async def test_before_version_3_one_member_leaves(brokers: Brokers) -> None:
    person = Person(brokers)
    await person.join()
    for error in (Error.NONE, Error.UNKNOWN_MEMBER_ID):
        told = await person.client.ask(Key.LEAVE_GROUP, 2, GroupId=GROUP, MemberId=person.id)
        assert told["ErrorCode"] == error


async def test_a_member_that_knows_all_is_told_it_again(pair: tuple[Person, Person]) -> None:
    _, second = pair
    told = await second.join()
    assert (told["ErrorCode"], told["GenerationId"]) == (0, 2)


async def test_a_member_that_wants_something_else_begins_a_round(
    pair: tuple[Person, Person], nursery: trio.Nursery
) -> None:
    first, second = pair
    second.likes = ("range", "sticky")
    nursery.start_soon(second.join)
    await wait_all_tasks_blocked()
    assert await first.heartbeat() == Error.REBALANCE_IN_PROGRESS


async def test_the_group_takes_what_most_like_of_what_all_can(
    brokers: Brokers, nursery: trio.Nursery
) -> None:
    likes = (("c", "b", "a"), ("a", "b"), ("d", "b", "a"))
    people = [Person(brokers, None, *it) for it in likes]
    await people[0].join()
    for person in people[1:]:
        nursery.start_soon(person.join)
        await wait_all_tasks_blocked()
    await people[0].join()
    await wait_all_tasks_blocked()
    assert {it.joined["ProtocolName"] for it in people if it.joined} == {"b"}


@pytest.mark.parametrize(
    "fields", [{"ProtocolType": "connect"}, {"Protocols": []}, {"ProtocolType": ""}]
)
async def test_who_fits_none_of_the_others_is_refused(
    brokers: Brokers, pair: tuple[Person, Person], fields: Body
) -> None:
    told = await Person(brokers).join(**fields)
    assert told["ErrorCode"] == Error.INCONSISTENT_GROUP_PROTOCOL
    told = await Person(brokers, None, "other").join()
    assert told["ErrorCode"] == Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"GroupId": ""}, Error.INVALID_GROUP_ID),
        ({"SessionTimeoutMs": 0}, Error.INVALID_SESSION_TIMEOUT),
        ({"SessionTimeoutMs": 1_800_001}, Error.INVALID_SESSION_TIMEOUT),
        ({"MemberId": "me-1"}, Error.UNKNOWN_MEMBER_ID),
        ({"GroupInstanceId": "x" * (LONGEST_ID + 1)}, Error.INVALID_REQUEST),
        ({"Protocols": [{"Name": "a", "Metadata": bytes(MOST_METADATA)}]}, Error.INVALID_REQUEST),
    ],
)
async def test_improper_joins_are_refused(brokers: Brokers, fields: Body, error: Error) -> None:
    person = Person(brokers)
    if fields.get("GroupId") == "":
        person.client = brokers.coordinator("")
    assert (await person.join(**fields))["ErrorCode"] == error


async def test_a_group_has_a_most_of_members(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_MEMBERS > 1
    monkeypatch.setattr(groups, "MOST_MEMBERS", 1)
    person = Person(brokers)
    assert (await person.join())["ErrorCode"] == Error.NONE
    assert (await Person(brokers).join())["ErrorCode"] == Error.GROUP_MAX_SIZE_REACHED
    assert (await person.join())["ErrorCode"] == Error.NONE


async def test_there_is_a_most_of_groups(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_GROUPS", 0)
    assert (await Person(brokers).join())["ErrorCode"] == Error.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"GenerationId": 1}, Error.ILLEGAL_GENERATION),
        ({"MemberId": "nobody"}, Error.UNKNOWN_MEMBER_ID),
        ({"GroupInstanceId": "nobody"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
async def test_who_is_no_member_of_this_generation_is_told(
    pair: tuple[Person, Person], fields: Body, error: Error
) -> None:
    assert await pair[0].heartbeat(**fields) == error
    assert (await pair[0].sync(**fields))["ErrorCode"] == error


@pytest.mark.parametrize("fields", [{"ProtocolType": "connect"}, {"ProtocolName": "other"}])
async def test_a_sync_of_another_protocol_is_refused(
    pair: tuple[Person, Person], fields: Body
) -> None:
    assert (await pair[0].sync(**fields))["ErrorCode"] == Error.INCONSISTENT_GROUP_PROTOCOL


# -- static members ----------------------------------------------------------------------------


async def test_a_static_member_that_comes_back_fences_its_former_self(brokers: Brokers) -> None:
    before = Person(brokers, "s-1")
    await before.join()
    after = Person(brokers, "s-1")
    told = await after.join()
    assert (told["ErrorCode"], len(told["Members"])) == (0, 1)
    assert after.id != before.id
    before.generation = after.generation
    assert await before.heartbeat() == Error.FENCED_INSTANCE_ID
    assert (await before.join())["ErrorCode"] == Error.FENCED_INSTANCE_ID
    assert await after.heartbeat() == Error.NONE


async def test_a_static_member_can_be_removed_by_its_instance_alone(brokers: Brokers) -> None:
    person = Person(brokers, "s-1")
    await person.join()
    person.id = ""
    told = await person.leave()
    assert errors(told["Members"]) == [Error.NONE]


# -- ids that are given first ------------------------------------------------------------------


async def test_a_round_waits_for_who_was_given_an_id(
    autojump_clock: MockClock, brokers: Brokers
) -> None:
    first, second = Person(brokers), Person(brokers)
    promised = await second._join(9)
    assert promised["ErrorCode"] == Error.MEMBER_ID_REQUIRED
    start = trio.current_time()
    await first.join()
    assert trio.current_time() - start == pytest.approx(SESSION)
    second.id = promised["MemberId"]
    assert (await second.join())["ErrorCode"] == Error.UNKNOWN_MEMBER_ID


# -- coordinators, and who looks ---------------------------------------------------------------


async def test_a_broker_that_is_not_the_coordinator_says_so(brokers: Brokers) -> None:
    person = Person(brokers)
    await person.join()
    other = 3 - person.client.session.node
    person.client = brokers.client(other)
    wrong = Error.NOT_COORDINATOR
    assert (await person.join())["ErrorCode"] == wrong
    assert (await person.sync())["ErrorCode"] == wrong
    assert await person.heartbeat() == wrong
    assert (await person.leave())["ErrorCode"] == wrong
    told = await person.client.ask(Key.DESCRIBE_GROUPS, Groups=[GROUP])
    assert errors(told["Groups"]) == [wrong]
    assert (await person.client.ask(Key.LIST_GROUPS))["Groups"] == []


async def test_a_group_goes_on_at_another_coordinator(brokers: Brokers) -> None:
    person = Person(brokers)
    await person.join()
    brokers.cluster.coordinators[GROUP] = other = 3 - person.client.session.node
    assert await person.heartbeat() == Error.NOT_COORDINATOR
    person.client = brokers.client(other)
    assert await person.heartbeat() == Error.NONE


@pytest.mark.parametrize("version", range(7))
async def test_each_version_describes_a_group(
    brokers: Brokers, pair: tuple[Person, Person], version: int
) -> None:
    told = await pair[0].client.ask(Key.DESCRIBE_GROUPS, version, Groups=[GROUP])
    (group,) = told["Groups"]
    assert (group["GroupState"], group["ProtocolData"]) == ("Stable", "range")
    assert {it["MemberId"]: it["MemberAssignment"] for it in group["Members"]} == {
        pair[0].id: b"one",
        pair[1].id: b"two",
    }
    assert {(it["ClientId"], it["ClientHost"]) for it in group["Members"]} == {("me", "/127.0.0.9")}


@pytest.mark.parametrize(("version", "error"), [(5, 0), (6, Error.GROUP_ID_NOT_FOUND)])
async def test_a_group_that_is_not_there_is_dead(
    brokers: Brokers, version: int, error: int
) -> None:
    told = await brokers.coordinator("x").ask(Key.DESCRIBE_GROUPS, version, Groups=["x"])
    (group,) = told["Groups"]
    assert (group["GroupState"], group["ErrorCode"]) == ("Dead", error)


@pytest.mark.parametrize("version", range(6))
async def test_each_version_lists_groups(pair: tuple[Person, Person], version: int) -> None:
    told = await pair[0].client.ask(Key.LIST_GROUPS, version)
    assert [(it["GroupId"], it["ProtocolType"]) for it in told["Groups"]] == [(GROUP, "consumer")]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"StatesFilter": ["stable"]}, 1),
        ({"StatesFilter": ["Empty"]}, 0),
        ({"TypesFilter": ["Classic"]}, 1),
        ({"TypesFilter": ["share"]}, 0),
    ],
)
async def test_lists_are_filtered(pair: tuple[Person, Person], fields: Body, count: int) -> None:
    told = await pair[0].client.ask(Key.LIST_GROUPS, **fields)
    assert len(told["Groups"]) == count


async def test_a_group_whose_members_are_silent_is_empty(
    autojump_clock: MockClock, pair: tuple[Person, Person]
) -> None:
    client: Client = pair[0].client
    await trio.sleep(SESSION + 1)
    told = await client.ask(Key.LIST_GROUPS)
    assert [it["GroupState"] for it in told["Groups"]] == ["Empty"]
