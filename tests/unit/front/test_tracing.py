"""Which connections are traced, and what is written of them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs

from gateway.front.tracing import Tracing, opening_watch
from gateway.wire.contract import Direction
from tests.playbooks.services import ORIGIN

from .fakes import FakeEntry, hello

NETWORKS = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("client", "chosen"),
    [
        ("10.1.2.3", True),
        ("fd00::1", True),
        ("fd00::1%eth0", True),
        ("192.168.0.1", False),
        ("::1", False),
    ],
)
def test_clients_are_chosen_by_network(client: str, chosen: bool) -> None:
    assert (Tracing(NETWORKS).of(ORIGIN._replace(host=client)) is not None) is chosen


def test_nobody_is_traced_unless_asked_for() -> None:
    assert Tracing().of(ORIGIN) is None


def test_everybody_may_be_traced() -> None:
    assert Tracing(everything=True).of(ORIGIN) is not None


def test_a_frame_is_a_line() -> None:
    with capture_logs() as lines:
        trace = Tracing(everything=True).of(ORIGIN._replace(id=7))
        assert trace is not None
        trace(Direction.TO_CLIENT, "PING", 14, "pass")
    assert lines == [
        {
            "event": "frame",
            "log_level": "info",
            "connection": 7,
            "direction": "to_client",
            "frame": "PING",
            "size": 14,
            "decision": "pass",
        }
    ]


def test_frames_of_the_opening_are_described_by_the_protocol() -> None:
    told: list[tuple[object, ...]] = []
    watch = opening_watch(FakeEntry(), lambda *of: told.append(of))
    watch(Direction.TO_BROKER, hello(b"secret"))
    assert told == [(Direction.TO_BROKER, "frame h", 11, "opening")]
