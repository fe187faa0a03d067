"""Each connection that ends has one line in the audit, however it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from gateway.telemetry.audit import Audit
from gateway.telemetry.log import Style
from gateway.wire.contract import EndReason, Opening, Origin, Peer, Receive, Refused
from gateway.wire.subject import Caller
from tests.plane.protocol import passing

from .fakes import Serving, hello, serving, until, welcome
from .test_proxied import TRUSTED

SECRET = b"a credential"

FIELDS = {"time", "event", "listener", "connection", "client", "principal", "method", "reason"}

Clock = trio.testing.MockClock


class Audited:
    """A server with an audit. `lines`: all of them, by the end."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.audit = Audit(Style("json"), self.written.append, 1000, 1 << 20)
        self.running: Serving

    def lines(self) -> list[dict[str, Any]]:
        self.audit.close(10.0)
        assert SECRET not in b"".join(self.written)
        return [json.loads(line) for line in b"".join(self.written).splitlines()]

    def line(self) -> dict[str, Any]:
        """Return the only line, which has all its fields."""
        (line,) = self.lines()
        assert line.keys() >= FIELDS | {"seconds"}
        assert (line["event"], line["listener"]) == ("connection", "clients")
        return line


@asynccontextmanager
async def audited(*args: Any, **settings: Any) -> AsyncIterator[Audited]:
    trial = Audited()
    async with serving(*args, witness=trial.audit, **settings) as running:
        trial.running = running
        yield trial


def refusing(origin: Origin) -> Opening:
    """Refuse whatever a client says, as if its credential were wrong."""
    yield Receive(Peer.CLIENT)
    caller = Caller("pulsar", method="token")
    return Refused(EndReason.AUTHENTICATION_FAILED, passing(b"no"), "token not accepted", caller)


async def test_a_pair_that_ends_has_one_line(autojump_clock: Clock) -> None:
    async with audited() as trial:
        client, _ = await trial.running.open(SECRET)
        local = client.sock.getsockname()
        client.close()
        await until(lambda: trial.running.ended)
    line = trial.line()
    assert line["reason"] == "client_closed"
    assert line["client"] == f"127.0.0.1:{local[1]}"


async def test_a_refused_client_has_one_line_without_its_credential(autojump_clock: Clock) -> None:
    async with audited(refusing) as trial:
        client = trial.running.connect()
        client.say(hello(SECRET))
        assert await client.hear_all() == passing(b"no")
        await until(lambda: trial.running.ended)
    line = trial.line()
    assert (line["reason"], line["method"]) == ("authentication_failed", "token")
    assert (line["principal"], line["detail"]) == (None, "token not accepted")


@pytest.mark.parametrize(
    ("said", "reason"),
    [(b"", "handshake_timeout"), (b"\xff" * 8, "frame_too_large"), (None, "client_closed")],
    ids=["silent", "nonsense", "gone"],
)
async def test_a_client_that_says_nothing_of_use_has_one_line(
    said: bytes | None, reason: str, autojump_clock: Clock
) -> None:
    async with audited() as trial:
        client = trial.running.connect()
        if said is None:
            client.close()
        else:
            client.say(said)
        await until(lambda: trial.running.ended)
    assert trial.line()["reason"] == reason


async def test_one_that_gives_way_has_one_line(autojump_clock: Clock) -> None:
    async with audited(most_opening=1) as trial:
        first = trial.running.connect()
        await until(lambda: trial.running.counts == (1, 0))
        await trial.running.open()
        first.close()
        await until(lambda: trial.running.ended)
    lines = trial.lines()
    assert [it["reason"] for it in lines].count("handshake_timeout") == 1
    assert len({it["connection"] for it in lines}) == len(lines)


async def test_one_connection_too_many_has_one_line(autojump_clock: Clock) -> None:
    async with audited(connects=1) as trial:
        for _ in range(2):
            await trial.running.open()
        trial.running.connect()
        await until(lambda: trial.running.ended)
        assert trial.running.ended == {EndReason.TOO_MANY_CONNECTS: 1}
    (line,) = (it for it in trial.lines() if it["reason"] == "too_many_connects")
    assert line["principal"] is None


async def test_a_client_behind_a_proxy_is_written_by_its_own_address(
    autojump_clock: Clock,
) -> None:
    async with audited(proxies=TRUSTED) as trial:
        client = trial.running.connect()
        client.say(b"PROXY TCP6 2001:db8::7 2001:db8::1 40000 6650\r\n" + hello())
        await until(lambda: trial.running.dialler.brokers)
        broker = trial.running.dialler.broker()
        broker.say(welcome())
        assert await client.hear(len(welcome())) == welcome()
        client.close()
        await until(lambda: trial.running.ended)
    assert trial.line()["client"] == "[2001:db8::7]:40000"


async def test_a_bug_of_the_gateway_has_one_line(autojump_clock: Clock) -> None:
    def bug(origin: Origin) -> Opening:
        yield Receive(Peer.CLIENT)
        raise RuntimeError(SECRET.decode())

    async with audited(bug) as trial:
        client = trial.running.connect()
        client.say(hello())
        await until(lambda: trial.running.ended)
    assert trial.line()["reason"] == "internal_error"


async def test_connections_that_open_when_the_gateway_stops_have_a_line_each(
    autojump_clock: Clock,
) -> None:
    async with audited() as trial:
        for _ in range(3):
            trial.running.connect()
        await until(lambda: trial.running.counts == (3, 0))
    lines = trial.lines()
    assert sorted(it["connection"] for it in lines) == [1, 2, 3]
    assert {it["reason"] for it in lines} == {"drained"}
