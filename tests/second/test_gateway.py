"""The whole gateway in front of brokers that speak `memo`: see `conftest`."""

from __future__ import annotations

import os
import random
import signal

import trio
from structlog.testing import capture_logs

from gateway.wire.contract import Refusal
from tests.second.broker import HOST, Client, client
from tests.second.conftest import OpenHouse
from tests.second.memo import ANSWER, SIZE, Kind, error_of, frame, head_of, sections
from tests.second.session import TOO_OFTEN

LARGE = 7 * 1024 * 1024
"""Bytes, more than the largest stop frame may have."""


async def _script(it: Client, payload: bytes) -> bytes:
    """Say what clients say to one broker; return all that came back."""
    assert await it.put(("a", 3, b"first"), ("x", 1, b"small")) is None
    assert await it.put(("a", 1, payload), ("x", 2, b"")) is None
    assert await it.get("a", "x") == {"a": b"first" + payload, "x": b"small"}
    for size in range(20):
        await it.say(Kind.PUT, sections([("x", 1, payload[:size]), ("y", 2, payload[size:90])]))
    for _ in range(20):
        assert head_of(await it.frames.next())[1] == Kind.PUT | ANSWER
    assert await it.get("nothing", "there") == {}
    return bytes(it.frames.received)


async def test_all_bytes_pass_as_they_are(opened: OpenHouse) -> None:
    payload = random.Random(1).randbytes(LARGE)
    async with opened() as house:
        broker = house.brokers[0]
        async with client(house.places[0]) as it:
            through = await _script(it, payload)
        heard, broker.heard = broker.heard, []
        broker.stored.clear()
        async with client(broker.address) as it:
            assert await _script(it, payload) == through
        assert heard == broker.heard


async def test_the_first_put_of_a_topic_is_decided_whole_so_it_has_a_bound(
    opened: OpenHouse,
) -> None:
    async with opened() as house, client(house.places[0]) as it:
        large = frame(2, Kind.PUT, sections([("x", 1, bytes(LARGE))]))
        await it.frames.stream.send_all(large[:100])
        farewell = await it.frames.next()
        assert head_of(farewell) == (0, Kind.ERROR)
        assert error_of(farewell).refusal is Refusal.UNSUPPORTED
        assert len(house.brokers[0].heard) == 1


async def test_where_leads_to_the_address_of_the_gateway_that_stands_for_the_broker(
    opened: OpenHouse,
) -> None:
    async with opened() as house:
        async with client(house.any) as it:
            found = await it.where("a", "b", "a")
        assert found == {"a": house.places[0], "b": house.places[1]}
        for topic, broker in zip("ab", house.brokers, strict=True):
            async with client(found[topic]) as it:
                assert await it.put((topic, 1, topic.encode())) is None
            assert broker.stored[topic] == [topic.encode()]


async def test_no_broker_address_reaches_a_client(opened: OpenHouse) -> None:
    async with opened() as house, client(house.places[0]) as it:
        await it.where("a", "b")
        refused = await it.put(("a", 1, b""), ("b", 1, b""))
        assert refused is not None
        assert refused.text == "ask memo://broker for b"
        await it.get("a", "b")
        for broker in house.brokers:
            assert HOST.encode() not in it.frames.received
            assert str(broker.address.port).encode() not in it.frames.received
            assert HOST.encode() + SIZE.pack(broker.address.port) not in it.frames.received


async def test_a_topic_beyond_its_limit_is_refused_in_place_and_no_other(
    opened: OpenHouse,
) -> None:
    async with opened() as house, client(house.places[0]) as it:
        assert await it.put(("slow", 1, b"1")) is None
        house.brokers[0].gate = trio.Event()
        for topics in (["x"], ["slow", "x"], ["x"], ["public/default/slow"], ["x"]):
            await it.say(Kind.PUT, sections((topic, 1, b"2") for topic in topics))
        house.brokers[0].gate.set()
        answers = [await it.frames.next() for _ in range(5)]
        assert [head_of(answer)[0] for answer in answers] == [3, 4, 5, 6, 7]
        kinds = [head_of(answer)[1] for answer in answers]
        done = Kind.PUT | ANSWER
        assert kinds == [done, Kind.ERROR, done, Kind.ERROR, done]
        assert error_of(answers[1]) == TOO_OFTEN
        assert house.brokers[0].stored["slow"] == [b"1"]


