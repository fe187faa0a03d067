"""Denied rights are counted by tenants and topics that have traffic; clients name any."""

from __future__ import annotations

import pytest

from gateway.policy.accounts import AccountBook
from gateway.telemetry.denials import Denials, DeniedTenant
from gateway.telemetry.figures import OTHER
from gateway.telemetry.latency import ListenerLatencies, SlowSends
from gateway.wire.account import Action
from gateway.wire.subject import Caller, Subject
from tests.support.subjects import subject_of

ORDERS = "persistent://acme/web/orders"


def about(topic: str) -> Subject:
    subject = subject_of(topic, listener="clients")
    return subject._replace(caller=subject.caller._replace(cluster="main"))


@pytest.fixture
def book() -> AccountBook:
    return AccountBook()


@pytest.fixture
def denials(book: AccountBook) -> Denials:
    latencies = ListenerLatencies(SlowSends())
    latencies.of("acme", proven=True)
    found = Denials()
    found.follow({"clients": latencies}, {"main": book})
    return found


def test_a_tenant_with_traffic_has_a_row_and_all_others_share_one(denials: Denials) -> None:
    for topic in (ORDERS, "persistent://made/up/1", "persistent://made-too/up/2"):
        denials.denied(about(topic), "produce", None, shadow=False)
    denials.denied(about(ORDERS), "consume", "r", shadow=True)
    assert denials.counts == {
        DeniedTenant("clients", "acme", "produce", "enforce"): 1,
        DeniedTenant("clients", OTHER, "produce", "enforce"): 2,
        DeniedTenant("clients", "acme", "consume", "shadow"): 1,
    }


def test_a_topic_that_is_used_has_its_denials_and_leaves_them_to_the_others(
    denials: Denials, book: AccountBook
) -> None:
    account = book.open(Action.PRODUCE, about(ORDERS))
    account.count(1)
    for topic in (ORDERS, ORDERS, "persistent://acme/web/unused"):
        denials.denied(about(topic), "consume", None, shadow=False)
    denials.denied(about(ORDERS), "consume", None, shadow=True)
    (figures,) = book.topics()
    assert figures.denied == {"consume": 2}
    book.close(account)
    (figures,) = book.topics()
    assert figures.denied == {"consume": 2}


def test_a_denial_without_a_topic_is_counted_by_rule_alone(denials: Denials) -> None:
    denials.denied(Subject(Caller(listener="clients")), "connect", None, shadow=False)
    assert not denials.counts
