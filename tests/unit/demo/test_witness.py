"""What excuses that messages pass more than once."""

from __future__ import annotations

import pytest

from gateway.demo.figures import GatewayCounts, Snapshot
from gateway.demo.plan import Flow
from gateway.demo.witness import Witness

TOPIC = "persistent://shop/orders/placed"
FLOW = Flow(TOPIC, rate=1, size=1, consumers=2, partitions=3)


def _seen(producers: int = 0, consumers: int = 0) -> Snapshot:
    return Snapshot(0.0, {TOPIC: GatewayCounts(producers=producers, consumers=consumers)})


def test_an_owner_that_changes_is_a_move_even_if_it_comes_back() -> None:
    witness = Witness([FLOW])
    for owner in ("1 2 1", "1 2 1"):
        witness.observe(_seen(), {TOPIC: owner, "other": "2"})
    assert not witness.moved
    for owner in ("1 1 1", "1 2 1"):
        witness.observe(_seen(), {TOPIC: owner, "other": "2"})
    assert witness.moved == {TOPIC}
    assert witness.owners == {TOPIC: "1 2 1", "other": "2"}


def test_a_topic_that_comes_later_has_not_moved() -> None:
    witness = Witness([FLOW])
    witness.observe(_seen(), {})
    witness.observe(_seen(), {TOPIC: "1"})
    assert not witness.moved


@pytest.mark.parametrize(
    ("producers", "consumers", "visited"),
    [(0, 0, False), (3, 6, False), (4, 6, True), (3, 7, True)],
)
def test_more_clients_than_the_demo_has_are_visitors(
    producers: int, consumers: int, visited: bool
) -> None:
    witness = Witness([FLOW])
    witness.observe(_seen(producers, consumers), {})
    witness.observe(_seen(), {})
    assert (witness.visited == {TOPIC}) == visited
