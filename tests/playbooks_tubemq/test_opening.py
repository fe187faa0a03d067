"""How a connection is opened: which server a client gets, and who finds out where brokers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    EndReason,
    Opened,
    Peek,
    Peer,
    Receive,
    Refusal,
    Refused,
    Transmit,
)
from gateway.wire.plugin import EntrySettings
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.context import Listener
from gateway.wire.tubemq.envelopes import read_request
from gateway.wire.tubemq.frames import HEAD, TOKEN, whole
from gateway.wire.tubemq.opening import MOST_MASTERS, open_pair
from tests.playbooks.services import ORIGIN

from .script import REAL, TubeServices, except_, tell

HELLO = HEAD.pack(TOKEN, 1, 1)
STANDBY = "org.apache.inlong.tubemq.corerpc.exception.StandbyException"
OK: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
GONE = tell(m.END_PRODUCER, **OK)
LIST = tell(
    m.REGISTER_PRODUCER,
    **OK,
    brokerCheckSum=1,
    brokerInfos=[f"{id}:{it.host}:{it.port}" for id, it in REAL.items()],
)
MASTERS = [Address(f"master-{number}", 8715) for number in range(3)]

Response = Callable[[int, int], bytes | Denial]
"""Returns what the server that was dialled as this one says to a method."""


def active(at: int = 0) -> Response:
    """Return the responses of masters of which this one is active."""

    def response(server: int, method: int) -> bytes | Denial:
        if server != at:
            return except_(STANDBY, "not master now")
        return LIST if method == m.REGISTER_PRODUCER else GONE

    return response


class Talk:
    """An opening conversation. `dialled`: where it dialled, None for any master. `asked`: what the
    gateway asked by itself."""

    def __init__(
        self, response: Response, services: TubeServices | None = None, first: bytes = HELLO
    ) -> None:
        self.services = services or TubeServices()
        self.listener = Listener(EntrySettings(services=self.services))
        self.dialled: list[Address | None] = []
        self.asked: list[int] = []
        self._response = response
        self._first = first
        self.result = self._run()

    def _run(self) -> Opened | Refused:
        steps, given = open_pair(self.listener, ORIGIN), None
        while True:
            try:
                step = steps.send(given)
            except StopIteration as stop:
                found: Opened | Refused = stop.value
                return found
            given = self._carry_out(step)

    def _carry_out(self, step: object) -> Any:
        match step:
            case Peek(Peer.CLIENT, count):
                return self._first[:count]
            case Dial(target):
                self.dialled.append(target)
                return Dialled(target or MASTERS[self._masters % len(MASTERS)])
            case Transmit(Peer.BROKER, data):
                self.asked.append(read_request(whole(data).envelope).body.method)
                return None
            case Receive(Peer.BROKER):
                return self._response(self._masters - 1, self.asked[-1])
        raise AssertionError(step)

    @property
    def _masters(self) -> int:
        return self.dialled.count(None)


def test_a_client_gets_the_master_that_is_active() -> None:
    talk = Talk(active(at=2))
    assert isinstance(talk.result, Opened)
    assert talk.dialled == [None] * 3
    assert talk.asked[:3] == [m.END_PRODUCER] * 3


def test_the_first_client_of_a_master_has_the_gateway_learn_where_brokers_are() -> None:
    services = TubeServices()
    services.nodes.clear()
    talk = Talk(active(), services)
    assert talk.asked == [m.END_PRODUCER, m.REGISTER_PRODUCER, m.END_PRODUCER]
    assert services.nodes == REAL
    assert talk.listener.knows_brokers


def test_without_an_active_master_there_is_no_connection() -> None:
    talk = Talk(active(at=99))
    assert isinstance(talk.result, Refused)
    assert talk.result.reason is EndReason.NO_BROKER
    assert talk.dialled == [None] * MOST_MASTERS


def test_a_client_of_a_broker_gets_that_one() -> None:
    services = TubeServices()
    services.wanted_node = 2
    talk = Talk(active(), services)
    assert isinstance(talk.result, Opened)
    assert talk.dialled == [REAL[2]]
    assert talk.asked == []


def test_a_broker_that_nobody_knows_is_asked_for() -> None:
    services = TubeServices()
    services.wanted_node = 2
    services.nodes.clear()
    talk = Talk(active(at=1), services)
    assert isinstance(talk.result, Opened)
    assert talk.dialled == [None, None, REAL[2]]


def test_a_broker_that_there_is_not_is_refused() -> None:
    services = TubeServices()
    services.wanted_node = 7
    talk = Talk(active(), services)
    assert isinstance(talk.result, Refused)
    assert talk.result.reason is EndReason.NO_BROKER


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1", HEAD.pack(TOKEN, 1, 0), bytes(12)])
def test_what_is_no_frame_is_refused_before_anybody_is_dialled(first: bytes) -> None:
    talk = Talk(active(), first=first)
    assert isinstance(talk.result, Refused)
    assert talk.result.reason is EndReason.CLIENT_VIOLATION
    assert talk.dialled == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Denial(Refusal.CLOSED, ""), EndReason.NO_BROKER),
        (b"\xff\x7f\xf4\xfe" + bytes(12), EndReason.BROKER_VIOLATION),
    ],
)
def test_a_master_that_does_not_answer_well_is_none(
    said: bytes | Denial, reason: EndReason
) -> None:
    talk = Talk(lambda server, method: said)
    assert isinstance(talk.result, Refused)
    assert talk.result.reason is reason
    assert talk.services.slots.take("h", None) is not None
