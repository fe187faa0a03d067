"""The whole gateway in front of brokers that speak `memo`: see `conftest`."""

from __future__ import annotations

import os
import random
import signal

import trio
from structlog.testing import capture_logs

from gateway.wire.contract import Refusal
from tests.second.broker import HOST, Client, connect
from tests.second.conftest import Deploy
from tests.second.memo import ANSWER, SIZE, Kind, error_of, frame, head_of, sections
from tests.second.session import TOO_OFTEN

LARGE = 7 * 1024 * 1024
"""Bytes, more than the largest stop frame may have."""


async def _script(client: Client, payload: bytes) -> bytes:
    """Send typical requests to one broker; return all received bytes."""
    assert await client.put(("a", 3, b"first"), ("x", 1, b"small")) is None
    assert await client.put(("a", 1, payload), ("x", 2, b"")) is None
    assert await client.get("a", "x") == {"a": b"first" + payload, "x": b"small"}
    for size in range(20):
        await client.say(Kind.PUT, sections([("x", 1, payload[:size]), ("y", 2, payload[size:90])]))
    for _ in range(20):
        assert head_of(await client.frames.next())[1] == Kind.PUT | ANSWER
    assert await client.get("nothing", "there") == {}
    return bytes(client.frames.received)


async def test_all_bytes_pass_unchanged(deploy: Deploy) -> None:
    payload = random.Random(1).randbytes(LARGE)
    async with deploy() as deployment:
        broker = deployment.brokers[0]
        async with connect(deployment.places[0]) as client:
            through = await _script(client, payload)
        heard, broker.heard = broker.heard, []
        broker.stored.clear()
        async with connect(broker.address) as client:
            assert await _script(client, payload) == through
        assert heard == broker.heard


async def test_the_first_put_of_a_topic_has_a_size_bound(
    deploy: Deploy,
) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        large = frame(2, Kind.PUT, sections([("x", 1, bytes(LARGE))]))
        await client.frames.stream.send_all(large[:100])
        farewell = await client.frames.next()
        assert head_of(farewell) == (0, Kind.ERROR)
        assert error_of(farewell).refusal is Refusal.UNSUPPORTED
        assert len(deployment.brokers[0].heard) == 1


async def test_where_returns_the_gateways_address_for_each_broker(
    deploy: Deploy,
) -> None:
    async with deploy() as deployment:
        async with connect(deployment.any) as client:
            found = await client.where("a", "b", "a")
        assert found == {"a": deployment.places[0], "b": deployment.places[1]}
        for topic, broker in zip("ab", deployment.brokers, strict=True):
            async with connect(found[topic]) as client:
                assert await client.put((topic, 1, topic.encode())) is None
            assert broker.stored[topic] == [topic.encode()]


async def test_no_broker_address_reaches_a_client(deploy: Deploy) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        await client.where("a", "b")
        refused = await client.put(("a", 1, b""), ("b", 1, b""))
        assert refused is not None
        assert refused.text == "ask memo://broker for b"
        await client.get("a", "b")
        for broker in deployment.brokers:
            assert HOST.encode() not in client.frames.received
            assert str(broker.address.port).encode() not in client.frames.received
            assert HOST.encode() + SIZE.pack(broker.address.port) not in client.frames.received


async def test_a_put_above_its_limit_is_refused_in_place_and_others_pass(
    deploy: Deploy,
) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        assert await client.put(("slow", 1, b"1")) is None
        deployment.brokers[0].gate = trio.Event()
        for topics in (["x"], ["slow", "x"], ["x"], ["public/default/slow"], ["x"]):
            await client.say(Kind.PUT, sections((topic, 1, b"2") for topic in topics))
        deployment.brokers[0].gate.set()
        responses = [await client.frames.next() for _ in range(5)]
        assert [head_of(response)[0] for response in responses] == [3, 4, 5, 6, 7]
        kinds = [head_of(response)[1] for response in responses]
        done = Kind.PUT | ANSWER
        assert kinds == [done, Kind.ERROR, done, Kind.ERROR, done]
        assert error_of(responses[1]) == TOO_OFTEN
        assert deployment.brokers[0].stored["slow"] == [b"1"]


