"""Metrics of several processes as those of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.crew import CrewMetrics
from gateway.telemetry.exposition import TopicExposition
from gateway.telemetry.figures import OTHER, CrewFigures, LogFigures, TopicFigures, Totals
from gateway.workers.merging import OTHERWISE, merged
from tests.support.subjects import topic_of

HEAD = "# HELP {0} What it is.\n# TYPE {0} {1}\n"


def family(name: str, kind: str, *samples: str) -> str:
    return HEAD.format(name, kind) + "".join(f"{name}{it}\n" for it in samples)


def merge(*texts: str, counters: bool = False) -> str:
    return b"".join(merged([[it] for it in texts], counters=counters)).decode()


def test_samples_of_one_name_and_labels_are_added() -> None:
    one = family("a_total", "counter", '{x="1"} 2', '{x="2"} 3')
    other = family("a_total", "counter", '{x="2"} 4', '{x="3"} 5')
    whole = family("a_total", "counter", '{x="1"} 2', '{x="2"} 7', '{x="3"} 5')
    assert merge(one, other) == whole


def test_one_alone_stays_as_it_is() -> None:
    text = family("a", "gauge", " 2") + family("b_total", "counter", '{c="d e"} 1.5')
    assert merge(text) == text


def test_families_stand_together_whoever_has_them() -> None:
    one = family("a", "gauge", " 1") + family("b", "gauge", " 1")
    other = family("b", "gauge", " 1") + family("c", "gauge", " 1")
    whole = family("a", "gauge", " 1") + family("b", "gauge", " 2") + family("c", "gauge", " 1")
    assert merge(one, other) == whole


def test_large_counters_are_exact() -> None:
    large = 2**64 + 1
    assert f" {3 * large}\n" in merge(*[family("a_total", "counter", f" {large}")] * 3)


@pytest.mark.parametrize("name", sorted(OTHERWISE))
def test_what_is_not_added_is_the_least_or_the_most(name: str) -> None:
    most = name == "process_open_fds"
    found = merge(*(family(name, "gauge", f' {{a="b"}} {it}') for it in ("2.0", "1.0", "3.0")))
    assert found.splitlines()[-1].endswith(" 3.0" if most else " 1.0")


def test_what_is_not_added_exists() -> None:
    """In `tests/unit/test_docs.py` all metrics are held to the page; here the table is, to it."""
    from tests.unit.test_docs import _exposition

    assert set(OTHERWISE) <= set(_kinds(_exposition()))


def test_of_those_that_ended_only_counters_count() -> None:
    text = family("a", "gauge", " 1") + family("b_total", "counter", " 2")
    assert merge(text, text, counters=True) == family("b_total", "counter", " 4")


@given(st.integers(1, 40), st.integers(0, 3))
def test_a_text_may_be_cut_anywhere(size: int, empty: int) -> None:
    text = family("a", "gauge", '{b="c"} 1', '{b="d"} 2.5') + family("e_total", "counter", " 7")
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    found = b"".join(merged([["", *parts, *[""] * empty], parts])).decode()
    assert found == merge(text, text)


def test_others_run_after_each_part() -> None:
    """A step without output is one too."""
    text = family("a", "gauge", *(f'{{b="{it}"}} 1' for it in range(100)))
    parts = [text[at : at + 100] for at in range(0, len(text), 100)]
    steps = merged([parts])
    assert [next(steps) for _ in parts] == [b""] * len(parts)


class Book:
    """Topics with one number everywhere."""

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
def test_what_is_written_for_topics_is_merged_as_it_is_meant(books: list[dict[str, int]]) -> None:
    expositions = [TopicExposition({"main": Book(it)}) for it in books]
    text = b"".join(merged([b"".join(it.chunks()).decode()] for it in expositions)).decode()
    totals: dict[str, int] = {}
    for book in books:
        for name, number in book.items():
            totals[name] = totals.get(name, 0) + number
    (messages,) = [it for it in _families(text) if it.name == "gateway_topic_messages"]
    assert len(messages.samples) == 2 * len(totals)
    assert {it.labels["topic"]: it.value for it in messages.samples} == totals


def test_a_parent_tells_how_many_there_are() -> None:
    text = CrewMetrics(lambda: CrewFigures(3, 7), LogFigures(2)).render().decode()
    samples = {it.name: it.value for family in _families(text) for it in family.samples}
    assert (samples["gateway_workers"], samples["gateway_worker_restarts_total"]) == (3, 7)
    assert samples["gateway_log_lines_dropped_total"] == 2
    assert samples["process_resident_memory_bytes"] > 0


def _families(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))


def _kinds(text: str) -> list[str]:
    return [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")]
