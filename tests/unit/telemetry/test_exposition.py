"""Metrics per topic, as text in slices."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.policy.accounts import AccountBook
from gateway.telemetry.exposition import (
    LONGEST_LABEL,
    LatencyExposition,
    TenantExposition,
    TopicExposition,
    labels_of,
)
from gateway.telemetry.figures import TENANTS, TopicBook, TopicFigures, Totals, others_of
from gateway.telemetry.latency import BOUNDS, ListenerLatencies, SlowSends
from gateway.wire.account import Account, Action
from gateway.wire.pulsar.topics import named
from gateway.wire.subject import TopicName
from tests.support.subjects import subject_of, topic_of

OTHER = others_of("t")

NOTHING = Totals(0, 0, 0, 0, 0)

Families = dict[str, Metric]


def totals(
    messages: int = 0, size: int = 0, frames: int = 0, receipts: int = 0, count: int = 0
) -> Totals:
    return Totals(messages, size, frames, receipts, open=count)


def figures_of(topic: str, produced: Totals = NOTHING, consumed: Totals = NOTHING) -> TopicFigures:
    return TopicFigures(topic_of(topic), produced, consumed)


class Book:
    def __init__(self, *figures: TopicFigures) -> None:
        self.figures = figures

    def topics(self) -> Iterator[TopicFigures]:
        return iter(self.figures)


def families(**books: TopicBook) -> Families:
    text = b"".join(TopicExposition(books).chunks()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(found: Families, name: str) -> dict[tuple[str, str | None], float]:
    return {
        (it.labels["topic"], it.labels.get("direction")): it.value for it in found[name].samples
    }


NAME = "persistent://t/n/x"


def test_each_number_is_in_its_family() -> None:
    found = families(main=Book(figures_of(NAME, totals(1, 2, 3, 4, 5), totals(6, 7, 8, 9, 10))))
    for column, name in enumerate(("messages", "bytes", "frames", "receipts"), 1):
        assert samples(found, f"gateway_topic_{name}") == {
            (NAME, "to_broker"): column,
            (NAME, "to_client"): column + 5,
        }
    assert samples(found, "gateway_topic_producers") == {(NAME, None): 5}
    assert samples(found, "gateway_topic_consumers") == {(NAME, None): 10}


def test_what_came_again_and_denials_have_lines_where_there_are_some() -> None:
    figures = figures_of(NAME, totals(1), totals(2)._replace(redelivered=3))
    found = families(main=Book(figures._replace(denied={"produce": 4}), figures_of("x", totals(1))))
    again = samples(found, "gateway_topic_redelivered_frames")
    assert again == {(NAME, "to_client"): 3}
    (sample,) = found["gateway_topic_access_denied"].samples
    assert (sample.labels["topic"], sample.labels["right"], sample.value) == (NAME, "produce", 4)


def test_checksum_failures_have_a_family_if_checksums_are_verified() -> None:
    book = Book(figures_of(NAME, totals(1)._replace(damaged=3)))
    text = b"".join(TopicExposition({"main": book}, verified=True).chunks()).decode()
    (found,) = (
        it
        for it in text_string_to_metric_families(text)
        if it.name == "gateway_topic_checksum_failures"
    )
    assert samples({"it": found}, "it") == {(NAME, "to_broker"): 3}
    assert not any("checksum" in name for name in families(main=book))


def test_all_families_have_their_type_and_help_with_or_without_topics() -> None:
    for book in (Book(), Book(figures_of(NAME, totals(1)))):
        found = families(main=book)
        assert {name: family.type for name, family in found.items()} == {
            "gateway_topic_messages": "counter",
            "gateway_topic_bytes": "counter",
            "gateway_topic_frames": "counter",
            "gateway_topic_receipts": "counter",
            "gateway_topic_producers": "gauge",
            "gateway_topic_consumers": "gauge",
            "gateway_topic_subscriptions": "gauge",
            "gateway_topic_wanted_messages": "gauge",
            "gateway_topic_held_bytes": "gauge",
            "gateway_topic_refused_frames": "counter",
            "gateway_topic_waits": "counter",
            "gateway_topic_wait_seconds": "counter",
            "gateway_topic_redelivered_frames": "counter",
            "gateway_topic_access_denied": "counter",
        }
        assert all(family.documentation for family in found.values())


def test_labels_name_cluster_and_parts() -> None:
    found = families(main=Book(figures_of("x", totals(1))))
    (sample,) = found["gateway_topic_messages"].samples
    assert sample.labels == {
        "cluster": "main",
        "tenant": "public",
        "namespace": "default",
        "topic": "persistent://public/default/x",
        "direction": "to_broker",
    }


def parts_of(labels: str) -> dict[str, str]:
    """Return labels with their values."""
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))


@pytest.mark.parametrize(
    ("name", "tenant", "namespace", "full"),
    [
        ("persistent://t/n/x", "t", "n", "persistent://t/n/x"),
        ("non-persistent://t/n/x-partition-3", "t", "n", "non-persistent://t/n/x-partition-3"),
        ("persistent://t/c/n/x", "t", "c/n", "persistent://t/c/n/x"),
        ("persistent://t/c/n/x/y/z", "t", "c/n", "persistent://t/c/n/x/y/z"),
        ("topic://t/n/x/y", "t", "n", "topic://t/n/x/y"),
        ("segment://t/n/x/0000-7fff-1", "t", "n", "segment://t/n/x/0000-7fff-1"),
        ("x", "public", "default", "persistent://public/default/x"),
        ("t/n/x", "t", "n", "persistent://t/n/x"),
        ("t/t/x", "t", "t", "persistent://t/t/x"),
    ],
)
def test_names_have_the_parts_that_pulsar_sees(
    name: str, tenant: str, namespace: str, full: str
) -> None:
    topic = named(name)
    assert topic is not None
    expected = {"cluster": "main", "tenant": tenant, "namespace": namespace, "topic": full}
    assert parts_of(labels_of("main", topic)) == expected


def test_folded_topics_have_their_tenant_alone() -> None:
    expected = {"cluster": "main", "tenant": "t", "namespace": "", "topic": "__other__"}
    assert parts_of(labels_of("main", OTHER)) == expected


def test_a_long_name_is_cut() -> None:
    topic = named("persistent://" + "/".join(["x" * 9999] * 3))
    assert topic is not None
    parts = parts_of(labels_of("main", topic))
    assert [len(parts[it]) for it in ("tenant", "namespace", "topic")] == [LONGEST_LABEL] * 3
    assert LONGEST_LABEL == 512


@given(st.text())
def test_no_name_fails(name: str) -> None:
    assert list(parts_of(labels_of("main", topic_of(name)))) == [
        "cluster",
        "tenant",
        "namespace",
        "topic",
    ]


def test_an_unused_direction_is_left_out() -> None:
    found = families(
        main=Book(figures_of(NAME, totals(count=1)), figures_of("persistent://t/n/idle"))
    )
    assert samples(found, "gateway_topic_messages") == {(NAME, "to_broker"): 0}
    assert samples(found, "gateway_topic_consumers") == {}


def test_clusters_are_distinguished() -> None:
    found = families(east=Book(figures_of(NAME, totals(1))), west=Book(figures_of(NAME, totals(2))))
    values = {it.labels["cluster"]: it.value for it in found["gateway_topic_messages"].samples}
    assert values == {"east": 1, "west": 2}


def test_two_spellings_of_a_topic_are_one_series() -> None:
    found = families(
        main=Book(
            figures_of("x", totals(1, 10)),
            figures_of("y", totals(5)),
            figures_of("persistent://public/default/x", totals(2, 20)),
        )
    )
    assert samples(found, "gateway_topic_messages") == {
        ("persistent://public/default/x", "to_broker"): 3,
        ("persistent://public/default/y", "to_broker"): 5,
    }


def test_folded_topics_have_a_row_of_their_tenant() -> None:
    found = families(main=Book(TopicFigures(OTHER, totals(3), NOTHING)))
    (sample,) = found["gateway_topic_messages"].samples
    assert (sample.labels["topic"], sample.labels["tenant"]) == ("__other__", "t")


@pytest.mark.parametrize("name", ['"', "\\", "\n", "\\n", 'a"} 1\nx{b="', "\r", "é", "{}"])
def test_odd_characters_stay_inside_their_label(name: str) -> None:
    name = f"persistent://t/n/{name}"
    assert samples(families(main=Book(figures_of(name, totals(1)))), "gateway_topic_messages") == {
        (name, "to_broker"): 1
    }


@given(st.lists(st.text(), unique=True, max_size=5))
def test_no_name_breaks_the_text(names: list[str]) -> None:
    found = families(main=Book(*(figures_of(name, totals(1)) for name in names)))
    assert sum(it.value for it in found["gateway_topic_messages"].samples) == len(names)


def test_half_a_surrogate_pair_is_replaced() -> None:
    (sample,) = families(m=Book(figures_of("\ud800", totals(1))))["gateway_topic_messages"].samples
    assert sample.labels["topic"].endswith("?")


def test_ten_thousand_topics_are_written_in_slices() -> None:
    book = Book(
        *(figures_of(f"persistent://t/n/{n}", totals(n + 1), totals(n + 1)) for n in range(10_000))
    )
    chunks = list(TopicExposition({"main": book}).chunks())
    assert max(chunk.count(b"\n") for chunk in chunks) <= 1000
    assert sum(not chunk for chunk in chunks) == 100  # of a hundred copied topics each
    lines = b"".join(chunks).decode().splitlines()
    assert len(lines) == 10_000 * 12 + 14 * 2
    assert len(set(lines)) == len(lines)


def test_a_topic_with_many_accounts_is_written_in_slices() -> None:
    """Adding up 200,000 producers of one topic took 16 ms without a break."""
    book = AccountBook()
    for _ in range(20_000):
        book.open(Action.PRODUCE, subject_of(NAME))
    chunks = list(TopicExposition({"main": book}).chunks())
    assert sum(not chunk for chunk in chunks) >= 2
    found = families(main=book)["gateway_topic_producers"].samples
    assert [it.value for it in found] == [20_000]


def test_topics_without_figures_of_their_own_are_one_row() -> None:
    book = AccountBook(topics_kept=2)
    for number in range(10):
        book.open(Action.PRODUCE, subject_of(f"persistent://t/n/{number}")).messages += 1
    found = samples(families(main=book), "gateway_topic_messages")
    assert {topic[-1]: number for (topic, _), number in found.items()} == {"0": 1, "1": 1, "_": 8}


def test_labels_are_kept_for_the_next_scrape_and_forgotten_with_their_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[TopicName] = []

    def noted(cluster: str, topic: TopicName) -> str:
        made.append(topic)
        return labels_of(cluster, topic)

    monkeypatch.setattr("gateway.telemetry.exposition.labels_of", noted)
    book = Book(figures_of("x", totals(1)), figures_of("y", totals(1)))
    exposition = TopicExposition({"main": book})
    for figures in (book.figures, book.figures[:1], book.figures):
        book.figures = figures
        b"".join(exposition.chunks())
    assert made == [topic_of("x"), topic_of("y"), topic_of("y")]


def test_two_scrapes_at_once_do_not_disturb_each_other() -> None:
    exposition = TopicExposition(
        {"main": Book(*(figures_of(str(n), totals(1)) for n in range(600)))}
    )
    alone = b"".join(exposition.chunks())
    one, other = exposition.chunks(), exposition.chunks()
    pairs = list(zip(one, other, strict=True))
    assert b"".join(first for first, _ in pairs) == alone
    assert b"".join(second for _, second in pairs) == alone


def test_a_real_book_is_exposed() -> None:
    book = AccountBook()
    account = book.open(Action.PRODUCE, subject_of(NAME))
    account.messages = 3
    found = families(main=book)
    assert samples(found, "gateway_topic_messages") == {(NAME, "to_broker"): 3}
    assert samples(found, "gateway_topic_producers") == {(NAME, None): 1}


@pytest.mark.parametrize("beyond", [2**63, 2**64, 2**64 + 1])
def test_numbers_beyond_64_bits_are_written(beyond: int) -> None:
    """Two spellings of one topic are added up too."""
    topics_of_one = (
        figures_of("a", totals(1)),
        figures_of("b", totals(7, beyond, 3), totals(0, 0, beyond)),
        figures_of("persistent://public/default/b", totals(1, 2**63, 0)),
        figures_of("c", totals(5), totals(2**63 - 1)),
        figures_of("persistent://public/default/c", totals(5, beyond), totals(2)),
    )
    text = b"".join(TopicExposition({"main": Book(*topics_of_one)}).chunks()).decode()
    assert told(text, "messages_total", "b", "to_broker") == 8
    assert told(text, "bytes_total", "b", "to_broker") == beyond + 2**63
    assert told(text, "frames_total", "b", "to_client") == beyond
    assert told(text, "messages_total", "c", "to_client") == 2**63 + 1
    assert told(text, "bytes_total", "c", "to_broker") == beyond
    assert told(text, "messages_total", "a", "to_broker") == 1


def told(text: str, family: str, topic: str, direction: str) -> int:
    """Return one sample with all its digits."""
    (value,) = (
        line.rpartition(" ")[2]
        for line in text.splitlines()
        if line.startswith(f"gateway_topic_{family}{{")
        and f'topic="persistent://public/default/{topic}"' in line
        and f'direction="{direction}"' in line
    )
    return int(value)


# -- tenants -------------------------------------------------------------------------------------


def tenants(exposition: TenantExposition) -> dict[str, dict[str, float]]:
    """Return the messages to the broker, and the producers, of each tenant."""
    text = b"".join(exposition.chunks()).decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("direction", "to_broker") == "to_broker":
                found.setdefault(sample.labels["tenant"], {})[sample.name] = sample.value
    return found


def passed(book: AccountBook, topic: str, messages: int) -> Account:
    account = book.open(Action.PRODUCE, subject_of(topic))
    account.messages += messages
    return account


def test_topics_of_a_tenant_are_added_up() -> None:
    book = AccountBook()
    passed(book, "persistent://a/n/one", 1)
    passed(book, "persistent://a/m/two", 2)
    passed(book, "persistent://b/n/one", 4)
    found = tenants(TenantExposition({"main": book}))
    assert {name: it["gateway_tenant_messages_total"] for name, it in found.items()} == {
        "a": 3,
        "b": 4,
    }
    assert found["a"]["gateway_tenant_producers"] == 2


def test_a_tenant_keeps_its_counts_when_its_topics_are_folded() -> None:
    book = AccountBook(topics_kept=2)
    exposition = TenantExposition({"main": book})
    for number in range(10):
        book.close(passed(book, f"persistent://a/n/{number}", 1))
        found = tenants(exposition)["a"]["gateway_tenant_messages_total"]
        assert found == number + 1


def test_a_tenant_has_a_row_from_its_first_message_on() -> None:
    book = AccountBook()
    exposition = TenantExposition({"main": book})
    account = passed(book, "persistent://a/n/one", 0)
    assert set(tenants(exposition)) == {OTHER.name}
    account.messages += 1
    assert set(tenants(exposition)) == {"a"}


def test_tenants_beyond_the_bound_share_a_row() -> None:
    book = AccountBook()
    for number in range(TENANTS + 5):
        passed(book, f"persistent://t{number}/n/one", 1)
    found = tenants(TenantExposition({"main": book}))
    assert len(found) == TENANTS + 1
    assert found[OTHER.name]["gateway_tenant_messages_total"] == 5


def test_ten_thousand_topics_of_tenants_are_added_up_in_slices() -> None:
    book = Book(*(figures_of(f"persistent://t{n % 9}/n/{n}", totals(n + 1)) for n in range(10_000)))
    chunks = list(TenantExposition({"main": book}).chunks())
    assert sum(not chunk for chunk in chunks) == 100
    text = b"".join(chunks).decode()
    assert text.count('{cluster="main",tenant="t0"') == 4 + 1  # nothing was consumed


def test_partitions_of_a_topic_may_be_one_row() -> None:
    names = [f"persistent://t/n/topic-partition-{number}" for number in range(3)]
    book = Book(*(figures_of(name, totals(2)) for name in names))
    each, folded = (
        b"".join(TopicExposition({"main": book}, folded=it).chunks()).decode()
        for it in (False, True)
    )
    shown = [it for it in folded.splitlines() if it.startswith("gateway_topic_messages_total{")]
    assert len(shown) == 1
    assert 'topic="persistent://t/n/topic",' in shown[0]
    assert shown[0].endswith(" 6")
    assert each.count("gateway_topic_messages_total{") == 3


# -- latencies -----------------------------------------------------------------------------------


def test_durations_are_exposed_by_listener_and_tenant() -> None:
    listener = ListenerLatencies(SlowSends())
    odd = listener.of('o"dd', proven=True)
    odd.send.add(0.0002, 3)
    odd.send.add(120.0)
    listener.of("quiet", proven=True)
    text = b"".join(LatencyExposition({"clients": listener}).chunks()).decode()
    found = {it.name: it for it in text_string_to_metric_families(text)}
    names = ("send", "send_own", "lookup", "first_message")
    assert {name: it.type for name, it in found.items()} == {
        f"gateway_{name}_seconds": "histogram" for name in names
    }
    assert not found["gateway_send_own_seconds"].samples
    buckets = {
        it.labels.pop("le", it.name.rpartition("_")[2]): it.value
        for it in found["gateway_send_seconds"].samples
        if it.labels["listener"] == "clients" and it.labels["tenant"] == 'o"dd'
    }
    assert buckets == {
        "0.0001": 0,
        **dict.fromkeys(map(str, BOUNDS[1:]), 3),
        "+Inf": 4,
        "count": 4,
        "sum": pytest.approx(120.0006),
    }


def test_durations_of_a_thousand_tenants_are_written_in_slices() -> None:
    """The metrics library wrote them in 0.7 s without a break."""
    listener = ListenerLatencies(SlowSends())
    for number in range(TENANTS):
        listener.of(f"t-{number}", proven=True).send.add(0.1)
    chunks = list(LatencyExposition({"clients": listener}).chunks())
    assert max(chunk.count(b"\n") for chunk in chunks) <= 1000
    assert sum(chunk.count(b"_count{") for chunk in chunks) == TENANTS
