"""What belongs to one client: nobody else ends it, takes it, or reads of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.account import Right
from gateway.wire.subject import Subject, TopicName
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.clients import DIGEST, known_as
from gateway.wire.tubemq.methods import METHODS

from .script import REAL, Tube, TubeServices, ask, asked, except_, reply_of, serial_of, tell, told
from .test_identity import REQUESTS

ID = "g_127.0.0.1-1234-1795167970960-1-Pull-1.13.0"
NAMED: dict[str, Any] = {"clientId": ID, "groupName": "g"}
PARTITION: dict[str, Any] = {**NAMED, "topicName": "demo", "partitionId": 1}
OK: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}

OF_GROUP = [m.BEAT_CONSUMER, m.END_CONSUMER, m.BEAT_PARTITIONS, m.BEAT_BALANCED, m.FIND_PARTITIONS]
"""Methods that name a group and no topic that is judged."""


def of(principal: str | None, node: int | None = None, services: Any = None) -> Tube:
    return Tube(services, node, principal=principal)


def at(method: int, principal: str | None, services: Any = None) -> Tube:
    """Return a pair with the server that has this method."""
    return of(principal, 1 if method in m.OF_BROKER else None, services)


def sent(method: int, principal: str | None, id: str = ID) -> str:
    """Return the client id that a server gets in a request."""
    frame = at(method, principal).client(ask(method, **REQUESTS[method] | {"clientId": id}))
    client: str = asked(frame).clientId
    return client


# -- client ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(set(METHODS) - {m.SEND_MESSAGE}))
def test_servers_know_the_same_id_of_two_principals_as_two_clients(method: int) -> None:
    ids = {sent(method, "alice"), sent(method, "mallory"), sent(method, None)}
    assert len(ids) == 3
    assert sent(method, "alice") == known_as("alice", ID)


def test_an_id_that_servers_know_is_that_of_nobody_else() -> None:
    known = known_as("alice", ID)
    assert len(known) == len(ID)
    assert known[:-DIGEST] == ID[:-DIGEST]
    assert known_as("mallory", known) != known


@pytest.mark.parametrize("id", ["c", ID[:DIGEST], "ä" * 30])
def test_an_id_of_any_length_is_told_from_others(id: str) -> None:
    known = known_as("alice", id)
    assert known not in (known_as("bob", id), known_as("alice", f"{id}x"))
    assert known.endswith(known[-DIGEST:])
    assert len(known) >= DIGEST


def test_where_nobody_is_verified_ids_stay_as_they_are() -> None:
    assert {sent(method, None) for method in METHODS} == {ID}


def test_requests_for_messages_pass_with_the_id_that_the_broker_knows() -> None:
    play = of("alice", 1)
    first = play.client(ask(m.GET_MESSAGES, 1, **PARTITION))
    assert asked(first).clientId == known_as("alice", ID)
    for serial in (2, 3):
        chunk = bytearray(ask(m.GET_MESSAGES, serial, **PARTITION))
        size = len(chunk)
        assert play.session.scanners[0].scan(chunk, 0, size) == size == len(chunk)
        assert asked(bytes(chunk)) == asked(first)
        assert serial_of(bytes(chunk)) == serial


def test_a_consumer_is_told_its_own_id() -> None:
    play = of("alice")
    held = f"{ID}@g#1:{REAL[1].host}:8123#demo:0"
    beat = {**NAMED, "reportSubscribeInfo": True, "subscribeInfo": [held]}
    known = known_as("alice", ID)
    (said,) = asked(play.client(ask(m.BEAT_CONSUMER, **beat))).subscribeInfo
    assert said == f"{known}@g#1:{REAL[1]}#demo:0"
    event = {"rebalanceId": 8, "subscribeInfo": [said]}
    heard = told(play.broker(tell(m.BEAT_CONSUMER, **OK, event=event)))
    assert heard.event.subscribeInfo[0].startswith(f"{ID}@g#1:")
    play.client(ask(m.BEAT_CONSUMER, 2, **beat))
    error = reply_of(play.broker(except_("java.lang.Exception", f"{known} is gone", 2))).error
    assert error is not None
    assert error.stackTrace == f"{ID} is gone"


def test_nobody_reports_partitions_in_the_name_of_another_client() -> None:
    play = of("mallory")
    held = f"{known_as('alice', ID)}@alice-g#1:{REAL[1].host}:8123#demo:0"
    beat = {**NAMED, "reportSubscribeInfo": True, "subscribeInfo": [held]}
    (said,) = asked(play.client(ask(m.BEAT_CONSUMER, **beat))).subscribeInfo
    assert said.startswith(f"{known_as('mallory', ID)}@g#")


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", OF_GROUP)
def test_a_group_without_a_right_to_any_topic_is_refused(method: int) -> None:
    services = TubeServices()
    services.forbidden = {(Right.CONSUME, "group:g")}
    play = at(method, "mallory", services)
    assert play.client(ask(method, **REQUESTS[method])) == b""
    assert told(play.client_got()).errCode == (401 if method in m.OF_BROKER else 450)
    services.forbidden = set()
    assert play.client(ask(method, **REQUESTS[method]))


@pytest.mark.parametrize("method", OF_GROUP)
@pytest.mark.parametrize("field", ["groupName", "clientId"])
def test_a_name_that_is_too_long_is_refused(method: int, field: str) -> None:
    play = at(method, "alice")
    assert play.client(ask(method, **REQUESTS[method] | {field: "g" * 1024}))
    assert play.client(ask(method, 2, **REQUESTS[method] | {field: "g" * 1025})) == b""
    assert reply_of(play.client_got()).error is not None


# -- topics in lists -------------------------------------------------------------------------------


class Rights(TubeServices):
    """Services of clients that have no right on some topics, such as `secret`."""

    def __init__(self, *denied: str) -> None:
        super().__init__()
        self.forbidden = set()
        self.denied = {"secret", *denied}

    def which_named(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        """See `Services`."""
        return lambda topic: topic.whole not in self.denied


LISTS = [
    (m.REGISTER_PRODUCER, "topicList", ["demo", "secret"], ["demo"]),
    (m.BEAT_PRODUCER, "topicList", ["demo#secret", "secret", "demo"], ["demo"]),
    (m.REGISTER_CONSUMER, "topicCondition", ["demo#a", "secret#a"], ["demo#a"]),
    (m.REGISTER_BALANCED, "topicCondition", ["secret#a,b", "demo#a"], ["demo#a"]),
    (m.BEAT_BALANCED, "subRepInfo.partSubInfo", ["demo#1:0", "secret#1:0"], ["demo#1:0"]),
    (
        m.BEAT_PARTITIONS,
        "partitionInfo",
        ["7:h:1#secret:0", "7:h:1#demo:0", "7:h:1# secret:0"],
        ["7:h:1#demo:0"],
    ),
    (
        m.BEAT_CONSUMER,
        "subscribeInfo",
        ["c@g#7:h:1#secret:0", "c@g#7:h:1#demo:0"],
        [f"{known_as('mallory', ID)}@g#7:h:1#demo:0"],
    ),
    (
        m.BEAT_CONSUMER,
        "event.subscribeInfo",
        ["c@g#7:h:1#secret:0", "c@g#7:h:1#demo:0"],
        [f"{known_as('mallory', ID)}@g#7:h:1#demo:0"],
    ),
]


@pytest.mark.parametrize(("method", "path", "named", "kept"), LISTS)
def test_topics_without_the_right_leave_the_lists_of_a_request(
    method: int, path: str, named: list[str], kept: list[str]
) -> None:
    services = Rights()
    play = at(method, "mallory", services)
    outer, _, inner = path.partition(".")
    required = {"brokerConfigId": 1, "topicMetaInfoId": 1} if outer == "subRepInfo" else {}
    value: Any = {inner: named, **required} if inner else named
    frame = play.client(ask(method, **REQUESTS[method] | {"clientId": ID, outer: value}))
    message: Any = asked(frame)
    shown = getattr(message, outer)
    assert list(getattr(shown, inner) if inner else shown) == kept


def test_topics_that_leave_a_list_are_one_denial() -> None:
    denied = [f"t{number}" for number in range(50)]
    services, topics = Rights(*denied), ["demo", *denied]
    play = of("mallory", None, services)
    play.client(ask(m.BEAT_PRODUCER, **REQUESTS[m.BEAT_PRODUCER] | {"topicList": topics}))
    assert len(services.judged) == 1


def test_an_event_names_no_topic_without_the_right() -> None:
    services = Rights()
    play = of("mallory", None, services)
    play.client(ask(m.BEAT_CONSUMER, **NAMED, reportSubscribeInfo=False))
    lines = [f"x@g#1:{REAL[1].host}:8123#{topic}:0" for topic in ("secret", "demo")]
    event = {"rebalanceId": 8, "opType": 1, "subscribeInfo": lines}
    heard = told(play.broker(tell(m.BEAT_CONSUMER, **OK, event=event)))
    (line,) = heard.event.subscribeInfo
    assert line.endswith("#demo:0")


# -- texts -----------------------------------------------------------------------------------------

THEIRS = known_as("alice", "alice-g_10.0.0.9-77-1795167970960-1-Pull-1.13.0")

TEXTS = [
    (m.REGISTER_PARTITION, 410, f"Partition 1#g:demo:1 has been registered by {THEIRS}"),
    (m.GET_MESSAGES, 412, f"Partition=g:demo:1 of Broker=1 has been consumed by {THEIRS}"),
    (m.COMMIT, 401, f"The partition has been registered by other consumer: {THEIRS}"),
    (m.REGISTER_CONSUMER, 425, "inconsistency, existedTopics: [secret, payroll]"),
    (m.REGISTER_BALANCED, 430, f"nodeId value(1) is occupied by {THEIRS}"),
    (m.BEAT_CONSUMER, 411, "Not found groupName g in holder!"),
    (m.BEAT_BALANCED, 411, "Not found client x in group(g)"),
]


@pytest.mark.parametrize(("method", "code", "text"), TEXTS)
def test_a_text_shows_nothing_of_other_clients(method: int, code: int, text: str) -> None:
    play = at(method, "mallory")
    play.client(ask(method, **REQUESTS[method]))
    reply = METHODS[method].reply
    failed: dict[str, Any] = {"errCode": code, "errMsg": text}
    if "success" in reply.DESCRIPTOR.fields_by_name:
        failed["success"] = False
    heard = told(play.broker(tell(method, **failed)))
    assert heard.errCode == code
    assert heard.errMsg
    assert not set(heard.errMsg.split()) & {THEIRS, "payroll]", "holder!", "group(g)"}
    assert "1" not in heard.errMsg
    open_to_all = at(method, None)
    open_to_all.client(ask(method, **REQUESTS[method]))
    assert told(open_to_all.broker(tell(method, **failed))).errMsg == text


def test_a_group_that_exists_is_told_as_one_that_does_not() -> None:
    heard = []
    for text in ("Not found groupName g in holder!", "Update consumer node exception: x@g"):
        play = of("mallory")
        play.client(ask(m.BEAT_CONSUMER, **NAMED, reportSubscribeInfo=False))
        failed: dict[str, Any] = {"success": False, "errCode": 411, "errMsg": text}
        heard.append(play.broker(tell(m.BEAT_CONSUMER, **failed)))
    assert heard[0] == heard[1]


def test_a_text_that_repeats_a_long_list_is_cut_between_words() -> None:
    play = of("alice")
    play.client(ask(m.END_CONSUMER, **NAMED))
    failed: dict[str, Any] = {"success": False, "errCode": 400, "errMsg": f"{REAL[1].host} " * 9999}
    words = set(told(play.broker(tell(m.END_CONSUMER, **failed))).errMsg.split())
    assert words == {"broker"}
