"""The API: what it shows, what it does, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from gateway.console.facts import Draining
from gateway.console.feed import MOST_READERS
from gateway.console.guard import HEADERS, LARGEST_BODY
from gateway.wire.account import Action
from tests.unit.console.asking import ACTION, ask
from tests.unit.console.world import World, passed

ORDERS = "persistent://acme/web/orders"
TOKEN = b"a-token-of-some-length"


@pytest.fixture
def world() -> World:
    return World()


# -- reading ---------------------------------------------------------------------------------------


async def test_the_status_tells_of_all_parts(world: World) -> None:
    world.draining = Draining(10, 3)
    found = (await ask(world.app, "/api/v1/status")).json
    assert found["brokers"] == [{"cluster": "main", "broker": "b:1", "healthy": False}]
    assert found["drain"] == {"began": 10, "connections": 3}
    assert found["ready"] == ["draining"]
    assert found["denials"][0]["number"] == 4
    assert found["rules"][0]["rule"] == "r"
    assert found["expired"] == [{"rule": "r", "since": "2026-12-25T00:00:00Z"}]
    assert found["process"]["buffered_bytes"] == 7
    assert found["listeners"][0]["open"] == 3


async def test_connections_are_searched_sorted_and_paged(world: World) -> None:
    for number in range(1, 31):
        world.connect(number, "bob" if number % 2 else "alice")
    world.open(ORDERS, connection=7)
    world.open(ORDERS, Action.CONSUME, connection=7)
    query = "search=BOB&sort=id&descending=false&limit=3&offset=2"
    found = (await ask(world.app, f"/api/v1/connections?{query}")).json
    assert (found["total"], found["matching"]) == (30, 15)
    assert [it["id"] for it in found["rows"]] == [5, 7, 9]
    assert (found["rows"][1]["producers"], found["rows"][1]["consumers"]) == (1, 1)


async def test_a_column_that_some_rows_lack_can_be_sorted_by(world: World) -> None:
    world.connect(1)
    world.callers.append(world.callers[0]._replace(connection=2, principal=None))
    found = (await ask(world.app, "/api/v1/connections?sort=principal")).json
    assert [it["id"] for it in found["rows"]] == [1, 2]


async def test_one_connection_has_its_producers_and_consumers(world: World) -> None:
    world.connect(7)
    account = world.open(ORDERS, connection=7)
    passed(account, 3, 30)
    found = (await ask(world.app, "/api/v1/connections/7")).json
    assert found["accounts"] == [
        {
            "action": "produce",
            "topic": ORDERS,
            "subscription": None,
            "messages": 3,
            "bytes": 30,
            "held_bytes": 0,
        }
    ]
    world.book.close(account)
    assert (await ask(world.app, "/api/v1/connections/7")).json["accounts"] == []
    assert (await ask(world.app, "/api/v1/connections/8")).status == 404


async def test_topics_have_their_totals(world: World) -> None:
    passed(world.open(ORDERS), 3, 30)
    passed(world.open(ORDERS, Action.CONSUME), 2, 20)
    passed(world.open("persistent://globex/web/x"), 1, 90)
    found = (await ask(world.app, "/api/v1/topics?sort=bytes_in")).json
    assert [it["topic"] for it in found["rows"]] == ["persistent://globex/web/x", ORDERS]
    orders = found["rows"][1]
    assert (orders["messages_in"], orders["bytes_in"], orders["messages_out"]) == (3, 30, 2)


async def test_the_rest_is_answered(world: World) -> None:
    assert (await ask(world.app, "/api/v1/configuration")).json == {"text": "version: 1\n"}
    assert (await ask(world.app, f"/api/v1/slowest?topic={ORDERS}")).json == {"sends": []}


async def test_the_document_names_each_path(world: World) -> None:
    found = (await ask(world.app, "/api/v1/openapi.json")).json
    assert found["openapi"].startswith("3.1")
    for path, methods in found["paths"].items():
        for method in methods:
            real = path.replace("{id}", "7")
            if real == "/api/v1/feed":
                continue
            answer = await ask(world.app, real, method.upper(), ACTION, b"{}")
            assert answer.status in (200, 400, 404), path
            assert "there is nothing here" not in answer.body.decode()


# -- doing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        ("connections/7/close", None, ("close", 7)),
        ("drain", None, ("drain",)),
        ("reload", None, ("reload",)),
        ("log", {"level": "error", "seconds": 5}, ("level", ["error", None, 5.0])),
        ("log", {"level": "info", "event": "x"}, ("level", ["info", "x", 300.0])),
        ("trace", {"client": "192.0.2.7"}, ("trace", ["192.0.2.7/32", None, 300.0])),
        (
            "trace",
            {"client": "2001:db8::/32", "seconds": 1},
            ("trace", ["2001:db8::/32", None, 1.0]),
        ),
        ("trace", {"principal": "alice"}, ("trace", [None, "alice", 300.0])),
    ],
)
async def test_an_action_is_carried_out(
    path: str, body: object, asked: tuple[object, ...], world: World
) -> None:
    sent = b"" if body is None else json.dumps(body).encode()
    answer = await ask(world.app, f"/api/v1/{path}", "POST", ACTION, sent)
    assert answer.status == 200
    assert world.done == [asked]


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("log", b"{}", "level: is not one of debug, info, warning, error"),
        ("log", b'{"level": "info", "event": 7}', "event: is not the name of a log event"),
        ("log", b"", "the body is no JSON"),
        ("log", b"[" * 4000, "the body is no JSON"),
        ("log", b"[]", "the body is no JSON object"),
        ("log", b'{"level": "info", "seconds": 3601}', "seconds: is not a number above 0, up to"),
        ("log", b'{"level": "info", "seconds": true}', "seconds: is not a number above 0, up to"),
        ("log", b'{"level": "info", "seconds": NaN}', "seconds: is not a number above 0, up to"),
        ("trace", b'{"client": "everybody"}', "client: is neither an address nor a network"),
        ("trace", b'{"principal": 7}', "principal: is not a name"),
        ("trace", b"{}", "the body names neither a client nor a principal, or both"),
        (
            "trace",
            b'{"client": "192.0.2.7", "principal": "alice"}',
            "the body names neither a client nor a principal, or both",
        ),
    ],
)
async def test_a_body_that_is_wrong_is_explained(
    path: str, body: bytes, told: str, world: World
) -> None:
    answer = await ask(world.app, f"/api/v1/{path}", "POST", ACTION, body)
    assert answer.status == 400
    assert answer.json["error"].startswith(told)
    assert world.done == []


@pytest.mark.parametrize(
    "query", ["sort=x", "limit=-1", "limit=1001", "limit=x", "offset=٣", "descending=yes"]
)
async def test_a_query_that_is_wrong_is_explained(query: str, world: World) -> None:
    answer = await ask(world.app, f"/api/v1/connections?{query}")
    assert answer.status == 400
    assert answer.json["error"].startswith(query.partition("=")[0])


@pytest.mark.parametrize(("path", "status"), [("connections/7/close", 404), ("reload", 409)])
async def test_what_cannot_be_done_is_said(path: str, status: int) -> None:
    world = World(has_rules=False)
    world.found = False
    answer = await ask(world.app, f"/api/v1/{path}", "POST", ACTION)
    assert answer.status == status
    assert answer.json["error"]


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/api/v1/nothing", "GET", 404), ("/x", "GET", 404), ("/api/v1/drain", "GET", 405)],
)
async def test_nothing_else_is_there(path: str, method: str, status: int, world: World) -> None:
    answer = await ask(world.app, path, method)
    assert answer.status == status
    assert answer.json["error"]


# -- the guard -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js", "/api/v1/status", "/nothing"])
async def test_each_answer_keeps_other_pages_out(path: str, world: World) -> None:
    answer = await ask(world.app, path)
    for name, value in HEADERS:
        assert answer.headers[name.decode()] == value.decode()
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.x:80"])
async def test_a_name_that_was_made_to_mean_this_machine_is_refused(
    host: str, world: World
) -> None:
    answer = await ask(world.app, "/api/v1/status", headers={"host": host})
    assert answer.status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8090", "127.0.0.1", "[::1]:8090"])
async def test_this_machine_is_reached_as_such(host: str, world: World) -> None:
    assert (await ask(world.app, "/api/v1/status", headers={"host": host})).status == 200


async def test_a_form_of_another_page_does_nothing(world: World) -> None:
    answer = await ask(world.app, "/api/v1/drain", "POST")
    assert answer.status == 403
    assert world.done == []


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": str(LARGEST_BODY + 1)},
        {"content-length": "x"},
        {"content-length": "1", "transfer-encoding": "chunked"},
    ],
)
async def test_a_body_is_bounded(headers: dict[str, str], world: World) -> None:
    answer = await ask(world.app, "/api/v1/log", "POST", ACTION | headers)
    assert answer.status == 413


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (f"Bearer {TOKEN.decode()}", 200),
        (f"bearer  {TOKEN.decode()}", 200),
        ("", 401),
        (f"Basic {TOKEN.decode()}", 401),
        (TOKEN.decode(), 401),
        (f"Bearer {TOKEN.decode()}x", 401),
        (f"Bearer {TOKEN.decode()[:-1]}", 401),
        ("Bearer", 401),
    ],
)
async def test_the_api_needs_its_token(shown: str, status: int) -> None:
    world = World(TOKEN, is_public=True)
    headers = {"authorization": shown, "host": "gateway.internal"} | ACTION
    assert (await ask(world.app, "/api/v1/status", headers=headers)).status == status
    answer = await ask(world.app, "/api/v1/drain", "POST", headers)
    assert answer.status == status
    assert world.done == ([("drain",)] if status == 200 else [])


async def test_the_page_itself_needs_none() -> None:
    world = World(TOKEN, is_public=True)
    assert (await ask(world.app, "/", headers={"host": "gateway.internal"})).status == 200


# -- the feed --------------------------------------------------------------------------------------


def data(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.split(b"data: ")[1])
    return found


async def test_a_reader_gets_the_history_and_then_each_second(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    account = world.open(ORDERS)

    async def time() -> None:
        while True:
            world.now = trio.current_time()
            await trio.sleep(0.1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.feed.run)
        nursery.start_soon(time)
        events = world.feed.events()
        first = await anext(events)
        assert first.startswith(b"event: history\n")
        await anext(events)
        passed(account, 5, 50)
        second = data(await anext(events))
        assert second["now"]["to_broker"]["messages"] == pytest.approx(5, rel=0.2)
        assert {"rules", "latency", "brokers", "process", "drain"} <= second.keys()
        await events.aclose()  # type: ignore[attr-defined]
        await trio.sleep(5)
        looks = len(world.views.history)
        await trio.sleep(5)
        assert len(world.views.history) == looks  # nobody looks
        events = world.feed.events()
        assert len(data(await anext(events))["seconds"]) == looks
        await events.aclose()  # type: ignore[attr-defined]
        nursery.cancel_scope.cancel()


async def test_readers_are_bounded(world: World) -> None:
    world.feed._readers = MOST_READERS
    assert (await ask(world.app, "/api/v1/feed")).status == 503
