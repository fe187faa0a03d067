"""Files are sent in order and marked once they are, whatever ends in between."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest

from gateway.usage.outbox import Outbox
from gateway.usage.records import Event, Identity, Usage
from gateway.usage.sending import Row, Sending, UnavailableError
from gateway.usage.shipment import Away, Report, Sent, Unreadable, Waiting
from tests.support.boxes import BOOT, NOON, close, event, usage

TOPICS = {"usage": "persistent://ops/usage/records", "events": "persistent://ops/usage/events"}


class KilledError(BaseException):
    """What no code handles."""


class Broker:
    """Takes records, and fails as told: `fails` holds for each send to come what it raises, before
    or after it took the records."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {topic: [] for topic in TOPICS.values()}
        self.kinds: dict[str, type[Identity]] = {}
        self.producers: list[str] = []
        self.fails: list[BaseException | None] = []
        self.connections = self.closed = 0

    def connect(self) -> Broker:
        self.connections += 1
        return self

    def send(self, topic: str, kind: type[Identity], producer: str, rows: Iterable[Row]) -> None:
        self.kinds[topic] = kind
        self.producers.append(producer)
        self.rows[topic] += rows
        if self.fails and (failure := self.fails.pop(0)):
            raise failure

    def close(self) -> None:
        self.closed += 1

    def numbers(self, stream: str = "usage") -> list[int]:
        return [it.seq for it in self.rows[TOPICS[stream]]]


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = Broker()
        self.told: list[Report] = []
        self.restart()

    def restart(self) -> None:
        """Begin anew, as another process does."""
        outbox = Outbox(self.folder, "edge", TOPICS)
        self.sending = Sending(outbox, TOPICS, self.broker.connect, self.told.append)

    def send(self) -> bool:
        return self.sending.send_all(NOON)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_files_are_sent_once_and_told(scene: Scene) -> None:
    close(scene.folder, [usage(1), usage(2)])
    close(scene.folder, [usage(3)])
    assert scene.send()
    assert scene.send()
    assert scene.broker.numbers() == [1, 2, 3]
    assert scene.told == [
        Waiting({"usage": 2, "events": 0}),
        Sent("usage", 2),
        Waiting({"usage": 1, "events": 0}),
        Sent("usage", 1),
        Waiting({"usage": 0, "events": 0}),
    ]
    assert (scene.broker.connections, scene.broker.closed) == (1, 0)


def test_a_row_is_the_line_of_the_file_with_key_and_time(scene: Scene) -> None:
    close(scene.folder, [usage(1, tenant="acme", msgs=3), usage(2)])
    close(scene.folder, [event(1)], stream="events")
    scene.send()
    one, two = scene.broker.rows[TOPICS["usage"]]
    assert (one.key, one.time_ms) == ("acme", 7)
    assert one.line.startswith(b'{"v":1,"gw":"edge","boot":"')
    assert one.line.endswith(b'"msgs":3}')
    assert two.key == "edge"
    (other,) = scene.broker.rows[TOPICS["events"]]
    assert other.time_ms == 9
    assert scene.broker.kinds == {TOPICS["usage"]: Usage, TOPICS["events"]: Event}
    assert set(scene.broker.producers) == {f"edge-{BOOT}"}


def test_a_failure_is_told_and_the_rest_waits(scene: Scene) -> None:
    for number in (1, 2, 3):
        close(scene.folder, [usage(number)])
    scene.broker.fails = [None, UnavailableError("Timeout")]
    assert not scene.send()
    assert scene.told[-1] == Away("Timeout")
    assert scene.broker.closed == 1
    assert scene.send()
    # The second file came twice: the broker had it, and nobody knew.
    assert scene.broker.numbers() == [1, 2, 2, 3]
    assert scene.broker.connections == 2


@pytest.mark.parametrize("at", range(3))
def test_a_kill_between_receipt_and_marker_sends_one_file_again(scene: Scene, at: int) -> None:
    for number in (1, 2, 3):
        close(scene.folder, [usage(number)])
    scene.broker.fails = [*[None] * at, KilledError()]
    with pytest.raises(KilledError):
        scene.send()
    scene.restart()
    assert scene.send()
    assert scene.broker.numbers() == [1, 2, 3][: at + 1] + [1, 2, 3][at:]


def test_no_connection_is_opened_for_nothing(scene: Scene) -> None:
    assert scene.send()
    assert scene.broker.connections == 0


def test_a_folder_that_cannot_be_read_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    close(scene.folder, [usage(1)])
    monkeypatch.setattr("gateway.usage.reading.gzip.open", fail)
    assert not scene.send()
    assert scene.told[-1] == Away("Input/output error")
    monkeypatch.undo()
    assert scene.send()
    assert scene.broker.numbers() == [1]


def test_of_a_torn_file_what_can_be_read_is_sent(scene: Scene) -> None:
    path = close(scene.folder, [usage(1)])
    path.write_bytes(path.read_bytes() + gzip.compress(b"no record\n") + b"torn")
    assert scene.send()
    assert scene.broker.numbers() == [1]
    assert Unreadable(str(path)) in scene.told
    assert Sent("usage", 1) in scene.told
    assert scene.send()
    assert scene.broker.numbers() == [1]


def test_a_file_that_is_gone_meanwhile_does_no_harm(scene: Scene) -> None:
    close(scene.folder, [usage(1)])
    (parcel,) = Outbox(scene.folder, "edge", TOPICS).waiting(NOON)
    parcel.path.unlink()
    scene.sending._send(parcel)
    assert scene.broker.numbers() == []
