"""Exemplars: the slowest sends, behind the buckets of their durations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from prometheus_client.openmetrics import parser

from gateway.telemetry.exemplars import LONGEST, Exemplars
from gateway.telemetry.exposition import LatencyExposition
from gateway.telemetry.figures import OTHER
from gateway.telemetry.latency import ListenerLatencies, SlowSends
from gateway.telemetry.open_metrics import converted
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of

parse: Callable[[str], Iterable[Any]] = parser.text_string_to_metric_families

ORDERS = "persistent://acme/web/orders"


class World:
    def __init__(self) -> None:
        self.slow = SlowSends(lambda: 1000.5)
        self.listeners = {"clients": ListenerLatencies(self.slow)}

    def send(self, topic: str, seconds: float, *, proven: bool = True) -> None:
        subject = subject_of(topic, listener="clients", connection=7)
        account = Account(Action.PRODUCE, subject)
        tenant = "" if subject.topic is None else subject.topic.tenant
        self.listeners["clients"].of(tenant, proven=proven).send.add(seconds)
        self.slow.note(account, seconds, 0.0)

    def samples(self) -> dict[tuple[str, str], tuple[dict[str, str], float, float]]:
        """Return labels, value and time of each exemplar, by tenant and bucket."""
        exemplars = Exemplars(self.listeners, self.slow).by_sample()
        chunks = LatencyExposition(self.listeners).chunks()
        text = b"".join(converted(chunks, exemplars)).decode()
        samples = (it for family in parse(text) for it in family.samples)
        return {
            (it.labels["tenant"], it.labels["le"]): (
                it.exemplar.labels,
                it.exemplar.value,
                float(it.exemplar.timestamp),
            )
            for it in samples
            if it.exemplar is not None
        }


@pytest.fixture
def world() -> World:
    return World()


def test_the_slowest_send_of_a_bucket_is_its_exemplar(world: World) -> None:
    for seconds in (0.3, 0.4, 0.02, 90.0):
        world.send(ORDERS, seconds)
    labels = {"topic": ORDERS, "connection": "7"}
    assert world.samples() == {
        ("acme", "0.5"): (labels, 0.4, 1000.5),
        ("acme", "0.025"): (labels, 0.02, 1000.5),
        ("acme", "+Inf"): (labels, 90.0, 1000.5),
    }


def test_a_tenant_without_a_histogram_has_that_of_the_others(world: World) -> None:
    world.send(ORDERS, 0.3, proven=False)
    assert list(world.samples()) == [(OTHER, "0.5")]


@pytest.mark.parametrize("name", ['a"b\\c\nd', "x" * LONGEST])
def test_an_odd_or_long_name_breaks_nothing(name: str, world: World) -> None:
    world.send(f"persistent://acme/web/{name}", 0.3)
    ((labels, value, _),) = world.samples().values()
    assert value == 0.3
    assert labels["connection"] == "7"
    assert "topic" not in labels


def test_without_sends_there_are_none(world: World) -> None:
    world.listeners["clients"].of("acme", proven=True).send.add(0.1)
    assert world.samples() == {}
