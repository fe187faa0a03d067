"""Chosen connections are traced: their frames are logged."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs

from gateway.front.tracing import MOST_ADDED, Tracing, opening_watch
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
    assert (Tracing(NETWORKS).trace_of(ORIGIN._replace(host=client)) is not None) is chosen


def test_no_client_is_traced_by_default() -> None:
    assert Tracing().trace_of(ORIGIN) is None


def test_all_clients_can_be_traced() -> None:
    assert Tracing(everything=True).trace_of(ORIGIN) is not None


def test_a_principal_is_traced_for_a_while() -> None:
    now = 0.0
    tracing = Tracing(clock=lambda: now)
    tracing.add_principal("alice", 10.0)
    chosen = [tracing.trace_of_principal(it, 7) is not None for it in ("alice", "bob", None)]
    assert chosen == [True, False, False]
    now = 10.0
    assert tracing.trace_of_principal("alice", 7) is None


def test_of_too_many_principals_the_oldest_is_given_up() -> None:
    tracing = Tracing(clock=lambda: 0.0)
    for number in range(MOST_ADDED + 1):
        tracing.add_principal(str(number), 10.0)
    chosen = [tracing.trace_of_principal(it, 7) is not None for it in ("0", "1", str(MOST_ADDED))]
    assert chosen == [False, True, True]


def test_a_traced_frame_is_one_log_line() -> None:
    with capture_logs() as lines:
        trace = Tracing(everything=True).trace_of(ORIGIN._replace(id=7))
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
    traced: list[tuple[object, ...]] = []
    watch = opening_watch(FakeEntry(), lambda *frame: traced.append(frame))
    watch(Direction.TO_BROKER, hello(b"secret"))
    assert traced == [(Direction.TO_BROKER, "frame h", 11, "opening")]
