"""Findings from a Kafka broker's answers."""

from __future__ import annotations

import errno

import pytest

from gateway.doctor.finding import Finding, Status
from gateway.doctor.kafka.hello import Broker, Versions
from gateway.doctor.kafka.verdicts import judge_broker, judge_metadata
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import FETCH, METADATA, PRODUCE
from tests.unit.doctor.kafka.fakes import CONTROLLER, CURRENT

ADDRESS = Address("10.0.0.1", 9092)
BOTH = [ADDRESS, ADDRESS._replace(port=9093, tls=True)]


def of(answer: Broker | Stranger | Unreached, broker: Address = ADDRESS) -> Finding:
    return judge_broker("b", broker, answer, 0.0031)


def knowing(offered: dict[int, tuple[int, int]]) -> Broker:
    return Broker({key: Versions(*it) for key, it in offered.items()}, {})


def test_a_broker_tells_its_newest_versions_and_no_release() -> None:
    found = of(knowing(CURRENT))
    assert found.status is Status.OK
    assert found.detail == (
        "speaks Kafka, knows Produce up to 13, Fetch up to 18, Metadata up to 13; connected in 3 ms"
    )


def test_a_controller_is_no_broker() -> None:
    found = of(knowing(CONTROLLER))
    assert found.status is Status.FAIL
    assert found.detail.endswith("it does not offer Produce, Metadata")
    assert "controller" in found.remedy


@pytest.mark.parametrize("versions", [(-2, -1), (99, 100)])
def test_a_broker_of_another_time_fails_with_what_is_apart(versions: tuple[int, int]) -> None:
    found = of(knowing(CURRENT | {PRODUCE: versions}))
    assert found.status is Status.FAIL
    assert found.detail.startswith("has no version of Produce in common with the gateway")
    assert f"Produce up to {versions[1]}" in found.detail


@pytest.mark.parametrize("key", [PRODUCE, FETCH, METADATA])
def test_a_broker_that_is_newer_in_part_is_fine(key: int) -> None:
    assert of(knowing(CURRENT | {key: (0, 99)})).status is Status.OK


@pytest.mark.parametrize("broker", BOTH)
@pytest.mark.parametrize("oddity", list(Stranger))
def test_a_peer_that_is_not_a_broker_gets_advice_about_the_port(
    oddity: Stranger, broker: Address
) -> None:
    found = of(oddity, broker)
    port = "port with TLS" if broker.tls else "plain port"
    assert found.status is Status.FAIL
    assert found.detail == f"{oddity.words('Kafka')}: not a broker's {port}"
    usual = "usually 9093" if broker.tls else "usually 9092"
    assert usual in found.remedy or found.example


def test_another_scheme_is_shown_where_it_helps() -> None:
    plain, secured = BOTH
    assert of(Stranger.TLS, plain).example == "brokers: kafka+ssl://10.0.0.1:9092"
    assert of(Stranger.PLAIN, secured).example == "brokers: kafka://10.0.0.1:9093"


def test_a_connection_that_fails_is_told_as_for_other_protocols() -> None:
    assert "nothing listens there" in of(Unreached(errno.ECONNREFUSED)).detail


# -- where brokers are -----------------------------------------------------------------------


def test_brokers_are_told_by_their_ids() -> None:
    found = judge_metadata("m", dict.fromkeys((5, 1, 2, 3), ADDRESS))
    assert (found.status, found.detail) == (Status.OK, "4 brokers, with the ids 1-3,5")


def test_a_broker_that_wants_sasl_first_is_skipped_with_what_to_see_to() -> None:
    found = judge_metadata("m", Stranger.CLOSED)
    assert found.status is Status.SKIP
    assert "SASL" in found.detail
    assert "`targets`" in found.remedy
    assert "`advertise`" in found.remedy


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Stranger.SILENT, "gives no answer"),
        (Stranger.STRANGE, "gives an answer that cannot be read"),
        ({}, "names no broker"),
    ],
)
def test_a_broker_that_says_nothing_of_brokers_is_a_warning(
    told: dict[int, Address] | Stranger, words: str
) -> None:
    found = judge_metadata("m", told)
    assert found.status is Status.WARN
    assert found.detail.endswith(words)
