"""Metrics per topic, as text in slices."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.policy import accounts
from gateway.telemetry import topics
from gateway.telemetry.exposition import TopicExposition


class Side(NamedTuple):
    messages: int = 0
    bytes: int = 0
    frames: int = 0
    receipts: int = 0
    open: int = 0


class Figures(NamedTuple):
    topic: str
    produced: Side = Side()
    consumed: Side = Side()


class Book:
    def __init__(self, *figures):
        self.figures = figures

    def topics(self):
        return iter(self.figures)


def families(**books):
    text = b"".join(TopicExposition(books).chunks()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(found, name):
    return {
        (it.labels["topic"], it.labels.get("direction")): it.value for it in found[name].samples
    }


NAME = "persistent://t/n/x"


def test_each_number_stands_in_its_family():
    found = families(main=Book(Figures(NAME, Side(1, 2, 3, 4, 5), Side(6, 7, 8, 9, 10))))
    for column, name in enumerate(("messages", "bytes", "frames", "receipts"), 1):
        assert samples(found, f"gateway_topic_{name}") == {
            (NAME, "to_broker"): column,
            (NAME, "to_client"): column + 5,
        }
    assert samples(found, "gateway_topic_producers") == {(NAME, None): 5}
    assert samples(found, "gateway_topic_consumers") == {(NAME, None): 10}


def test_all_families_have_their_type_and_help_with_or_without_topics():
    for book in (Book(), Book(Figures(NAME, Side(1)))):
        found = families(main=book)
        assert {name: family.type for name, family in found.items()} == {
            "gateway_topic_messages": "counter",
            "gateway_topic_bytes": "counter",
            "gateway_topic_frames": "counter",
            "gateway_topic_receipts": "counter",
            "gateway_topic_producers": "gauge",
            "gateway_topic_consumers": "gauge",
        }
        assert all(family.documentation for family in found.values())


def test_labels_name_cluster_and_parts():
    found = families(main=Book(Figures("x", Side(1))))
    (sample,) = found["gateway_topic_messages"].samples
    assert sample.labels == {
        "cluster": "main",
        "tenant": "public",
        "namespace": "default",
        "topic": "persistent://public/default/x",
        "direction": "to_broker",
    }


def test_a_direction_that_nobody_used_is_left_out():
    found = families(main=Book(Figures(NAME, Side(open=1)), Figures("persistent://t/n/idle")))
    assert samples(found, "gateway_topic_messages") == {(NAME, "to_broker"): 0}
    assert samples(found, "gateway_topic_consumers") == {}


def test_clusters_are_told_apart():
    found = families(east=Book(Figures(NAME, Side(1))), west=Book(Figures(NAME, Side(2))))
    values = {it.labels["cluster"]: it.value for it in found["gateway_topic_messages"].samples}
    assert values == {"east": 1, "west": 2}


def test_two_spellings_of_a_topic_are_one_series():
    found = families(
        main=Book(
            Figures("x", Side(1, 10)),
            Figures("y", Side(5)),
            Figures("persistent://public/default/x", Side(2, 20)),
        )
    )
    assert samples(found, "gateway_topic_messages") == {
        ("persistent://public/default/x", "to_broker"): 3,
        ("persistent://public/default/y", "to_broker"): 5,
    }


def test_what_a_book_folded_has_a_row_without_tenant():
    assert topics.OTHER == accounts.OTHER
    found = families(main=Book(Figures(accounts.OTHER, Side(3))))
    (sample,) = found["gateway_topic_messages"].samples
    assert (sample.labels["topic"], sample.labels["tenant"]) == ("__other__", "")


@pytest.mark.parametrize("name", ['"', "\\", "\n", "\\n", 'a"} 1\nx{b="', "\r", "é", "{}"])
def test_odd_characters_stay_inside_their_label(name):
    name = f"persistent://t/n/{name}"
    assert samples(families(main=Book(Figures(name, Side(1)))), "gateway_topic_messages") == {
        (name, "to_broker"): 1
    }


@given(st.lists(st.text(), unique=True, max_size=5))
def test_no_name_breaks_the_text(names):
    found = families(main=Book(*(Figures(name, Side(1)) for name in names)))
    assert sum(it.value for it in found["gateway_topic_messages"].samples) == len(names)


def test_half_a_surrogate_pair_is_replaced():
    (sample,) = families(m=Book(Figures("\ud800", Side(1))))["gateway_topic_messages"].samples
    assert sample.labels["topic"].endswith("?")


def test_ten_thousand_topics_come_in_slices_and_all_of_them():
    book = Book(
        *(Figures(f"persistent://t/n/{n}", Side(n + 1), Side(n + 1)) for n in range(10_000))
    )
    chunks = list(TopicExposition({"main": book}).chunks())
    assert max(chunk.count(b"\n") for chunk in chunks) <= 1000
    assert sum(not chunk for chunk in chunks) == 40
    lines = b"".join(chunks).decode().splitlines()
    assert len(lines) == 10_000 * 10 + 6 * 2
    assert len(set(lines)) == len(lines)


def test_labels_are_kept_for_the_next_scrape_and_forgotten_with_their_topic(monkeypatch):
    made = []
    real = topics.parsed
    monkeypatch.setattr(
        "gateway.telemetry.exposition.parsed", lambda it: made.append(it) or real(it)
    )
    book = Book(Figures("x", Side(1)), Figures("y", Side(1)))
    exposition = TopicExposition({"main": book})
    for figures in (book.figures, book.figures[:1], book.figures):
        book.figures = figures
        b"".join(exposition.chunks())
    assert made == ["x", "y", "y"]


def test_two_scrapes_at_once_do_not_disturb_each_other():
    exposition = TopicExposition({"main": Book(*(Figures(str(n), Side(1)) for n in range(600)))})
    alone = b"".join(exposition.chunks())
    one, other = exposition.chunks(), exposition.chunks()
    pairs = list(zip(one, other, strict=True))
    assert b"".join(first for first, _ in pairs) == alone
    assert b"".join(second for _, second in pairs) == alone


def test_a_real_book_is_exposed():
    book = accounts.AccountBook()
    account = book.open(accounts.Action.PRODUCE, NAME)
    account.messages = 3
    found = families(main=book)
    assert samples(found, "gateway_topic_messages") == {(NAME, "to_broker"): 3}
    assert samples(found, "gateway_topic_producers") == {(NAME, None): 1}
