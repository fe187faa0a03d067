"""The gateway's metrics as the numbers of the table."""

from __future__ import annotations

import pytest

from gateway.lab.demo.figures import (
    GatewayCounts,
    Rates,
    Snapshot,
    Witness,
    rates,
    read,
    total,
    without_partition,
)
from gateway.lab.demo.plan import Flow
from gateway.policy.accounts import AccountBook
from gateway.telemetry.exposition import TopicExposition
from gateway.wire.account import Action
from tests.support.subjects import subject_of

ORDERS, ROWS = "persistent://shop/orders/placed", "persistent://noisy/import/rows"

FLOW = Flow(ORDERS, rate=1, size=1, consumers=2, partitions=3)

PROCESS = """\
# TYPE gateway_connections gauge
gateway_connections{listener="demo",state="opening"} 1.0
gateway_connections{listener="demo",state="open"} 4.0
# TYPE gateway_connections_ended_total counter
gateway_connections_ended_total{listener="demo",reason="client_closed"} 5.0
gateway_connections_ended_total{listener="demo",reason="broker_closed"} 2.0
gateway_connections_ended_total{listener="demo",reason="broker_lost"} 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 3.5
"""


def _exposition(book: AccountBook) -> str:
    """Return metrics as the gateway writes them."""
    return b"".join(TopicExposition({"demo": book}).chunks()).decode()


def _pass(book: AccountBook, action: Action, topic: str, messages: int, size: int) -> None:
    account = book.open(action, subject_of(topic))
    account.messages += messages
    account.bytes += size


def test_the_gateways_metrics_are_read() -> None:
    book = AccountBook()
    _pass(book, Action.PRODUCE, ROWS, 3, 300)
    _pass(book, Action.CONSUME, ROWS, 2, 250)
    found = read(_exposition(book), at=5.0)
    assert found.at == 5.0
    assert found.topics == {ROWS: GatewayCounts(3, 2, 300, 250, producers=1, consumers=1)}


def test_partitions_are_one_topic() -> None:
    book = AccountBook()
    for partition in range(3):
        _pass(book, Action.PRODUCE, f"{ORDERS}-partition-{partition}", 10, 100)
    found = read(_exposition(book), at=0.0)
    assert found.topics == {ORDERS: GatewayCounts(30, 0, 300, 0, producers=3)}


def test_only_a_number_at_the_end_is_a_partition() -> None:
    assert without_partition(f"{ORDERS}-partition-12") == ORDERS
    for topic in (ORDERS, f"{ORDERS}-partition-", f"{ORDERS}-partition-1x"):
        assert without_partition(topic) == topic


def test_connections_are_added_up_and_broken_ones_counted() -> None:
    found = read(PROCESS, at=0.0)
    assert (found.connections, found.broken, found.topics) == (5, 3, {})


def test_rates_are_differences_over_time() -> None:
    before = Snapshot(10.0, {ROWS: GatewayCounts(100, 80, 1000, 800, 1, 1)})
    after = Snapshot(12.0, {ROWS: GatewayCounts(150, 140, 3000, 1800, 2, 3)})
    assert rates(before, after) == {ROWS: Rates(25.0, 30.0, 1000.0, 500.0, 2, 3)}


def test_a_new_topic_starts_from_zero() -> None:
    after = Snapshot(2.0, {ROWS: GatewayCounts(messages_in=10, producers=1)})
    assert rates(Snapshot(0.0, {}), after) == {ROWS: Rates(messages_in=5.0, producers=1)}


def test_an_idle_topic_without_clients_has_no_row() -> None:
    idle = {ROWS: GatewayCounts(100, 100, 1, 1)}
    assert rates(Snapshot(0.0, idle), Snapshot(1.0, idle)) == {}
    silent = {ROWS: GatewayCounts(100, 100, 1, 1, consumers=1)}
    assert rates(Snapshot(0.0, idle), Snapshot(1.0, silent)) == {ROWS: Rates(consumers=1)}


def test_two_scrapes_at_once_do_not_divide_by_zero() -> None:
    after = Snapshot(1.0, {ROWS: GatewayCounts(messages_in=1)})
    assert rates(Snapshot(1.0, {}), after)[ROWS].messages_in == 1000.0


def test_the_total_adds_every_column() -> None:
    assert total([Rates(1, 2, 3, 4, 5, 6), Rates(10, 20, 30, 40, 50, 60)]) == Rates(
        11, 22, 33, 44, 55, 66
    )
    assert total([]) == Rates()


# -- moves and visitors ----------------------------------------------------------------------


def _seen(producers: int = 0, consumers: int = 0) -> Snapshot:
    return Snapshot(0.0, {ORDERS: GatewayCounts(producers=producers, consumers=consumers)})


def test_a_changed_owner_is_a_move_even_if_it_returns() -> None:
    witness = Witness([FLOW])
    for owner in ("1 2 1", "1 2 1"):
        witness.observe(_seen(), {ORDERS: owner, "other": "2"})
    assert not witness.moved
    for owner in ("1 1 1", "1 2 1"):
        witness.observe(_seen(), {ORDERS: owner, "other": "2"})
    assert witness.moved == {ORDERS}
    assert witness.owners == {ORDERS: "1 2 1", "other": "2"}


def test_a_new_topic_has_not_moved() -> None:
    witness = Witness([FLOW])
    witness.observe(_seen(), {})
    witness.observe(_seen(), {ORDERS: "1"})
    assert not witness.moved


@pytest.mark.parametrize(
    ("producers", "consumers", "visited"),
    [(0, 0, False), (3, 6, False), (4, 6, True), (3, 7, True)],
)
def test_additional_clients_are_visitors(producers: int, consumers: int, visited: bool) -> None:
    witness = Witness([FLOW])
    witness.observe(_seen(producers, consumers), {})
    witness.observe(_seen(), {})
    assert (witness.visited == {ORDERS}) == visited