async def test_a_refused_topic_passes_later(deploy: Deploy) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        assert await client.put(("slow", 1, b"1")) is None
        for _ in range(3):
            assert await client.put(("slow", 1, b"2")) == TOO_OFTEN
        deployment.let_pass(61.0)
        assert await client.put(("slow", 1, b"3")) is None
        assert await client.put(("slow", 1, b"4")) == TOO_OFTEN
        assert deployment.brokers[0].stored["slow"] == [b"1", b"3"]


async def test_messages_are_counted_by_topic(deploy: Deploy) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        await client.put(("t/n/x", 3, b"123"), ("y", 4, b""))
        await client.put(("y", 5, b"1"))
        await client.get("y", "t/n/x")
        lines = await deployment.metrics()
    counted = {it for it in lines if it.startswith("gateway_topic_messages_total")}
    assert {(it.partition('topic="')[2].partition('"')[0], it[-1]) for it in counted} == {
        ("t/n/x", "3"),
        ("t/n/x", "1"),
        ("public/default/y", "9"),
        ("public/default/y", "2"),
    }


async def test_a_stopping_gateway_answers_all_requests(deploy: Deploy) -> None:
    async with (
        deploy() as deployment,
        connect(deployment.places[0]) as client,
        connect(deployment.places[1]) as idle,
    ):
        broker = deployment.brokers[0]
        await client.put(("x", 1, b""))
        broker.gate = trio.Event()
        await client.say(Kind.PUT, sections([("x", 1, b"before")]))
        await broker.hears(b"before")
        os.kill(os.getpid(), signal.SIGTERM)
        assert not await idle.frames.next()
        late = [b"late", b"later"]
        for data in late:
            await client.say(Kind.PUT, sections([("x", 1, data)]))
        broker.gate.set()
        responses = [await client.frames.next() for _ in range(3)]
        assert [head_of(response)[0] for response in responses] == [3, 4, 5]
        kinds = [head_of(response)[1] for response in responses]
        assert kinds[0] == Kind.PUT | ANSWER
        stored = [data for data, kind in zip(late, kinds[1:], strict=True) if kind != Kind.ERROR]
        assert broker.stored["x"] == [b"", b"before", *stored]
        assert not await client.frames.next()


async def test_a_revoked_topic_is_refused_and_others_pass(deploy: Deploy) -> None:
    async with deploy() as deployment, connect(deployment.places[0]) as client:
        await client.put(("x", 1, b"1"), ("y", 1, b"1"))
        deployment.revoke("public/default/x")
        refused = await client.put(("x", 1, b"2"))
        assert refused is not None
        assert refused.refusal is Refusal.UNAUTHORIZED
        assert await client.put(("y", 1, b"2")) is None
        assert deployment.brokers[0].stored == {"x": [b"1"], "y": [b"1", b"2"]}


async def test_the_frames_of_a_traced_connection_are_logged(deploy: Deploy) -> None:
    with capture_logs() as lines:
        async with (
            deploy(trace="[127.0.0.0/8]") as deployment,
            connect(deployment.places[0], "secret") as client,
        ):
            await client.put(("x", 1, b"1"))
            await client.put(("x", 2, bytes(LARGE)))
            await client.where("a")
    told = [(it["frame"], it["decision"]) for it in lines if it["event"] == "frame"]
    assert told == [
        ("HELLO 1 principal=alice library=memo-test 1 token=***", "opening"),
        ("HELLO answer 1", "opening"),
        ("PUT 2 x:1", "forward"),
        ("PUT answer 2", "pass"),
        ("PUT 3 x:2", "pass"),
        ("PUT answer 3", "pass"),
        ("WHERE 4 a", "forward"),
        (f"WHERE answer 4 a@{deployment.brokers[0].address}", "replace"),
    ]
