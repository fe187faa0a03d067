"""Merging the metrics of workers, and keeping the counters of those that ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.exposition import TopicExposition
from gateway.telemetry.families import FAMILIES, Merge
from gateway.telemetry.figures import CrewFigures, LogFigures, TopicFigures, Totals, others_of
from gateway.telemetry.process import CrewMetrics
from gateway.workers import merging
from gateway.workers.merging import Life, MetricsHistory, merge
from tests.support.faults import assert_none
from tests.support.subjects import topic_of

OTHER = others_of("t")
HEAD = "# HELP {0} What it is.\n# TYPE {0} {1}\n"


def family(name: str, kind: str, *samples: str) -> str:
    return HEAD.format(name, kind) + "".join(f"{name}{it}\n" for it in samples)


def merge_whole(*texts: str, counters: bool = False) -> str:
    return b"".join(merge([[it] for it in texts], counters=counters)).decode()


def test_samples_of_one_name_and_labels_are_added() -> None:
    one = family("a_total", "counter", '{x="1"} 2', '{x="2"} 3')
    other = family("a_total", "counter", '{x="2"} 4', '{x="3"} 5')
    whole = family("a_total", "counter", '{x="1"} 2', '{x="2"} 7', '{x="3"} 5')
    assert merge_whole(one, other) == whole


def test_a_single_exposition_is_unchanged() -> None:
    text = family("a", "gauge", " 2") + family("b_total", "counter", '{c="d e"} 1.5')
    assert merge_whole(text) == text


def test_samples_of_one_family_stand_together() -> None:
    one = family("a", "gauge", " 1") + family("b", "gauge", " 1")
    other = family("b", "gauge", " 1") + family("c", "gauge", " 1")
    whole = family("a", "gauge", " 1") + family("b", "gauge", " 2") + family("c", "gauge", " 1")
    assert merge_whole(one, other) == whole


def test_large_counters_are_exact() -> None:
    large = 2**64 + 1
    assert f" {3 * large}\n" in merge_whole(*[family("a_total", "counter", f" {large}")] * 3)


def test_each_family_is_merged_as_it_declares() -> None:
    assert_none(f"{it}: {fault}" for it in FAMILIES for fault in _faults(it))


def _faults(name: str) -> Iterator[str]:
    declared = FAMILIES[name]
    expected = {Merge.SUM: "6.0", Merge.LEAST: "1.0", Merge.MOST: "3.0"}[declared.merge]
    samples = (f'{{a="b"}} {it}' for it in ("2.0", "1.0", "3.0"))
    merged = merge_whole(*(family(name, declared.kind, it) for it in samples)).split()[-1]
    if merged != expected:
        yield f"{merged}, not {expected}"


def test_only_what_grows_is_merged_on_request() -> None:
    grows = family("b_total", "counter", " 2") + family("c", "histogram", '_bucket{le="1"} 3')
    text = family("a", "gauge", " 1") + grows
    grown = family("b_total", "counter", " 4") + family("c", "histogram", '_bucket{le="1"} 6')
    assert merge_whole(text, text, counters=True) == grown


@given(st.integers(1, 40), st.integers(0, 3))
def test_a_text_may_be_cut_anywhere(size: int, empty: int) -> None:
    text = family("a", "gauge", '{b="c"} 1', '{b="d"} 2.5') + family("e_total", "counter", " 7")
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    found = b"".join(merge([["", *parts, *[""] * empty], parts])).decode()
    assert found == merge_whole(text, text)


def test_other_tasks_run_after_each_part() -> None:
    """Steps without output let other tasks run too."""
    text = family("a", "gauge", *(f'{{b="{it}"}} 1' for it in range(100)))
    parts = [text[at : at + 100] for at in range(0, len(text), 100)]
    steps = merge([parts])
    assert [next(steps) for _ in parts] == [b""] * len(parts)


class Book:
    """Topics whose figures are all the same number."""

    def __init__(self, topics: dict[str, int]) -> None:
        self._topics = topics

    def topics(self) -> Iterator[TopicFigures]:
        for name, number in self._topics.items():
            totals = Totals(*[number] * 5)
            topic = OTHER if name == OTHER.name else topic_of(name)
            yield TopicFigures(topic, totals, totals)


NAMES = st.sampled_from(
    [OTHER.name, *(f"persistent://p/d/{it}" for it in ("t", 'q"', "b\\", "l\ne", "é ü", "a 1 2"))]
)


@given(st.lists(st.dictionaries(NAMES, st.integers(1, 9)), min_size=1, max_size=4))
def test_expositions_of_topics_are_merged(books: list[dict[str, int]]) -> None:
    expositions = [TopicExposition({"main": Book(it)}) for it in books]
    text = b"".join(merge([b"".join(it.chunks()).decode()] for it in expositions)).decode()
    totals: dict[str, int] = {}
    for book in books:
        for name, number in book.items():
            totals[name] = totals.get(name, 0) + number
    (messages,) = [it for it in _families(text) if it.name == "gateway_topic_messages"]
    assert len(messages.samples) == 2 * len(totals)
    assert {it.labels["topic"]: it.value for it in messages.samples} == totals


def test_the_parent_exposes_the_number_of_workers() -> None:
    crew = CrewMetrics(lambda: CrewFigures(3, 7), LogFigures(2))
    text = b"".join(crew.chunks()).decode()
    samples = {it.name: it.value for family in _families(text) for it in family.samples}
    assert (samples["gateway_workers"], samples["gateway_worker_restarts_total"]) == (3, 7)
    assert samples["gateway_log_lines_dropped_total"] == 2
    assert samples["process_resident_memory_bytes"] > 0


# -- processes that ended --------------------------------------------------------------------

FIRST, SECOND, AGAIN = Life(1, 0), Life(2, 0), Life(1, 1)


def figures(count: int, open: int) -> list[str]:
    return [f"# TYPE sent_total counter\nsent_total {count}\n# TYPE open gauge\nopen {open}\n"]


def total(found: MetricsHistory) -> dict[str, float]:
    lines = b"".join(merge(found.expositions())).decode().splitlines()
    samples = (line.split(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def retire(found: MetricsHistory, *living: Life) -> None:
    for _ in found.retire(frozenset(living)):
        pass


@pytest.fixture
def told() -> MetricsHistory:
    """Return the metrics of two processes."""
    found = MetricsHistory()
    found.record({FIRST: figures(10, 1), SECOND: figures(20, 2)})
    return found


def test_all_living_processes_count(told: MetricsHistory) -> None:
    retire(told, FIRST, SECOND)
    assert total(told) == {"sent_total": 30, "open": 3}


def test_new_metrics_replace_the_old_ones(told: MetricsHistory) -> None:
    told.record({FIRST: figures(11, 0)})
    assert total(told) == {"sent_total": 31, "open": 2}


def test_counters_of_an_ended_process_stay_and_its_gauges_go(told: MetricsHistory) -> None:
    retire(told, SECOND, AGAIN)
    assert total(told) == {"sent_total": 30, "open": 2}
    told.record({AGAIN: figures(1, 1)})
    assert total(told) == {"sent_total": 31, "open": 3}
    retire(told, SECOND)
    retire(told, SECOND)
    assert total(told) == {"sent_total": 31, "open": 2}


def test_an_interrupted_retirement_starts_again(told: MetricsHistory) -> None:
    next(told.retire(frozenset({SECOND})))
    retire(told, SECOND)
    assert total(told) == {"sent_total": 30, "open": 2}


def test_the_history_is_bounded(told: MetricsHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "LARGEST", 10)
    retire(told, SECOND)
    assert total(told) == {"sent_total": 20, "open": 2}


def _families(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))


def _kinds(text: str) -> list[str]:
    return [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")]
