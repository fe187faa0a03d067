"""A made-up month: files as gateways write them, records that agree with themselves, true sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.demo.month import write_month
from gateway.pipeline.demo.planted import Used, What
from gateway.telemetry.latency import BOUNDS
from gateway.usage import reading
from gateway.usage.files import closed_files, name_of
from gateway.usage.reading import Ledger
from gateway.usage.records import STREAMS, Usage
from tests.unit.pipeline.demo.conftest import MONDAY, Month

HOUR = 3_600_000


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(it.relative_to(folder)): it.read_bytes() for it in folder.rglob("*") if it.is_file()
    }


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    made = [
        write_month(tmp_path / str(it), MONDAY, seed=seed, days=3, tenants=4, interval_ms=HOUR)
        for it, seed in enumerate((7, 7, 8))
    ]
    one, same, other = (content(tmp_path / str(it)) for it in range(3))
    assert len(one) > 3 * 24 * 2
    assert one == same
    assert made[0] == made[1]
    assert one != other


def test_the_truth_is_what_the_reader_sums_up(month: Month) -> None:
    sums: dict[str, Used] = defaultdict(Used)
    for it in month.usage:
        if it.op == "send":
            sums[it.tenant or ""] = sums[it.tenant or ""].plus(Used(it.msgs, 0, it.bytes_wire))
        elif it.op == "deliver":
            sums[it.tenant or ""] = sums[it.tenant or ""].plus(Used(0, it.msgs, 0, it.bytes_wire))
        elif it.op == "connect":
            tenant = month.planted.owners[it.principal or ""]
            sums[tenant] = sums[tenant].plus(Used(open_ms=it.open_ms))
    assert dict(sums) == month.planted.truth
    assert len(sums) == 4


def test_the_reader_finds_each_record_once_and_no_other_loss_than_planted(month: Month) -> None:
    assert len(month.usage) == month.planted.records
    assert len(month.events) == month.planted.events
    assert month.ledger.missing() == month.planted.missing
    lost = Counter[tuple[str, str]]()
    for it in (*month.planted.of(What.GAP), *month.planted.of(What.TORN)):
        lost[it.gateway or "", it.boot or ""] += it.number
    assert month.planted.missing == lost
    (twice,) = month.planted.of(What.DUPLICATE)
    assert month.ledger.repeated == twice.number


def test_events_are_whole_and_in_the_order_of_time(month: Month) -> None:
    ledger = Ledger()
    events = list(reading.events(month.folder, ledger))
    assert (ledger.missing(), ledger.unreadable, ledger.repeated) == ({}, 0, 0)
    by_process = sorted(events, key=lambda it: (it.gw, it.boot, it.seq))
    for _, some in groupby(by_process, key=lambda it: (it.gw, it.boot)):
        times = [it.time_ms for it in some]
        assert times == sorted(times)


def test_each_gateway_has_a_file_for_each_hour_and_begins_anew_once(month: Month) -> None:
    for kind in STREAMS:
        files = [it for path in closed_files(month.folder / kind) if (it := name_of(path))]
        boots = {(it.gw, it.boot) for it in files}
        assert sorted(gw for gw, _ in boots) == ["edge-1", "edge-1", "edge-2", "edge-2"]
        firsts = Counter(it for it in files if it.first == 1)
        assert {(it.gw, it.boot) for it in firsts} == boots
        # One more of each gateway, as it ends within an hour. One of usage is missing, and one
        # there twice; an hour may have no events.
        most = 2 * (3 * 24 + 1)
        assert len(files) == most if kind == "usage" else most - 20 < len(files) <= most


def test_a_name_tells_the_records_of_its_file(month: Month) -> None:
    (torn,), (spoiled,) = month.planted.of(What.TORN), month.planted.of(What.HOSTILE)
    checked = 0
    for path in closed_files(month.folder / "usage"):
        if str(path.relative_to(month.folder)) in (torn.file, spoiled.file):
            continue
        named = name_of(path)
        assert named is not None
        records = [msgspec.json.decode(it, type=Usage) for it in reading.lines_of(path, Ledger())]
        assert [it.seq for it in records] == list(range(named.first, named.last + 1))
        assert {(it.gw, it.boot) for it in records} == {(named.gw, named.boot)}
        assert len({it.start_ms // HOUR for it in records}) == 1
        checked += 1
    assert checked == 2 * (3 * 24 + 1) - 2


def test_intervals_end_at_the_same_time_but_where_a_process_ends(month: Month) -> None:
    (ahead,) = month.planted.of(What.CLOCK_AHEAD)
    restarts = month.planted.of(What.RESTART)
    ends, begins = {it.start_ms for it in restarts}, {it.end_ms for it in restarts}
    assert len(ends) == 2
    seen = set()
    for it in month.usage:
        if it.gw == ahead.gateway and ahead.start_ms <= it.start_ms < ahead.end_ms + ahead.number:
            continue
        end = it.start_ms + it.dur_ms
        assert end % 300_000 == 0 or end in ends
        assert it.start_ms % 300_000 == 0 or it.start_ms in begins
        seen |= {end, it.start_ms} & (ends | begins)
    assert seen == ends | begins


def test_numbers_of_a_record_agree(month: Month) -> None:
    kinds = Counter(it.op for it in month.usage)
    assert all(kinds[it] > 1000 for it in ("send", "deliver", "connect", "latency"))
    for it in month.usage:
        if it.op in ("send", "deliver"):
            assert 0 < it.entries <= it.msgs < it.bytes_wire
            assert it.peak_msgs_1s * it.dur_ms >= it.msgs * 1000
            assert it.peak_msgs_1s <= it.msgs
            assert it.peak_bytes_1s <= it.bytes_wire
            assert it.throttle_count == sum(wait.count for wait in it.throttles)
            assert it.throttle_ms == sum(wait.ms for wait in it.throttles)
            assert (it.subscription is None) == (it.op == "send")
        if it.op == "send":
            assert it.sent_msgs >= it.msgs
            assert (it.sent_msgs > it.msgs) == (it.errors > 0)
        if it.op == "connect":
            assert (it.tenant, it.topic) == (None, None)
            assert 0 < it.open_ms <= it.clients * it.dur_ms
    assert any(it.errors for it in month.usage)
    assert any(it.refused for it in month.usage)


def test_latencies_are_histograms_of_what_was_sent(month: Month) -> None:
    assert {it.lat_what for it in month.usage if it.op == "latency"} == {
        *("connect", "send", "own", "lookup", "first_message")
    }
    for it in month.usage:
        if it.op == "latency":
            assert len(it.lat_bucket) == len(BOUNDS) + 1
            assert it.lat_count == sum(it.lat_bucket) > 0
            assert (it.tenant is None) == (it.lat_what == "connect")
    sent = sum(it.entries for it in month.usage if it.op == "send")
    counted = sum(it.lat_count for it in month.usage if it.lat_what == "send")
    assert counted == pytest.approx(sent, rel=0.02)  # they are not in the same lost records


def test_one_topic_has_half_of_all_traffic(month: Month) -> None:
    noisy = month.planted.of(What.NOISY_NEIGHBOUR)[0].tenant
    sent = Counter[str]()
    for it in month.usage:
        if it.op == "send" and it.tenant != noisy:
            sent[it.topic or ""] += it.msgs
    assert len(sent) > 4
    ((_, most),) = sent.most_common(1)
    others = sum(sent.values()) - most
    # The noisy one is left out, and has a quarter of the rest: half of all is two thirds here.
    assert 0.5 < most / (most + others) < 0.75


def test_delivered_is_what_was_sent_to_each_subscription(month: Month) -> None:
    delivered: dict[str, Counter[str]] = defaultdict(Counter)
    sent = Counter[str]()
    for it in month.usage:
        if it.op == "send":
            sent[it.topic or ""] += it.msgs
        elif it.op == "deliver":
            delivered[it.topic or ""][it.subscription or ""] += it.msgs
    assert len(delivered) > 4
    for topic, each in delivered.items():
        assert 1 <= len(each) <= 3
        for number in each.values():
            assert number == pytest.approx(sent[topic], rel=0.1)  # other records were lost


def test_progress_is_told_by_the_day(month: Month) -> None:
    assert month.progress == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"days": 2}, "days: 2 cannot be; give 3 to"),
        ({"tenants": 3}, "tenants: 3 cannot be; give 4 to 20"),
        ({"tenants": 21}, "tenants: 21 cannot be"),
        ({"interval_ms": 7_000}, "interval_ms: 7000 cannot be"),
        ({"interval_ms": 0}, "interval_ms: 0 cannot be"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, int], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        write_month(tmp_path, MONDAY, **wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_records_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with pytest.raises(ConfigurationError, match="has a folder events"):
        write_month(tmp_path, MONDAY)
    assert [it.name for it in tmp_path.iterdir()] == ["events"]