async def test_a_topic_that_was_refused_may_pass_later(opened: OpenHouse) -> None:
    async with opened() as house, client(house.places[0]) as it:
        assert await it.put(("slow", 1, b"1")) is None
        for _ in range(3):
            assert await it.put(("slow", 1, b"2")) == TOO_OFTEN
        house.let_pass(61.0)
        assert await it.put(("slow", 1, b"3")) is None
        assert await it.put(("slow", 1, b"4")) == TOO_OFTEN
        assert house.brokers[0].stored["slow"] == [b"1", b"3"]


async def test_messages_are_counted_by_topic(opened: OpenHouse) -> None:
    async with opened() as house, client(house.places[0]) as it:
        await it.put(("t/n/x", 3, b"123"), ("y", 4, b""))
        await it.put(("y", 5, b"1"))
        await it.get("y", "t/n/x")
        lines = await house.metrics()
    counted = {it for it in lines if it.startswith("gateway_topic_messages_total")}
    assert {(it.partition('topic="')[2].partition('"')[0], it[-1]) for it in counted} == {
        ("t/n/x", "3"),
        ("t/n/x", "1"),
        ("public/default/y", "9"),
        ("public/default/y", "2"),
    }


async def test_a_stopping_gateway_answers_all_that_it_was_asked(opened: OpenHouse) -> None:
    async with opened() as house, client(house.places[0]) as it, client(house.places[1]) as idle:
        broker = house.brokers[0]
        await it.put(("x", 1, b""))
        broker.gate = trio.Event()
        await it.say(Kind.PUT, sections([("x", 1, b"before")]))
        await broker.hears(b"before")
        os.kill(os.getpid(), signal.SIGTERM)
        assert not await idle.frames.next()
        late = [b"late", b"later"]
        for data in late:
            await it.say(Kind.PUT, sections([("x", 1, data)]))
        broker.gate.set()
        answers = [await it.frames.next() for _ in range(3)]
        assert [head_of(answer)[0] for answer in answers] == [3, 4, 5]
        kinds = [head_of(answer)[1] for answer in answers]
        assert kinds[0] == Kind.PUT | ANSWER
        stored = [data for data, kind in zip(late, kinds[1:], strict=True) if kind != Kind.ERROR]
        assert broker.stored["x"] == [b"", b"before", *stored]
        assert not await it.frames.next()


async def test_a_revoked_topic_ends_and_no_other(opened: OpenHouse) -> None:
    async with opened() as house, client(house.places[0]) as it:
        await it.put(("x", 1, b"1"), ("y", 1, b"1"))
        house.revoke("public/default/x")
        refused = await it.put(("x", 1, b"2"))
        assert refused is not None
        assert refused.refusal is Refusal.UNAUTHORIZED
        assert await it.put(("y", 1, b"2")) is None
        assert house.brokers[0].stored == {"x": [b"1"], "y": [b"1", b"2"]}


async def test_a_traced_connection_tells_its_frames(opened: OpenHouse) -> None:
    with capture_logs() as lines:
        async with opened(trace="[127.0.0.0/8]") as house, client(house.places[0], "secret") as it:
            await it.put(("x", 1, b"1"))
            await it.put(("x", 2, bytes(LARGE)))
            await it.where("a")
    told = [(it["frame"], it["decision"]) for it in lines if it["event"] == "frame"]
    assert told == [
        ("HELLO 1 principal=alice library=memo-test 1 token=***", "opening"),
        ("HELLO answer 1", "opening"),
        ("PUT 2 x:1", "forward"),
        ("PUT answer 2", "pass"),
        ("PUT 3 x:2", "pass"),
        ("PUT answer 3", "pass"),
        ("WHERE 4 a", "forward"),
        (f"WHERE answer 4 a@{house.brokers[0].address}", "replace"),
    ]
