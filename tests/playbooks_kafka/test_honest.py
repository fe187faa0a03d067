"""A client and a broker that keep to the protocol, cut anywhere: nobody is taken for a violator,
all responses come in their order, and each says what was asked for."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gateway.wire.account import Right
from gateway.wire.contract import EndReason
from gateway.wire.kafka import frames
from gateway.wire.kafka.errors import ErrorCode

from .frames import (
    BY_ID,
    FETCH,
    HEARTBEAT,
    METADATA,
    PRODUCE,
    ask,
    asked,
    batch,
    fetch,
    id_of,
    metadata,
    named,
    produce,
    tell,
    told,
)
from .script import KafkaServices, Play

TOPICS = ("a", "b", "denied", "secret", "gone")
"""All but the last are at the broker."""

DENIED = {"denied", "secret"}
IDS = {id_of(name): name for name in TOPICS}
HEARTBEATS = 4


class Broker:
    """Answers in order. `said`: what it has heard and not answered."""

    def __init__(self) -> None:
        self._heard = b""

    def hears(self, data: bytes) -> list[bytes]:
        """Return the responses to whole requests among these bytes."""
        self._heard += data
        responses = []
        while len(self._heard) >= 4:
            size = 4 + int.from_bytes(self._heard[:4])
            if len(self._heard) < size:
                break
            frame, self._heard = self._heard[:size], self._heard[size:]
            responses += self._responses(frame)
        return responses

    def _responses(self, frame: bytes) -> list[bytes]:
        head, fields = frames.request(frame), asked(frame)
        match head.key:
            case 0 if not fields["Acks"]:
                return []
            case 0:
                said = {"Responses": [self._produced(it) for it in fields["TopicData"]]}
            case 1:
                said = {"Responses": [self._fetched(it) for it in fields["Topics"]]}
            case 3:
                said = {"Topics": [self._described(it) for it in fields["Topics"] or ()]}
            case _:
                said = {}
        return [tell(head.key, head.version, head.correlation, **said)]

    def _error(self, it: dict[str, Any], field: str) -> int:
        if "TopicId" in it and field not in it:
            return 0 if IDS.get(it["TopicId"], "gone") != "gone" else 100
        return 0 if it[field] in TOPICS[:-1] else 3

    def _produced(self, it: dict[str, Any]) -> dict[str, Any]:
        name: dict[str, Any] = {key: it[key] for key in ("Name", "TopicId") if key in it}
        error = self._error(it, "Name")
        return {**name, "PartitionResponses": [{"ErrorCode": error}]}

    def _fetched(self, it: dict[str, Any]) -> dict[str, Any]:
        name: dict[str, Any] = {key: it[key] for key in ("Topic", "TopicId") if key in it}
        error = self._error(it, "Topic")
        records = None if error else batch(3, 200)
        return {**name, "Partitions": [{"ErrorCode": error, "Records": records}]}

    def _described(self, it: dict[str, Any]) -> dict[str, Any]:
        name = it["Name"] or IDS.get(it.get("TopicId", b""))
        if name not in TOPICS[:-1]:
            return {"Name": it["Name"] or None, "TopicId": it.get("TopicId"), "ErrorCode": 3}
        return {"Name": name, "TopicId": id_of(name)}


class Run:
    """One conversation of many requests. `owed`: what the client waits for, in order."""

    def __init__(self, seed: int, services: KafkaServices) -> None:
        self.random = Random(seed)
        self.services = services
        self.asks_others = bool(services.undecided)
        self.play = Play(services)
        self.broker = Broker()
        self.owed: list[bytes] = []
        self._to_gateway = b""
        self._from_broker = b""
        self._to_client = b""

    def asks(self, number: int) -> None:
        """Have the client send a request."""
        random = self.random
        topics = random.sample(TOPICS, random.randrange(1, 4))
        version = random.choice((4, 9, 12, 13))
        acks = random.choice((1, -1, 0))
        request = random.choice(
            (
                produce(version, number, acks, **{it: batch(1, 100) for it in topics}),
                produce(version, number, acks, a=batch(1, 3000)),
                fetch(random.choice((4, 12, 13, 16, 18)), number, *topics),
                metadata(random.choice((4, 9, 12)), number, *topics),
                ask(HEARTBEAT, 4, number, GroupId="g"),
                ask(HEARTBEAT, 4, number, GroupId="denied"),
            )
        )
        self._to_gateway += request
        if frames.request(request).key != PRODUCE or asked(request)["Acks"]:
            self.owed.append(request)

    def moves(self, all_of_it: bool = False) -> None:
        """Move some bytes of each direction, and finish what runs."""
        data, self._to_gateway = self._some(self._to_gateway, all_of_it)
        self._reached(self.play.client(data))
        data, self._from_broker = self._some(self._from_broker, all_of_it)
        self._heard(self.play.broker(data))
        if self.play.jobs and (all_of_it or self.random.random() < 0.5):
            self.play.finish()
        if self.random.random() < 0.1:
            self.play.after(self.random.choice((0.1, 3.0, 30.0, 130.0)))
        for account in self.play.services.live:
            if account.held and self.random.random() < 0.3:
                self.play.grant(account, 3)
        self._reached(self.play.broker_got())
        self._heard(self.play.client_got())

    def _some(self, data: bytes, all_of_it: bool) -> tuple[bytes, bytes]:
        size = len(data) if all_of_it else self.random.randrange(0, 600)
        return data[:size], data[size:]

    def _reached(self, data: bytes) -> None:
        self._from_broker += b"".join(self.broker.hears(data))

    def _heard(self, data: bytes) -> None:
        self._to_client += data
        self._reached(self.play.broker_got())
        while len(self._to_client) >= 4:
            size = 4 + int.from_bytes(self._to_client[:4])
            if len(self._to_client) < size:
                return
            response, self._to_client = self._to_client[:size], self._to_client[size:]
            self._is_answered(self.owed.pop(0), response)

    def _is_answered(self, request: bytes, response: bytes) -> None:
        head, fields = frames.request(request), asked(request)
        assert frames.correlation(response) == head.correlation
        found = told(head.key, head.version, response)
        if head.key == FETCH and found["ThrottleTimeMs"]:
            assert found["Responses"] == []
        elif head.key in (PRODUCE, FETCH):
            wanted, field, inner = {
                PRODUCE: ("TopicData", "Name", "PartitionResponses"),
                FETCH: ("Topics", "Topic", "Partitions"),
            }[head.key]
            names = [
                IDS[it["TopicId"]] if head.version >= BY_ID else it[field] for it in fields[wanted]
            ]
            assert [self._named(it, head.version, field) for it in found["Responses"]] == names
            for name, it in zip(names, found["Responses"], strict=True):
                self._is_right(name, it[inner][0]["ErrorCode"])
        if head.key == HEARTBEAT:
            denied = fields["GroupId"] == "denied" and self.services.guarded
            late = self.asks_others and found["ErrorCode"]  # nobody has said it in time
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED if denied or late else 0
            assert found["ErrorCode"] == refused
        if head.key == METADATA:
            told_of = {it["Name"] for it in found["Topics"]}
            assert told_of == {it["Name"] for it in fields["Topics"]}

    def _named(self, it: dict[str, Any], version: int, field: str) -> str | None:
        return IDS.get(it["TopicId"]) if version >= BY_ID else it[field]

    def _is_right(self, name: str, error: int) -> None:
        again = {ErrorCode.NOT_LEADER, ErrorCode.UNKNOWN_TOPIC_ID}
        if name in DENIED and self.services.guarded:
            assert error == ErrorCode.TOPIC_AUTHORIZATION_FAILED or error in again
        elif name == "gone":
            assert error in {3, 100}
        else:
            assert error == 0 or error in again


def _services(how: str) -> KafkaServices:
    services = KafkaServices()
    if how != "open":
        services.forbidden = {
            (right, name) for right in (Right.PRODUCE, Right.CONSUME) for name in DENIED
        }
        services.forbidden |= {(Right.LOOKUP, "secret"), (Right.CONSUME, "group:denied")}
    if how == "asked":
        services.undecided = {"a", "b", "denied", "group:g"}
    if how == "limited":
        services.lease = 3
    return services


@pytest.mark.parametrize("how", ["open", "guarded", "asked", "limited"])
@pytest.mark.parametrize("seed", range(25))
def test_nobody_who_keeps_to_the_protocol_is_taken_for_a_violator(seed: int, how: str) -> None:
    run = Run(seed, _services(how))
    for number in range(40):
        run.asks(number)
        run.moves()
    for _ in range(400):
        if not run.owed:
            break
        run.moves(all_of_it=True)
        run.play.after(1.0)
    # A denied topic within a cut request, or one that waited too long for a limit.
    if run.play.ended not in (EndReason.OPERATOR_CLOSED, EndReason.OVER_LIMIT):
        assert run.owed == []
        assert run.play.ended is None
    run.play.close()


def test_topics_by_name_and_by_id_are_told_apart() -> None:
    assert named(BY_ID, "a") == {"TopicId": id_of("a")}
    assert named(BY_ID - 1, "a") == {"Name": "a"}
