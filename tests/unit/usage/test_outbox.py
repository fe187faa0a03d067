"""What is still to be sent: files without a marker, in order, over crashes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gateway.telemetry.figures import StreamFigures
from gateway.usage import reading
from gateway.usage.files import Closing, Stream, closed_files, marker_of
from gateway.usage.outbox import SETTLED, Outbox, Parcel
from tests.support.boxes import BOOT, HOUR, NOON, close, event, usage

LATER = 1e12
"""A time at which all folders have settled."""


def outbox(folder: Path, gateway: str = "edge") -> Outbox:
    return Outbox(folder, gateway, ("usage", "events"))


def firsts(parcels: list[Parcel]) -> list[tuple[str, int]]:
    return [(it.name.boot[0], it.name.first) for it in parcels]


def test_files_wait_until_they_are_marked(tmp_path: Path) -> None:
    close(tmp_path, [usage(1), usage(2)])
    close(tmp_path, [usage(3)])
    box = outbox(tmp_path)
    one, two = box.waiting(NOON)
    assert (one.stream, one.records, two.records) == ("usage", 2, 1)
    box.mark(one)
    assert box.waiting(NOON) == [two]
    assert outbox(tmp_path).waiting(NOON) == [two]  # as after a crash


def test_readers_leave_markers_out(tmp_path: Path) -> None:
    path = close(tmp_path, [usage(1)])
    marker_of(path).touch()
    assert list(closed_files(tmp_path / "usage")) == [path]
    assert len(list(reading.usage(tmp_path))) == 1


def test_files_of_a_process_are_in_the_order_of_their_records(tmp_path: Path) -> None:
    close(tmp_path, [usage(10)], at=NOON)
    close(tmp_path, [usage(2)], at=NOON + HOUR)  # the clock was set back meanwhile
    assert firsts(outbox(tmp_path).waiting(NOON)) == [("0", 2), ("0", 10)]


def test_an_earlier_process_comes_first(tmp_path: Path) -> None:
    close(tmp_path, [usage(1, "a" * 16)], at=NOON + HOUR)
    close(tmp_path, [usage(1, "b" * 16)], at=NOON)
    close(tmp_path, [usage(2, "b" * 16)], at=NOON + 2 * HOUR)
    assert firsts(outbox(tmp_path).waiting(NOON)) == [("b", 1), ("b", 2), ("a", 1)]


def test_each_stream_waits(tmp_path: Path) -> None:
    close(tmp_path, [event(1)], stream="events")
    close(tmp_path, [usage(1)])
    assert {it.stream for it in outbox(tmp_path).waiting(NOON)} == {"usage", "events"}
    assert len(Outbox(tmp_path, "edge", ["usage"]).waiting(NOON)) == 1


@pytest.mark.parametrize(
    ("gw", "is_own"),
    [
        ("edge", True),
        ("edge-w2", True),
        ("edge-2", False),
        ("edge-wide", False),
        ("my-edge", False),
    ],
)
def test_files_are_own_by_the_name_of_the_gateway_and_its_workers(
    gw: str, is_own: bool, tmp_path: Path
) -> None:
    close(tmp_path, [usage(1)], gw=gw)
    assert bool(outbox(tmp_path).waiting(NOON)) == is_own


def test_a_file_that_comes_later_is_found(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    assert box.waiting(LATER) == []
    close(tmp_path, [usage(1)])
    assert len(box.waiting(LATER)) == 1
    assert len(box.waiting(LATER)) == 1
    close(tmp_path, [usage(2)])
    assert len(box.waiting(LATER)) == 2


def test_a_folder_is_read_again_while_its_clock_may_stand(tmp_path: Path) -> None:
    path = close(tmp_path, [usage(1)])
    box, changed = outbox(tmp_path), path.parent.stat().st_mtime
    box.waiting(changed + SETTLED - 1)
    assert not box._hours
    box.waiting(changed + SETTLED + 1)
    assert list(box._hours) == [path.parent]


def test_a_marker_without_its_file_goes(tmp_path: Path) -> None:
    path = close(tmp_path, [usage(1)])
    marker_of(path).touch()
    path.unlink()
    outbox(tmp_path).waiting(NOON)
    assert not marker_of(path).exists()


def test_a_file_that_a_pipeline_takes_meanwhile_does_no_harm(tmp_path: Path) -> None:
    close(tmp_path, [usage(1)])
    box = outbox(tmp_path)
    (parcel,) = box.waiting(NOON)
    shutil.rmtree(parcel.path.parent)
    box.mark(parcel)
    assert box.waiting(LATER) == []


def full(folder: Path) -> StreamFigures:
    """Return the figures of a stream that keeps nothing."""
    figures = StreamFigures()
    Stream(folder / "usage", "edge", BOOT, Closing(kept=1), figures, is_sent=True).begin()
    return figures


def test_records_that_make_room_unsent_are_counted(tmp_path: Path) -> None:
    close(tmp_path, [usage(1), usage(2), usage(3)])
    assert full(tmp_path).unsent == 3


def test_a_marker_goes_with_its_file(tmp_path: Path) -> None:
    path = close(tmp_path, [usage(1), usage(2)])
    marker_of(path).touch()
    figures = full(tmp_path)
    assert (figures.removed, figures.unsent) == (1, 0)
    assert list(path.parent.iterdir()) == []
