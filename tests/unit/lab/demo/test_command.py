"""Checks of `gateway demo` before anything starts."""

from __future__ import annotations

import math
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.lab.demo import command
from gateway.lab.demo.children import ChildError
from gateway.lab.demo.plan import KAFKA, PULSAR
from gateway.lab.demo.ports import HOST, VARIABLE
from tests.real.brokers.ports import free_range


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set free ports, and fail if the demonstration starts."""
    monkeypatch.setenv(VARIABLE, ",".join(map(str, _free_ports(4))))

    def begin(*_: object) -> int:
        pytest.fail("the demo began")

    monkeypatch.setattr("trio.run", begin)


def _free_ports(count: int) -> list[int]:
    listeners = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _mistake(
    seconds: float | None = None,
    brokers: str | None = None,
    picture: Path | None = None,
    protocol: str = PULSAR,
) -> str:
    with pytest.raises(ConfigurationError) as raised:
        command.run(seconds=seconds, brokers=brokers, picture=picture, protocol=protocol)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", [*command.PACKAGES, command.CLIENTS[PULSAR]])
def test_a_missing_package_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda it: None if it == name else find_spec(it))
    assert _mistake() == (
        f"gateway demo needs packages that are not installed ({name}). "
        "Install them with: pip install 'broker-gateway[lab]'; in a checkout: make run"
    )


def test_each_protocol_needs_its_own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        command, "find_spec", lambda it: None if it in command.CLIENTS.values() else find_spec(it)
    )
    assert "not installed (confluent_kafka). " in _mistake(protocol=KAFKA)
    assert "not installed (pulsar). " in _mistake(protocol=PULSAR)


def test_kafka_needs_a_port_for_each_broker_and_none_for_the_control(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = free_range(3)
    with socket.create_server((HOST, first + 2)) as taken, socket.create_server((HOST, 0)) as other:
        control = other.getsockname()[1]
        ports = (first, *_free_ports(2), control)
        monkeypatch.setenv(VARIABLE, ",".join(map(str, ports)))
        address = f"{HOST}:{taken.getsockname()[1]}"
        assert f"{address}: address already in use" in _mistake(protocol=KAFKA)


def test_kafka_has_no_brokers_of_one_s_own() -> None:
    said = _mistake(brokers="kafka://127.0.0.1:9092", protocol=KAFKA)
    assert said == "--brokers goes with --protocol pulsar"


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_seconds_must_be_positive_and_finite(seconds: float) -> None:
    assert _mistake(seconds=seconds).startswith("--seconds is wrong")


def test_a_picture_needs_an_existing_folder(tmp_path: Path) -> None:
    assert _mistake(picture=tmp_path / "none" / "a.svg").endswith(f"no folder {tmp_path / 'none'}")


@pytest.mark.parametrize("which", range(4))
def test_each_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    with socket.create_server((HOST, 0)) as taken:
        ports = _free_ports(4)
        ports[which] = taken.getsockname()[1]
        monkeypatch.setenv(VARIABLE, ",".join(map(str, ports)))
        assert f"{HOST}:{ports[which]}: address already in use" in _mistake()


def test_with_given_brokers_the_control_port_is_not_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        gone, *ports = _free_ports(4)
        monkeypatch.setenv(VARIABLE, f"{ports[0]},{ports[1]},{ports[2]},{taken.getsockname()[1]}")
        said = _mistake(brokers=f"pulsar://{HOST}:{gone}")
    assert said.startswith(f"cannot connect to any broker ({HOST}:{gone}: connection refused)")


@pytest.mark.parametrize(
    ("brokers", "reason"),
    [
        ("localhost:6650", "has no scheme"),
        ("pulsar+ssl://127.0.0.1:6651", "no TLS to brokers yet"),
    ],
)
def test_wrong_brokers_are_explained(brokers: str, reason: str) -> None:
    assert reason in _mistake(brokers=brokers)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (ChildError("the gateway ended by itself"), "the gateway ended by itself\n"),
        (OSError(28, "No space left"), "the demo cannot go on: [Errno 28] No space left\n"),
        (SystemExit(1), ""),
        (KeyboardInterrupt(), ""),
    ],
)
def test_a_failure_is_reported_without_its_groups(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: BaseException,
    said: str,
) -> None:
    def fail(*_: object) -> int:
        raise BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [failure])])

    monkeypatch.setattr("trio.run", fail)
    assert command.run(seconds=1, brokers=None, picture=None) == 1
    assert capsys.readouterr().err == said


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise ExceptionGroup("outer", [KeyError("bug")])

    monkeypatch.setattr("trio.run", fail)
    with pytest.raises(KeyError, match="bug"):
        command.run(seconds=1, brokers=None, picture=None)
