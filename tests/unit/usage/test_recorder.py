"""Records of a process: numbered without gaps, by interval, and never more than fits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from gateway.policy.accounts import AccountBook
from gateway.telemetry.latency import BOUNDS, ListenerLatencies, SlowSends
from gateway.telemetry.witness import Ended
from gateway.usage import reading
from gateway.usage.files import Closing
from gateway.usage.meter import Naming
from gateway.usage.reading import Ledger
from gateway.usage.recorder import (
    MOST_EVENTS,
    TENANTS_AT_ONCE,
    Recording,
    Settings,
    pseudonyms,
)
from gateway.usage.records import Event, Usage
from gateway.usage.writing import Work, Worker
from gateway.wire.account import Account, Action
from gateway.wire.contract import EndReason
from gateway.wire.subject import NOBODY, Caller, Subject
from tests.support.subjects import subject_of, topic_of

NOON = 1_795_521_600.0
CALLER = Caller("kafka", "clients", "main", 7, "192.0.2.77", "alice", "lib 1", "token", "billing")


def _wait(go: threading.Event) -> None:
    go.wait(10)


class Trial:
    def __init__(self, folder: Path, *, events: bool = True, waiting: int = 1 << 20) -> None:
        self.folder = folder
        self.began = trio.current_time()
        settings = Settings(folder, "edge-1", 10.0, Closing(), events, waiting)
        self.recording = Recording(
            settings, Naming(), clock=trio.current_time, wall_clock=self.wall, boot="a" * 16
        )
        self.book = AccountBook(watchers=[self.recording.meter])
        self.ledger = Ledger()

    def wall(self) -> float:
        return NOON + trio.current_time() - self.began

    def send(self, account: Account, messages: int = 1) -> None:
        account.count(messages)
        account.bytes += 100 * messages
        account.receipts += 1

    def usage(self) -> list[Usage]:
        return list(reading.usage(self.folder, self.ledger))

    def events(self) -> list[Event]:
        return list(reading.events(self.folder))


@pytest.fixture
async def trial(tmp_path: Path, autojump_clock: MockClock) -> Trial:
    return made(tmp_path)


def made(folder: Path, **settings: bool | int) -> Trial:
    return Trial(folder, **settings)  # type: ignore[arg-type]


async def test_each_interval_has_a_record_of_each_key(
    trial: Trial, autojump_clock: MockClock
) -> None:
    account = trial.book.open(Action.PRODUCE, subject_of("persistent://acme/web/orders"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trial.recording.run)
        await trio.sleep(5)
        for number in range(1, 4):
            trial.send(account, number)
            await trio.sleep(10)
        nursery.cancel_scope.cancel()
    trial.recording.finish()
    found = trial.usage()
    assert [it.msgs for it in found] == [1, 2, 3]
    assert [it.seq for it in found] == [1, 2, 3]
    assert [it.dur_ms for it in found] == pytest.approx([10_000] * 3, abs=10)
    assert [it.start_ms - NOON * 1000 for it in found] == pytest.approx([0, 10_000, 20_000], abs=10)
    assert {(it.tenant, it.namespace, it.topic) for it in found} == {
        ("acme", "acme/web", "persistent://acme/web/orders")
    }
    assert trial.ledger.missing() == {}


async def test_the_end_of_the_process_ends_the_interval(
    trial: Trial, autojump_clock: MockClock
) -> None:
    account = trial.book.open(Action.PRODUCE, subject_of("a"))
    trial.recording.opened(7, CALLER)
    await trio.sleep(3)
    trial.send(account)
    trial.recording.finish()
    assert {(it.op, it.msgs, it.open_ms) for it in trial.usage()} == {
        ("send", 1, 0),
        ("connect", 0, 3000),
    }


async def test_a_partition_is_named_beside_its_topic(trial: Trial) -> None:
    trial.send(trial.book.open(Action.PRODUCE, subject_of("persistent://a/b/c-partition-3")))
    trial.recording.finish()
    (found,) = trial.usage()
    assert found.topic == "persistent://a/b/c"
    assert found.partition == "persistent://a/b/c-partition-3"


async def test_names_that_are_no_unicode_are_written(trial: Trial) -> None:
    trial.send(trial.book.open(Action.PRODUCE, subject_of("a", principal="half \ud800")))
    trial.recording.finish()
    (found,) = trial.usage()
    assert found.principal == "half ?"


async def test_connects_denials_and_ends_are_events(trial: Trial) -> None:
    recording = trial.recording
    recording.opened(7, CALLER)
    denied = Subject(CALLER, topic_of("persistent://acme/web/orders"))
    recording.denied(denied, "produce", "r1", shadow=True)
    recording.ended(Ended("clients", 7, "192.0.2.77:1", CALLER, EndReason.IDLE, 1.5, ""))
    failed = EndReason.AUTHENTICATION_FAILED
    recording.ended(Ended("clients", 8, "192.0.2.78:1", None, failed, 0.1, "a secret detail"))
    recording.finish()
    found = trial.events()
    assert [it.event for it in found] == ["connected", "denied", "ended", "unauthenticated"]
    assert [it.seq for it in found] == [1, 2, 3, 4]
    assert {(it.principal, it.client_id) for it in found[:3]} == {("alice", "billing")}
    assert (found[1].right, found[1].rule, found[1].shadow, found[1].tenant) == (
        *("produce", "r1", True),
        "acme",
    )
    assert (found[2].reason, found[2].open_ms) == ("idle", 1500)
    assert found[3].listener == "clients"


async def test_a_denial_without_a_topic_is_an_event(trial: Trial) -> None:
    trial.recording.denied(NOBODY, "lookup", None, shadow=False)
    trial.recording.finish()
    (found,) = trial.events()
    assert (found.topic, found.rule) == (None, None)


async def test_a_flood_of_events_is_counted(trial: Trial) -> None:
    reason = EndReason.AUTHENTICATION_FAILED
    for number in range(MOST_EVENTS + 5):
        trial.recording.ended(Ended("clients", number, "192.0.2.1:1", None, reason, 0.1, ""))
    trial.recording.finish()
    found = trial.events()
    assert len(found) == MOST_EVENTS + 1
    assert (found[-1].event, found[-1].number) == ("suppressed", 5)


async def test_events_may_be_left_out(tmp_path: Path) -> None:
    trial = made(tmp_path, events=False)
    trial.recording.opened(7, CALLER)
    trial.recording.finish()
    assert not (tmp_path / "events").exists()
    assert [it.op for it in trial.usage()] in ([], ["connect"])


async def test_records_beyond_what_may_wait_are_dropped_and_leave_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = made(tmp_path, waiting=1)
    go = threading.Event()
    recording = trial.recording
    recording._worker.put(Work(partial(_wait, go), 1))
    account = trial.book.open(Action.PRODUCE, subject_of("a"))
    trial.send(account)
    recording.meter.take(0)  # nothing was looked at
    for _ in range(3):
        trial.send(account)
        for _ in recording.meter.look():
            pass
        for _ in recording._end_interval():
            pass
    assert recording.figures["usage"].dropped == 3
    go.set()
    recording._worker.close()
    trial.send(account)
    recording.finish()
    assert [it.seq for it in trial.usage()] == [4]
    assert trial.ledger.missing() == {("edge-1", "a" * 16): 3}


async def test_latencies_of_each_interval_are_records(trial: Trial) -> None:
    latencies = ListenerLatencies(SlowSends())
    trial.recording.time({"clients": latencies})
    latencies.connect.add(0.001)
    acme = latencies.of("acme", proven=True)
    for seconds in (0.002, 0.2):
        acme.send.add(seconds)
    for _ in trial.recording._end_interval():
        pass
    acme.send.add(100.0)
    trial.recording.finish()
    connect, first, second = trial.usage()
    assert (connect.op, connect.lat_what, connect.tenant) == ("latency", "connect", None)
    assert (first.lat_what, first.tenant, first.listener) == ("send", "acme", "clients")
    assert (first.lat_count, first.lat_sum_us) == (2, 202_000)
    assert len(first.lat_bucket) == len(BOUNDS) + 1
    assert (second.lat_count, second.lat_bucket[-1]) == (1, 1)


async def test_latencies_of_many_tenants_are_looked_at_in_slices(trial: Trial) -> None:
    """Also of those that counted nothing."""
    latencies = ListenerLatencies(SlowSends())
    trial.recording.time({"clients": latencies})
    for number in range(1000):
        latencies.of(f"t-{number}", proven=True)
    assert sum(1 for _ in trial.recording._end_interval()) == 1000 // TENANTS_AT_ONCE
    trial.recording.finish()
    assert trial.usage() == []


def test_pseudonyms_are_the_same_for_the_same_key() -> None:
    one, same, other = pseudonyms(b"k" * 16), pseudonyms(b"k" * 16), pseudonyms(b"l" * 16)
    assert one("alice") == same("alice") != other("alice")
    assert one("alice") != one("bob")
    assert "alice" not in one("alice")


# -- the thread ------------------------------------------------------------------------------------


def test_work_is_done_in_order_and_the_thread_ends() -> None:
    worker, done = Worker(), list[int]()

    def doing(number: int) -> Callable[[], None]:
        return lambda: done.append(number)

    for number in range(100):
        worker.put(Work(doing(number)))
    assert worker.close()
    assert done == list(range(100))
    assert worker._thread is None
    worker.put(Work(doing(100)))
    assert worker.close()
    assert done[-1] == 100


def test_work_that_fails_is_told_and_the_next_is_done() -> None:
    worker, told = Worker(), list[str]()

    def fail() -> None:
        raise OSError(28, "No space left on device")

    worker.put(Work(fail, 10, lambda: told.append("failed")))
    worker.put(Work(lambda: told.append("next")))
    assert worker.close()
    assert told == ["failed", "next"]
    assert worker._size == 0


def test_a_disk_that_hangs_keeps_no_process_from_ending() -> None:
    worker, go = Worker(), threading.Event()
    worker.put(Work(partial(_wait, go)))
    assert not worker.close(0.01)
    go.set()
    assert worker.close()
