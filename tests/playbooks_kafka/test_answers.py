"""Answers come in the order of requests, and name no broker."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.address import Address
from gateway.wire.contract import EndReason
from gateway.wire.kafka import frames
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.in_flight import MOST
from gateway.wire.kafka.versions import CLIENT_METRICS, OF_PRINCIPALS
from gateway.wire.plugin import Mode
from tests.playbooks.services import BROKER_1
from tests.support.versions import versions

from .frames import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    METADATA,
    PRODUCE,
    ask,
    asked,
    batch,
    correlations,
    described,
    fetch,
    fetched,
    id_of,
    known,
    metadata,
    named,
    produce,
    produced,
    split,
    tell,
    told,
)
from .script import CLUSTER, KafkaServices, Play

NO_ADMIN = {(Right.ADMINISTER, CLUSTER)}
"""With this, the gateway answers DescribeConfigs itself."""


def guarded(*forbidden: tuple[Right, str]) -> KafkaServices:
    services = KafkaServices()
    services.forbidden = {*forbidden}
    return services


# -- order -----------------------------------------------------------------------------------------


def test_a_version_of_api_versions_that_is_too_new_is_answered_in_version_0() -> None:
    play = Play()
    later = known(API_VERSIONS).request.last + 1
    frame = bytearray(ask(API_VERSIONS, 3, 7))
    frame[6:8] = later.to_bytes(2)
    assert play.client(bytes(frame)) == b""
    response = told(API_VERSIONS, 0, play.client_got())
    assert response["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
    own = known(API_VERSIONS).request
    assert response["ApiKeys"] == [
        {"ApiKey": API_VERSIONS, "MinVersion": own.first, "MaxVersion": own.last}
    ]


@pytest.mark.parametrize(("key", "version"), [(METADATA, 99), (62, 0), (500, 0), (80, 0), (4, 0)])
def test_what_clients_are_not_offered_ends_the_connection(key: int, version: int) -> None:
    play = Play()
    rest = struct.pack(">hhih", key, version, 1, -1) + bytes(10)
    assert play.client(len(rest).to_bytes(4) + rest) == b""
    assert play.ended is EndReason.UNKNOWN_COMMAND


def test_a_request_that_is_not_answered_leaves_no_place_in_the_order() -> None:
    play = Play()
    play.client(produce(9, 1, 0, a=batch(3)), metadata(12, 2, "a"))
    play.broker(described(12, 2, "a"))
    assert play.ended is None
    account = play.account("a")
    assert (account.messages, account.outstanding) == (3, 0)


def test_answers_of_the_gateway_keep_their_place_among_the_brokers() -> None:
    play = Play(guarded(*NO_ADMIN))
    refused = [ask(DESCRIBE_CONFIGS, 4, it) for it in (2, 3, 5)]
    asked = [metadata(12, 1, "a"), refused[0], refused[1], produce(9, 4, a=batch(1)), refused[2]]
    assert correlations_asked(play.client(*asked)) == [1, 4]
    assert play.client_got() == b""
    assert correlations(play.broker(described(12, 1, "a"))) == [1, 2, 3]
    assert correlations(play.broker(produced(9, 4, a=0))) == [4, 5]
    play.client(ask(DESCRIBE_CONFIGS, 4, 6))
    assert correlations(play.client_got()) == [6]


def correlations_asked(stream: bytes) -> list[int]:
    return [frames.request(frame).correlation for frame in split(stream)]


@pytest.mark.parametrize("piece", [1, 9, 50, 9000])
def test_an_answer_of_the_gateway_follows_the_whole_fetch_before_it(piece: int) -> None:
    play = Play(guarded(*NO_ADMIN))
    play.client(fetch(12, 1, "a"), ask(DESCRIBE_CONFIGS, 4, 2), fetch(12, 3, "a"))
    records = batch(2, 1000)
    said = fetched(12, 1, a=records) + fetched(12, 3, a=records)
    heard = b"".join(play.broker(said[at : at + piece]) for at in range(0, len(said), piece))
    assert correlations(heard) == [1, 2, 3]
    first, _, third = split(heard)
    assert first + third == said
    assert play.account("a").messages == 4


@pytest.mark.parametrize("seed", range(30))
def test_any_requests_are_answered_in_their_order(seed: int) -> None:
    random = Random(seed)
    play = Play(guarded(*NO_ADMIN), known=("a",))
    owed: list[bytes] = []
    heard = b""
    kinds: list[Callable[[int], tuple[bytes, bytes]]] = [
        lambda it: (metadata(12, it, "a"), described(12, it, "a")),
        lambda it: (fetch(12, it, "a"), fetched(12, it, a=batch(1, random.randrange(3000)))),
        lambda it: (fetch(16, it, "a"), fetched(16, it, a=batch(2))),
        lambda it: (produce(9, it, a=batch(1)), produced(9, it, a=0)),
        lambda it: (ask(DESCRIBE_CONFIGS, 4, it), b""),
    ]
    for number in range(100):
        request, response = random.choice(kinds)(number)
        play.client(request)
        heard += play.client_got()
        if response:
            owed.append(response)
        if random.random() < 0.4:
            said = b"".join(owed)
            owed.clear()
            while said:
                size = random.randrange(1, 2000)
                heard += play.broker(said[:size])
                said = said[size:]
    heard += play.broker(*owed)
    assert correlations(heard) == list(range(100))


@pytest.mark.parametrize("response", [described(12, 2), fetched(12, 2), produced(9, 2)])
def test_an_answer_to_another_request_is_a_violation_by_the_broker(response: bytes) -> None:
    play = Play()
    play.client(metadata(12, 1), metadata(12, 2))
    with pytest.raises(PeerError, match="a response to 2 in place of 1"):
        play.broker(response)


def test_an_answer_that_nobody_asked_for_is_a_violation_by_the_broker() -> None:
    with pytest.raises(PeerError, match="without a request"):
        Play().broker(described(12, 1))


def test_a_client_that_asks_too_much_at_once_waits() -> None:
    play = Play()
    requests = [metadata(12, 1), produce(9, 2, a=batch(1)), metadata(12, 3)]
    requests += [produce(9, 3, a=batch(1))] * (MOST - 3)
    assert play.client(*requests, produce(9, 4, a=batch(1)), metadata(12, 5)) == b"".join(requests)
    play.after(1)
    assert play.broker_got() == b""
    play.broker(described(12, 1))
    play.after(1)
    assert correlations_asked(play.broker_got()) == [4]
    play.broker(produced(9, 2, a=0))
    play.after(1)
    assert correlations_asked(play.broker_got()) == [5]


def test_responses_of_the_gateways_own_wait_within_a_bound() -> None:
    """Behind one request that the broker holds, a client had others refused without end."""
    play = Play()
    play.client(metadata(12, 1))
    refused = produce(9, 2, **{f"/{number}": b"" for number in range(500)})
    for _ in range(20):
        play.client(refused)
    assert play.is_waiting
    heard = play.broker(described(12, 1))
    play.after(1)
    assert len(correlations(heard + play.client_got())) == 21


# -- what names brokers ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(known(METADATA).response))
def test_metadata_has_the_gateways_addresses(version: int) -> None:
    play = Play()
    play.client(metadata(version, 1, "a"))
    said = described(version, 1, "a", brokers={1: "one.internal", 2: "two.internal"})
    heard = told(METADATA, version, play.broker(said))
    assert [(it["NodeId"], it["Host"], it["Port"]) for it in heard["Brokers"]] == [
        (1, "gateway.example", 9093),
        (2, "gateway.example", 9094),
    ]
    assert play.services.nodes[2] == Address("two.internal", 9092)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_broker_that_can_be_nowhere_is_a_violation(port: int) -> None:
    play = Play()
    play.client(metadata(12, 1))
    nodes = [{"NodeId": 1, "Host": "one.internal", "Port": port}]
    with pytest.raises(PeerError):
        play.broker(tell(METADATA, 12, 1, Brokers=nodes))


def test_a_coordinator_that_there_is_not_stays_none() -> None:
    play = Play()
    play.client(ask(FIND_COORDINATOR, 3, 1, Key="group"))
    said = tell(FIND_COORDINATOR, 3, 1, ErrorCode=15, NodeId=-1, Host="", Port=-1)
    assert play.broker(said) == said


@pytest.mark.parametrize("version", versions(known(DESCRIBE_CONFIGS).response, 1))
def test_settings_that_are_addresses_have_no_values(version: int) -> None:
    play = Play()
    play.client(ask(DESCRIBE_CONFIGS, version, 1))
    long = "word " * 2000
    values = {
        "listeners": "PLAINTEXT://10.0.0.1:9092",
        "advertised.listeners": f"PLAINTEXT://{BROKER_1}",
        "controller.quorum.voters": "1@10.0.0.1:9093",
        "log.dirs": f"/data/{BROKER_1.host}",
        "a.comment": long,
    }
    configs = [{"Name": name, "Value": value} for name, value in values.items()]
    results = [{"ErrorMessage": f"no {BROKER_1.host}", "ResourceName": "1", "Configs": configs}]
    heard = told(DESCRIBE_CONFIGS, version, play.broker(_configs(version, results)))
    (result,) = heard["Results"]
    assert result["ErrorMessage"] == "no broker"
    assert {it["Name"]: it["Value"] for it in result["Configs"]} == {
        **dict.fromkeys(("listeners", "advertised.listeners", "controller.quorum.voters")),
        "log.dirs": "/data/broker",
        "a.comment": long,
    }


def _configs(version: int, results: object) -> bytes:
    return tell(DESCRIBE_CONFIGS, version, 1, Results=results)


def test_what_is_only_for_brokers_is_not_offered() -> None:
    play = Play()
    play.client(ask(API_VERSIONS, 3, 1))
    offers = [{"ApiKey": key, "MinVersion": 0, "MaxVersion": 99} for key in (0, 3, 4, 62, 80, 999)]
    heard = told(API_VERSIONS, 3, play.broker(tell(API_VERSIONS, 3, 1, ApiKeys=offers)))
    assert [it["ApiKey"] for it in heard["ApiKeys"]] == [PRODUCE, METADATA]
    assert heard["ApiKeys"][1]["MaxVersion"] == known(METADATA).request.last


def test_leaders_in_a_fetch_that_passes_are_not_seen() -> None:
    play = Play(known=("a",))
    play.client(fetch(16, 1, "a"))
    nodes = [{"NodeId": 1, "Host": "one.internal", "Port": 9092}]
    said = tell(FETCH, 16, 1, NodeEndpoints=nodes)
    heard = play.broker(said)
    assert len(heard) == len(said)
    assert b"internal" not in heard
    assert "NodeEndpoints" not in told(FETCH, 16, heard)


# -- hidden topics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(known(METADATA).response))
def test_topics_that_a_client_may_not_know_are_not_listed(version: int) -> None:
    play = Play(guarded((Right.LOOKUP, "secret"), (Right.LOOKUP, "hidden")))
    play.client(metadata(version, 1))
    said = described(version, 1, "a", "secret", "b", "hidden", brokers={1: "one.internal"})
    heard = told(METADATA, version, play.broker(said))
    assert [it["Name"] for it in heard["Topics"]] == ["a", "b"]
    assert heard["Brokers"][0]["Host"] == "gateway.example"


@pytest.mark.parametrize("is_guarded", [False, True])
def test_all_topics_of_a_large_cluster_are_told(is_guarded: bool) -> None:
    play = Play(guarded((Right.LOOKUP, "t-3")) if is_guarded else None)
    play.client(metadata(12, 1))
    topics = [
        {
            "Name": f"t-{number}",
            "TopicId": id_of(f"{number:05}"),
            "Partitions": [{"PartitionIndex": index, "LeaderId": 1} for index in range(30)],
        }
        for number in range(1000)
    ]
    brokers = [{"NodeId": 1, "Host": "one.internal", "Port": 9092}]
    said = tell(METADATA, 12, 1, Brokers=brokers, Topics=topics)
    heard = told(METADATA, 12, play.broker(said))
    assert heard["Brokers"][0]["Host"] == "gateway.example"
    names = [it["Name"] for it in heard["Topics"]]
    assert names == [it["Name"] for it in topics if it["Name"] != "t-3" or not is_guarded]


def test_a_topic_that_was_asked_for_without_the_right_is_denied_by_itself() -> None:
    play = Play(guarded((Right.LOOKUP, "secret")))
    reached = play.client(metadata(12, 1, "a", "secret"))
    assert b"secret" not in reached
    assert len(reached) == len(metadata(12, 1, "a", "secret"))
    names = [it["Name"] for it in _asked_for(reached)]
    nothing = [{"Name": names[1], "ErrorCode": 17}, {"Name": "a"}]
    heard = told(METADATA, 12, play.broker(tell(METADATA, 12, 1, Topics=nothing)))
    errors = {it["Name"]: it["ErrorCode"] for it in heard["Topics"]}
    assert errors == {"secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "a": 0}


def _asked_for(frame: bytes) -> list[dict[str, str]]:
    found: list[dict[str, str]] = asked(frame)["Topics"]
    return found


def test_errors_of_answers_are_counted_by_their_code() -> None:
    play = Play()
    play.client(ask(HEARTBEAT, 4, 1), produce(9, 2, a=batch(1), b=batch(1)), metadata(12, 3))
    play.broker(tell(HEARTBEAT, 4, 1, ErrorCode=27), produced(9, 2, a=19, b=6))
    play.broker(tell(METADATA, 12, 3, Topics=[{"Name": "a", "ErrorCode": 5}]))
    assert play.services.errors == {("Heartbeat", 27): 1, ("Produce", 19): 1, ("Produce", 6): 1}


@pytest.mark.parametrize("piece", [1, 30, 10_000])
@pytest.mark.parametrize("version", versions(known(FETCH).response))
def test_errors_of_fetched_partitions_are_counted_while_they_pass(version: int, piece: int) -> None:
    play = Play(guarded((Right.CONSUME, "denied")), known=("a", "denied"))
    reached = play.client(fetch(version, 1, "a", "denied"))
    other = {
        key: it for key, it in asked(reached)["Topics"][1].items() if key in ("Topic", "TopicId")
    }
    partitions = [{"PartitionIndex": 0, "ErrorCode": 1, "Records": b""}]
    denied = [{"PartitionIndex": 0, "ErrorCode": 3, "Records": b""}]
    responses = [
        {**named(version, "a", "Topic"), "Partitions": partitions},
        {**other, "Partitions": denied},
    ]
    of_all = {"ErrorCode": 70} if version >= 7 else {}
    said = tell(FETCH, version, 1, Responses=responses, **of_all)
    for at in range(0, len(said), piece):
        play.broker(said[at : at + piece])
    expected = {("Fetch", 1): 1, ("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED): 1}
    assert play.services.errors == expected | ({("Fetch", 70): 1} if of_all else {})


def test_a_throttled_or_cleaned_answer_says_its_new_size() -> None:
    play = Play()
    play.client(ask(HEARTBEAT, 4, 1))
    said = tell(HEARTBEAT, 4, 1, ErrorCode=0)
    assert play.broker(said) == said


@pytest.mark.parametrize("key", sorted(CLIENT_METRICS))
@pytest.mark.parametrize("hides", [False, True])
def test_a_listener_may_hide_what_clients_measure(key: int, hides: bool) -> None:
    play = Play(hides_client_metrics=hides)
    assert (play.client(ask(key, 0, 1)) == b"") is hides
    assert (play.ended is EndReason.UNKNOWN_COMMAND) is hides
    play = Play(hides_client_metrics=hides)
    play.client(ask(API_VERSIONS, 3, 1))
    offers = [{"ApiKey": it, "MinVersion": 0, "MaxVersion": 3} for it in (key, API_VERSIONS)]
    response = told(API_VERSIONS, 3, play.broker(tell(API_VERSIONS, 3, 1, ApiKeys=offers)))
    assert (key in [it["ApiKey"] for it in response["ApiKeys"]]) is not hides


@pytest.mark.parametrize("key", sorted(OF_PRINCIPALS))
@pytest.mark.parametrize("mode", Mode)
def test_credentials_of_the_gateways_own_principal_are_given_to_nobody(
    key: int, mode: Mode
) -> None:
    """A delegation token is made for whoever a broker knows, which is the gateway in `verify`."""
    play = Play(mode=mode)
    version = known(key).request.first
    passes = play.client(ask(key, version, 1)) != b""
    assert passes is (mode is not Mode.VERIFY)
    assert (play.ended is EndReason.UNKNOWN_COMMAND) is (mode is Mode.VERIFY)
    play = Play(mode=mode)
    play.client(ask(API_VERSIONS, 3, 1))
    told_by_broker = [
        {"ApiKey": it, "MinVersion": 0, "MaxVersion": 3} for it in (key, API_VERSIONS)
    ]
    response = told(API_VERSIONS, 3, play.broker(tell(API_VERSIONS, 3, 1, ApiKeys=told_by_broker)))
    assert (key in [it["ApiKey"] for it in response["ApiKeys"]]) is passes
