"""What a real cluster has answered, in each version of each API whose responses are changed."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.address import Address
from gateway.wire.kafka.addresses import DESCRIBE_QUORUM, SHARE_ACKNOWLEDGE, SHARE_FETCH
from gateway.wire.kafka.fields import TO_CLIENT, Act, rules_of
from gateway.wire.kafka.rewriting import SETTINGS
from gateway.wire.kafka.versions import is_offered

from .captured import TOPIC, Captured, captured
from .frames import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    FETCH,
    METADATA,
    OFFERED,
    PRODUCE,
    Fields,
    ask,
    asked,
    known,
    tell,
    told,
)
from .script import Play

REWRITTEN = {
    it.key
    for it in OFFERED
    if any(rule.act is Act.ADDRESS for rule in rules_of(it.key, TO_CLIENT).values())
}
CHANGED = sorted({*REWRITTEN, DESCRIBE_QUORUM, DESCRIBE_CONFIGS, API_VERSIONS})

FIRST = {PRODUCE: 10, FETCH: 16, DESCRIBE_CONFIGS: 1}
"""The first versions of which answers name brokers; others of these are never changed. Of
DescribeConfigs, the first one that brokers of Kafka 4 serve."""

TRACE = b"127.0.0.94"
"""The cluster's address."""

LATEST = 12
"""A version of Metadata that tells ids of topics."""


def names(it: Captured) -> str:
    return f"{known(it.key).name} {it.version}"


def begun() -> Play:
    """Return a play that knows the topic as its cluster names it."""
    play = Play()
    (it,) = [it for it in captured() if (it.key, it.version) == (METADATA, LATEST)]
    (topic,) = told(METADATA, LATEST, it.response)["Topics"]
    play.listener.ids.learn(topic["TopicId"], TOPIC.encode())
    return play


def test_each_version_was_captured() -> None:
    expected = {
        (key, version)
        for key in CHANGED
        for version in range(known(key).request.first, known(key).request.last + 1)
        if version >= FIRST.get(key, 0)
    }
    assert {(it.key, it.version) for it in captured()} == expected


@pytest.mark.parametrize("piece", [7, 100_000])
@pytest.mark.parametrize("it", captured(), ids=names)
def test_an_answer_is_what_the_broker_said_but_for_addresses(it: Captured, piece: int) -> None:
    play = begun()
    if it.key == SHARE_ACKNOWLEDGE:  # of a session that the connection has begun
        names = {name: asked(it.request)[name] for name in ("GroupId", "MemberId")}
        play.client(ask(SHARE_FETCH, it.version, 0, ShareSessionEpoch=0, **names))
        play.broker(tell(SHARE_FETCH, it.version, 0))
    assert play.client(it.request) == it.request
    heard = b"".join(
        play.broker(it.response[at : at + piece]) for at in range(0, len(it.response), piece)
    )
    assert TRACE not in heard
    said = told(it.key, it.version, it.response)
    assert told(it.key, it.version, heard) == as_clients_see(it.key, said)
    for id, node in play.services.nodes.items():
        assert node == Address(TRACE.decode(), _port(said, id))


def as_clients_see(key: int, said: Any) -> Any:
    """Return a response as clients should get it."""
    if isinstance(said, list):
        return [as_clients_see(key, it) for it in said]
    if not isinstance(said, dict):
        return said
    if key == FETCH and "NodeEndpoints" in said:
        said = {name: it for name, it in said.items() if name != "NodeEndpoints"}
    if key == DESCRIBE_QUORUM and "Nodes" in said:
        return {**said, "Nodes": [{**it, "Listeners": []} for it in said["Nodes"]]}
    if key == API_VERSIONS and "ApiKeys" in said:
        return {**said, "ApiKeys": _offers(said["ApiKeys"])}
    found = {name: as_clients_see(key, it) for name, it in said.items()}
    if key == DESCRIBE_CONFIGS and said.get("Name", "").encode() in SETTINGS:
        found["Value"] = None
        if "Synonyms" in found:
            found["Synonyms"] = [{**it, "Value": None} for it in found["Synonyms"]]
    id = said.get("NodeId", said.get("BrokerId"))
    if id is not None and "Host" in said and id >= 0:
        found |= {"Host": "gateway.example", "Port": 9092 + id}
    return found


def _offers(told: list[Fields]) -> list[Fields]:
    """Return the APIs that the gateway offers, in no newer version than it knows."""
    return [
        {**it, "MaxVersion": min(it["MaxVersion"], known(it["ApiKey"]).request.last)}
        for it in told
        if is_offered(it["ApiKey"])
    ]


def _port(said: Any, id: int) -> int:
    """Return at which port a broker is, as a response says."""
    if isinstance(said, list):
        return max((_port(it, id) for it in said), default=-1)
    if not isinstance(said, dict):
        return -1
    if said.get("NodeId", said.get("BrokerId")) == id and "Port" in said:
        return int(said["Port"])
    return max((_port(it, id) for it in said.values()), default=-1)


@pytest.mark.parametrize("it", [it for it in captured() if it.key in REWRITTEN], ids=names)
def test_what_was_captured_names_a_broker(it: Captured) -> None:
    """Otherwise the playbooks above show nothing."""
    assert TRACE in it.response
