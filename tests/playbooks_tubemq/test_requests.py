"""What clients may ask, what it counts as, and what they are told in place of a server."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Account, Action, Patience, Right
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.first_use import CLOSED_AT_ONCE
from gateway.wire.plugin import EntrySettings, FrameBounds
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.context import Listener
from gateway.wire.tubemq.envelopes import MOST_TEXTS
from gateway.wire.tubemq.frames import MOST_BLOCKS, length
from gateway.wire.tubemq.in_flight import MOST
from gateway.wire.tubemq.judging import ACCOUNT_SIZE
from gateway.wire.tubemq.session import (
    FULL_WAIT,
    LEAST_PAUSE,
    LONGEST_PAUSE,
    MOST_ASKED,
    MOST_HELD,
    MOST_OFTEN,
    RELEASED_AT_ONCE,
    SWEPT,
)
from gateway.wire.tubemq.turns import APART
from gateway.wire.tubemq.waiting import LONGEST_WAIT
from gateway.wire.tubemq.waiting import MOST as MOST_WAITING
from tests.playbooks.services import FORBIDDEN
from tests.unit.wire.tubemq.frames import in_blocks_of, vectors

from .script import Tube, TubeServices, ask, asked, reply_of, request_of, serial_of, tell, told

OK: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
GET: dict[str, Any] = {"clientId": "c", "partitionId": 1, "groupName": "g", "topicName": "demo"}
REGISTER: dict[str, Any] = {**GET, "opType": 31, "readStatus": 0}


def send(serial: int = 1, data: bytes = b"12345", topic: str = "demo", **more: Any) -> bytes:
    fields: dict[str, Any] = {
        "clientId": "p",
        "topicName": topic,
        "partitionId": 1,
        "data": data,
        "flag": 0,
    }
    return ask(m.SEND_MESSAGE, serial, **fields, checkSum=-1, sentAddr=1, **more)


def got(serial: int, *payloads: bytes) -> bytes:
    messages = [
        {"messageId": id, "checkSum": 1, "payLoadData": data, "flag": 0}
        for id, data in enumerate(payloads)
    ]
    return tell(m.GET_MESSAGES, serial, **OK, messages=messages, currOffset=28, maxOffset=56)


# -- counting ------------------------------------------------------------------------------------


def test_messages_that_are_sent_are_counted_by_topic() -> None:
    play = Tube(node=1)
    frames = send(1), send(2, b"123"), send(3, b"1", topic="other")
    assert play.client(*frames) == b"".join(frames)
    demo, other = play.services.live
    assert (demo.action, demo.topic) == (Action.PRODUCE, "demo")
    assert (demo.messages, demo.bytes, demo.receipts) == (2, 8, 0)
    assert (other.topic, other.messages) == ("other", 1)
    play.broker(tell(m.SEND_MESSAGE, 1, **OK))
    failed: dict[str, Any] = {"success": False, "errCode": 500, "errMsg": "no"}
    play.broker(tell(m.SEND_MESSAGE, 2, **failed))
    assert (demo.receipts, demo.errors) == (2, 1)


def test_messages_that_are_received_are_counted_by_topic_and_group() -> None:
    play = Tube(node=1)
    play.client(ask(m.GET_MESSAGES, 7, **GET))
    reply = got(7, b"123", b"4567")
    assert play.broker(reply) == reply
    (account,) = play.services.live
    assert account.action is Action.CONSUME
    assert (account.topic, account.subject.subscription) == ("demo", "g")
    assert (account.messages, account.bytes) == (2, 7)


def test_replies_belong_to_requests_by_serial_numbers() -> None:
    play = Tube(node=1)
    play.client(ask(m.GET_MESSAGES, 1, **GET), ask(m.GET_MESSAGES, 2, **{**GET, "groupName": "h"}))
    play.broker(got(2, b"1"), got(1, b"1", b"2"))
    first, second = play.services.live
    assert (first.messages, second.messages) == (2, 1)
    assert play.broker(got(3, b"1")) == b"", "nobody has asked for it"


def test_all_that_real_clients_say_passes_as_they_said_it() -> None:
    """But for zeros behind requests of C++, and addresses that were those of another proxy."""
    for it in vectors():
        if not it.is_request or it.sender == "cpp":
            continue
        play = Tube(node=None if it.listener == "master" else int(it.listener[1]))
        passed = play.client(it.frame)
        before, after = asked(it.frame), asked(passed)
        for field in ("partitionInfo", "subscribeInfo", "brokerCheckSum", "brokerConfigId"):
            for message in (before, after):
                if field in message.DESCRIPTOR.fields_by_name:
                    message.ClearField(field)
        for message in (before, after):
            for nested in ("event", "subRepInfo"):
                if nested in message.DESCRIPTOR.fields_by_name:
                    message.ClearField(nested)
        assert after == before, it.name


# -- rights and limits ---------------------------------------------------------------------------


def test_a_client_without_a_right_is_told_so() -> None:
    services = TubeServices()
    services.forbidden = {(Right.PRODUCE, "demo"), (Right.CONSUME, "group:g")}
    play = Tube(services, node=1)
    assert play.client(send(5)) == b""
    refused = play.client_got()
    assert serial_of(refused) == 5
    assert (told(refused).success, told(refused).errCode) == (False, 401)
    for method, fields in (
        (m.GET_MESSAGES, GET),
        (m.COMMIT, GET),
        (m.REGISTER_PARTITION, REGISTER),
    ):
        assert play.client(ask(method, **fields)) == b""
        assert told(play.client_got()).errCode == 401
    assert [it.topic for it in services.live] == ["(refused)"]


@pytest.mark.parametrize("method", [m.REGISTER_CONSUMER, m.REGISTER_BALANCED])
def test_a_group_without_a_right_to_a_topic_is_not_registered(method: int) -> None:
    services = TubeServices()
    services.forbidden = {(Right.CONSUME, "group:g")}
    fields: dict[str, Any] = {"clientId": "c", "groupName": "g", "hostName": "h"}
    fields |= {"sourceCount": 1, "nodeId": 0} if method == m.REGISTER_BALANCED else {}
    play = Tube(services)
    assert play.client(ask(method, **fields, topicList=["demo"])) == b""
    assert told(play.client_got()).errCode == 450


@pytest.mark.parametrize("topic", ["", "a/b", "x" * 65, "1", "ä"])
def test_a_topic_that_cannot_be_is_refused(topic: str) -> None:
    play = Tube(node=1)
    assert play.client(send(topic=topic)) == b""
    assert told(play.client_got()).errCode == 401


def test_names_of_any_length_take_no_memory() -> None:
    play = Tube(node=1)
    for method in (m.GET_MESSAGES, m.COMMIT, m.REGISTER_PARTITION):
        fields = REGISTER if method == m.REGISTER_PARTITION else GET
        play.client(ask(method, **{**fields, "groupName": "g" * 1025}))
        assert reply_of(play.client_got()).error is not None
        play.client(ask(method, **{**fields, "topicName": "t" * 100_000}))
        assert told(play.client_got()).errCode == 401
    assert play.budget_of.taken == 0
    assert not play.services.live


def test_more_texts_than_any_client_has_are_a_violation() -> None:
    """Three million of them fit into a frame, and reading these would stop everybody else."""
    fields: dict[str, Any] = {"clientId": "c", "groupName": "g", "readStatus": 0}
    fine = ask(m.BEAT_PARTITIONS, **fields, partitionInfo=["1:h:1#demo:1"] * MOST_TEXTS)
    assert Tube(node=1).client(fine)
    with pytest.raises(PeerError, match="20001 texts"):
        Tube(node=1).client(
            ask(m.BEAT_PARTITIONS, **fields, partitionInfo=["1:h:1#demo:1"] * (MOST_TEXTS + 1))
        )


# -- messages above a limit ----------------------------------------------------------------------


def limited(lease: int = 1, **more: Any) -> tuple[Tube, Account]:
    """Return a pair on which a message was sent, and its account, whose allowance is used up."""
    services = TubeServices()
    services.lease = lease
    play = Tube(services, node=1, **more)
    assert play.client(send(1))
    return play, services.live[0]


def refusals(play: Tube) -> list[tuple[int, bool, int]]:
    """Return what the client got: serial numbers, successes and codes."""
    found, data = [], play.client_got()
    while data:
        frame, data = data[: length(data)], data[length(data) :]
        found.append((serial_of(frame), told(frame).success, told(frame).errCode))
    return found


def test_a_message_above_a_limit_waits_for_allowance() -> None:
    """Clients need not send it again, and the one in C++ would not."""
    play, account = limited()
    play.services.due[account] = 0.1
    assert play.client(send(2), send(3), send(4, topic="other")) == send(4, topic="other")
    assert account.queued == len(send(2)) + len(send(3))
    account.grant(1)
    play.after(0.1)
    assert play.broker_got() == send(2)
    account.grant(1)
    play.after(0.1)
    assert play.broker_got() == send(3)
    assert (account.messages, account.queued, refusals(play)) == (3, 0, [])
    assert play.budget_of.taken == 2 * ACCOUNT_SIZE


def test_many_topics_that_wait_are_looked_at_less_often() -> None:
    services = TubeServices()
    services.lease = 1
    play = Tube(services, node=1)
    topics = [f"t_{number}" for number in range(2 * MOST_OFTEN)]
    for serial, topic in enumerate(topics):
        play.client(send(serial, topic=topic))
    for serial, topic in enumerate(topics):
        assert play.client(send(100 + serial, topic=topic)) == b""
    play.after(LEAST_PAUSE)
    for account in services.live:
        account.grant(1)
    play.after(LEAST_PAUSE)
    assert play.broker_got() == b""
    play.after(3 * LEAST_PAUSE)
    assert len(play.broker_got()) == sum(len(send(100, topic=it)) for it in topics)


def test_a_message_that_waits_in_vain_is_refused_before_its_client_gives_up() -> None:
    play, account = limited()
    play.client(send(2))
    for _ in range(int(LONGEST_WAIT / LONGEST_PAUSE) - 1):
        play.services.due[account] = math.inf
        play.after(LONGEST_PAUSE)
    assert refusals(play) == []
    play.after(LONGEST_PAUSE)
    assert refusals(play) == [(2, False, 419)]
    assert (account.messages, account.queued) == (1, 0)
    account.grant(1)
    assert play.client(send(3)), "nothing waits any more"


def test_a_request_with_little_time_waits_for_half_of_it() -> None:
    play, _ = limited()
    fields: dict[str, Any] = {"clientId": "p", "topicName": "demo", "partitionId": 1, "data": b"x"}
    for serial, patience in ((2, 1000), (3, 0)):
        play.client(
            ask(m.SEND_MESSAGE, serial, patience, **fields, flag=0, checkSum=-1, sentAddr=1)
        )
    assert refusals(play) == [(3, False, 419)]
    play.after(0.5)
    play.after(LEAST_PAUSE)
    assert refusals(play) == [(2, False, 419)]


def test_what_waits_has_bounds() -> None:
    """Of number, of memory, and of a rule that lets little wait."""
    play, account = limited()
    account.patience = Patience(2, math.inf)
    play.client(send(2), send(3), send(4))
    assert refusals(play) == [(4, False, 419)]
    account.patience = Patience(math.inf, 3 * len(send(2)))
    play.client(send(5), send(6))
    assert refusals(play) == [(6, False, 419)]
    account.patience = None
    play.client(*(send(serial) for serial in range(10, MOST_WAITING + 10)))
    assert len(refusals(play)) == 3
    play.session.close()
    assert (play.budget_of.taken, account.queued) == (0, 0)


def test_a_right_that_is_gone_is_gone_for_what_waits() -> None:
    play, account = limited()
    play.client(send(2))
    play.services.forbidden = {(Right.PRODUCE, "demo")}
    play.revoke(account)
    play.after(LONGEST_PAUSE)
    assert refusals(play) == [(2, False, 401)]
    assert account.queued == 0


def test_what_waited_for_a_right_that_is_gone_is_refused_some_at_a_time() -> None:
    play, account = limited()
    play.client(*(send(2 + number) for number in range(5 * RELEASED_AT_ONCE)))
    play.services.forbidden = {(Right.PRODUCE, "demo")}
    play.revoke(account)
    play.after(LONGEST_PAUSE)
    refused = [refusals(play)]
    while account.queued:
        play.after(0)
        refused.append(refusals(play))
    assert max(map(len, refused)) <= RELEASED_AT_ONCE
    numbers = [number for each in refused for number, _, _ in each]
    assert numbers == [2 + number for number in range(5 * RELEASED_AT_ONCE)]


def test_a_gateway_that_stops_lets_go_on_what_waits() -> None:
    play, account = limited()
    play.broker(tell(m.SEND_MESSAGE, 1, **OK))
    play.client(send(2))
    assert play.session.leave(play.now) == ()
    account.grant(10)
    play.after(LONGEST_PAUSE)
    assert play.broker_got() == send(2)
    assert not play.passes(send(3)), "it takes no more"


def test_who_receives_above_a_limit_is_told_for_how_long_to_wait() -> None:
    services = TubeServices()
    services.lease = 1
    play = Tube(services, node=1)
    play.client(ask(m.GET_MESSAGES, 1, **GET))
    play.broker(got(1, b"1", b"2", b"3"))
    (account,) = services.live
    for due, wait in ((1.2345, 1235), (0.0, 1), (math.inf, 60_000)):
        services.due[account] = due
        play.now += 60
        assert play.client(ask(m.GET_MESSAGES, 2, **GET)) == b""
        refused = told(play.client_got())
        assert (refused.success, refused.errCode, refused.minLimitTime) == (False, 452, wait)
    assert play.client(ask(m.COMMIT, 3, **GET)), "what was received may be confirmed"


@pytest.mark.parametrize("size", [1000, 300_000])
def test_a_reply_waits_until_there_is_allowance_for_all_of_it(size: int) -> None:
    services = TubeServices()
    services.lease = 1000
    play = Tube(services, node=1)
    replies = [got(serial, bytes(size)) for serial in range(1, 5)]
    play.client(*(ask(m.GET_MESSAGES, serial, **GET) for serial in range(1, 5)))
    assert play.broker(replies[0]) == replies[0], "its text is known now"
    (account,) = services.live
    account.hold()
    assert play.broker(*replies[1:]) == b""
    assert abs(account.needs - size) < 10_000
    play.after(1)
    assert play.client_got() == b"", "nothing was granted"
    play.grant(account, 1, account.needs)
    assert play.client_got() == replies[1], "the next one waits"
    play.grant(account, 2, 3 * size + 30_000)
    assert play.client_got() == replies[2] + replies[3]
    assert account.bytes == 4 * size


def test_a_reply_without_messages_does_not_wait() -> None:
    services = TubeServices()
    services.lease = 1000
    play = Tube(services, node=1)
    play.client(ask(m.GET_MESSAGES, 1, **GET))
    services.live[0].hold()
    nothing = tell(m.GET_MESSAGES, 1, success=False, errCode=404, errMsg="no message")
    assert play.broker(nothing) == nothing


def test_few_requests_for_messages_of_a_consumer_under_a_limit_are_in_flight() -> None:
    """The broker would have all the replies in its memory."""
    services = TubeServices()
    services.lease = 1000
    play = Tube(services, node=1)
    for serial in range(MOST_ASKED):
        assert play.client(ask(m.GET_MESSAGES, serial, **GET))
    assert play.client(ask(m.GET_MESSAGES, 9, **GET)) == b""
    assert told(play.client_got()).errCode == 452
    play.broker(got(0, b"1"))
    assert play.client(ask(m.GET_MESSAGES, 9, **GET))


def test_refusals_of_a_client_come_in_turn_for_all_its_connections() -> None:
    """A crowd that asks without end would have the core make refusals all the time."""
    listener = Listener(EntrySettings(services=(services := TubeServices())))
    services.lease = 1000
    plays = [Tube(services, node=1, listener=listener, principal="crowd") for _ in range(3)]
    for turn, play in enumerate(plays):
        for serial in range(MOST_ASKED + 1):
            play.client(ask(m.GET_MESSAGES, serial, **GET))
        assert told(play.client_got()).minLimitTime == max(1, 1000 * turn * APART)
        passed = play.client(ask(m.COMMIT, 9, **GET))
        assert bool(passed) is not bool(turn)
        play.now += turn * APART
        play.broker(b"")
        assert serial_of(passed or play.broker_got()) == 9
    other = Tube(services, node=1, listener=listener, principal="other")
    for serial in range(MOST_ASKED + 1):
        other.client(ask(m.GET_MESSAGES, serial, **GET))
    assert told(other.client_got()).minLimitTime == 1
    assert other.client(ask(m.COMMIT, 9, **GET))


def test_a_right_that_is_gone_is_judged_anew() -> None:
    services = TubeServices()
    services.forbidden = set()
    play = Tube(services, node=1)
    play.client(send(1))
    (account,) = services.live
    services.forbidden = {(Right.PRODUCE, "demo")}
    play._carry_out(play.session.revoke(account, play.services.forbid, 0.0), 0)  # type: ignore[arg-type]
    assert services.live == []
    assert play.client(send(2)) == b""
    assert told(play.client_got()).errCode == 401


# -- what is no request --------------------------------------------------------------------------


@pytest.mark.parametrize("node", [None, 1])
@pytest.mark.parametrize("method", [0, 7, 8, 9, 11, 19, 4711])
def test_what_clients_may_not_ask_is_answered_as_servers_do(method: int, node: int | None) -> None:
    """0 is what producers in C++ say at their end; 7 to 9 are what brokers ask of the master."""
    play = Tube(node=node)
    assert play.client(request_of(method, b"", 9)) == b""
    refused = play.client_got()
    assert serial_of(refused) == 9
    assert reply_of(refused).error is not None
    assert play.end is None


def test_a_broker_is_asked_nothing_that_the_master_has() -> None:
    register = ask(m.REGISTER_PRODUCER, clientId="p", hostName="h", brokerCheckSum=-1)
    assert Tube(node=1).client(register) == b""
    assert Tube(node=None).client(send()) == b""


def test_a_request_that_lacks_a_field_is_a_violation() -> None:
    with pytest.raises(PeerError, match="lacks a required field"):
        Tube(node=1).client(ask(m.GET_MESSAGES, clientId="c"))


def test_a_topic_that_is_said_twice_is_the_last_one_and_said_once() -> None:
    """Another decoder could take the first."""
    services = TubeServices()
    services.forbidden = {(Right.PRODUCE, "secret")}
    play = Tube(services, node=1)
    message = m.METHODS[m.SEND_MESSAGE].request
    fine = message(
        clientId="p", topicName="demo", partitionId=1, data=b"x", flag=0, checkSum=-1, sentAddr=1
    )
    twice = fine.SerializeToString() + b"\x12\x06secret"
    assert play.client(request_of(m.SEND_MESSAGE, twice)) == b""
    other = b"\x12\x06secret" + fine.SerializeToString()
    passed = play.client(request_of(m.SEND_MESSAGE, other, 2))
    assert b"secret" not in passed
    assert asked(passed) == fine


def test_a_frame_that_is_too_large_is_a_violation() -> None:
    play = Tube(node=1, bounds=FrameBounds(collected=100_000))
    with pytest.raises(ViolationError) as raised:
        play.client(in_blocks_of(8192, send(data=bytes(200_000))))
    assert raised.value.reason is EndReason.FRAME_TOO_LARGE


def test_memory_that_parts_of_a_frame_take_is_given_back() -> None:
    play = Tube(node=1)
    large = send(data=bytes(50_000))
    play.client(large[:30_000])
    assert play.budget_of.taken > 20_000
    play.client(large[30_000:])
    assert play.budget_of.taken <= ACCOUNT_SIZE
    assert len(in_blocks_of(1, send())) < MOST_BLOCKS * 5


# -- many requests -------------------------------------------------------------------------------


def test_a_client_with_too_many_requests_waits() -> None:
    play = Tube(node=1)
    play.client(*(send(serial) for serial in range(MOST)))
    assert play.client(send(MOST)) == b""
    assert play.is_waiting
    play.broker(tell(m.SEND_MESSAGE, 0, **OK))
    play.after(FULL_WAIT)
    assert play.broker_got() == send(MOST)


def test_requests_that_nobody_answers_are_forgotten() -> None:
    play = Tube(node=1)
    play.client(*(send(serial) for serial in range(MOST)))
    play.after(SWEPT)
    assert play.client(send(MOST)) == send(MOST)


def test_a_request_without_patience_has_no_reply() -> None:
    play = Tube(node=1)
    fields: dict[str, Any] = {
        "clientId": "p",
        "topicName": "demo",
        "partitionId": 1,
        "data": b"x",
        "flag": 0,
    }
    play.client(ask(m.SEND_MESSAGE, 5, 0, **fields, checkSum=-1, sentAddr=1))
    assert play.broker(tell(m.SEND_MESSAGE, 5, **OK)) == b""


def test_a_gateway_that_stops_waits_for_replies_and_takes_no_more_requests() -> None:
    play = Tube(node=1)
    play.client(send(1))
    assert play.session.leave(play.now) == ()
    assert play.client(send(2)) == b""
    assert play.is_waiting
    assert play.broker(tell(m.SEND_MESSAGE, 1, **OK))
    assert play.session.leave(play.now) is None


# -- offsets ---------------------------------------------------------------------------------------


def ends(play: Tube) -> dict[tuple[str, int], int]:
    return {(it.topic, it.partition): it.offset for it in play.services.progress.ends()}


def offsets(play: Tube) -> dict[tuple[str, str, int], int]:
    return {
        (it.group, it.topic, it.partition): it.offset for it in play.services.progress.committed()
    }


def test_replies_say_where_partitions_end_and_how_far_groups_are() -> None:
    play = Tube(node=2)
    play.client(ask(m.REGISTER_PARTITION, 1, **REGISTER), ask(m.GET_MESSAGES, 2, **GET))
    play.broker(tell(m.REGISTER_PARTITION, 1, **OK, currOffset=0, maxOffset=2800))
    assert ends(play) == {("demo", 2_000_001): 100}
    assert offsets(play) == {("g", "demo", 2_000_001): 0}
    play.broker(got(2, b"one"))
    play.client(ask(m.COMMIT, 3, **GET))
    play.broker(tell(m.COMMIT, 3, **OK, currOffset=280, maxOffset=2828))
    assert ends(play) == {("demo", 2_000_001): 101}
    assert offsets(play) == {("g", "demo", 2_000_001): 10}


def test_replies_without_offsets_change_none() -> None:
    play = Tube(node=1)
    play.client(ask(m.GET_MESSAGES, 1, **GET), ask(m.COMMIT, 2, **GET))
    play.broker(tell(m.COMMIT, 2, **OK, currOffset=280, maxOffset=2800))
    none = {"success": False, "errCode": 404, "errMsg": "no more", "currOffset": -1}
    play.broker(tell(m.GET_MESSAGES, 1, **none, currDataDlt=-1, maxOffset=-1))
    play.client(ask(m.REGISTER_PARTITION, 3, **REGISTER | {"opType": 32}))
    play.broker(tell(m.REGISTER_PARTITION, 3, **OK, currOffset=0, maxOffset=0))
    assert ends(play) == {("demo", 1_000_001): 100}
    assert offsets(play) == {("g", "demo", 1_000_001): 10}


# -- lists of topics -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "field", "right", "request_"),
    [
        (m.BEAT_PRODUCER, "topicInfos", Right.PRODUCE, {"brokerCheckSum": -1, "hostName": "h"}),
        (m.BEAT_BALANCED, "topicMetaInfoList", Right.CONSUME, {"groupName": "g"}),
        (
            m.FIND_PARTITIONS,
            "topicMetaInfoList",
            Right.CONSUME,
            {"groupName": "g", "brokerConfigId": -2, "topicMetaInfoId": -2},
        ),
    ],
)
def test_a_list_of_topics_has_those_alone_on_which_there_is_a_right(
    method: int, field: str, right: Right, request_: dict[str, Any]
) -> None:
    play = Tube()
    play.services.forbidden = {(right, "demo")}
    play.client(ask(method, 1, clientId="c", **request_))
    more: dict[str, Any] = {"brokerCheckSum": 1, "success": True} if method == 2 else {}
    listed = {field: ["demo#1:2:1", "other#1:2:1", "#", "no/topic#1:1:1"]}
    response = told(play.broker(tell(method, 1, errCode=200, errMsg="OK!", **more, **listed)))
    assert list(getattr(response, field)) == ["other#1:2:1"]


# -- what others know ------------------------------------------------------------------------------


def guarded_by_others(*names: str) -> TubeServices:
    """Return services that have to ask whether a client may use these."""
    services = TubeServices()
    services.forbidden = set()
    services.undecided = set(names)
    return services


def test_a_request_waits_until_others_have_said_that_the_client_may() -> None:
    play = Tube(guarded_by_others("demo"), node=1)
    assert play.client(send(1)) == b""
    assert play.client(send(2, topic="other")) == send(2, topic="other")
    play.finish()
    assert play.broker_got() == send(1)
    assert {it.topic: it.messages for it in play.services.live} == {"demo": 1, "other": 1}


def test_a_request_is_refused_if_nobody_has_said_it() -> None:
    play = Tube(guarded_by_others("demo"), node=1)
    play.client(send(1))
    play.finish(late=FORBIDDEN)
    assert play.broker_got() == b""
    assert told(play.client_got()).errCode == 401


def test_requests_that_wait_are_bounded_and_awaited_at_the_end() -> None:
    play = Tube(guarded_by_others("demo"), node=1)
    play.client(*map(send, range(MOST_HELD + 1)))
    assert told(play.client_got()).errCode == 401
    assert play.leave()
    while play.jobs:
        play.finish()
    assert play.broker_got() == b"".join(map(send, range(MOST_HELD)))
    for number in range(MOST_HELD):
        assert play.leave()
        play.broker(tell(m.SEND_MESSAGE, number, **OK))
    assert not play.leave()
    play.close()
    assert play.budget_of.taken == 0


# -- accounts --------------------------------------------------------------------------------------


def test_an_account_that_nobody_uses_is_closed_unless_a_reply_is_awaited() -> None:
    play = Tube(node=1)
    play.client(send(1), ask(m.GET_MESSAGES, 2, 600_000, **GET))
    play.broker(tell(m.SEND_MESSAGE, 1, **OK))
    for _ in range(3):
        play.after(SWEPT)
    (left,) = play.services.live
    assert left.action is Action.CONSUME
    play.broker(got(2, b"one"))
    for _ in range(3):
        play.after(SWEPT)
    assert not play.services.live
    play.client(send(3))
    assert [it.messages for it in play.services.live] == [1]


def test_unused_accounts_are_closed_some_at_a_time() -> None:
    play = Tube(node=1)
    for number in range(2 * CLOSED_AT_ONCE + 1):
        play.client(send(number, topic=f"t{number}"))
        play.broker(tell(m.SEND_MESSAGE, number, **OK))
    for seconds in (SWEPT, 0, 0, SWEPT):
        play.after(seconds)
    closed = [len(play.services.released)]
    while play.services.live:
        play.after(0)
        closed.append(len(play.services.released))
    assert closed == [CLOSED_AT_ONCE, 2 * CLOSED_AT_ONCE, 2 * CLOSED_AT_ONCE + 1]


def test_a_pair_that_is_over_gives_its_accounts_back_some_at_a_time() -> None:
    play = Tube(node=1)
    for number in range(2 * CLOSED_AT_ONCE + 1):
        play.client(send(number, topic=f"t{number}"))
    steps = 0
    while play.session.close():
        steps += 1
        assert len(play.services.released) == steps * CLOSED_AT_ONCE
    assert steps == 2
    assert play.services.live == []
    assert play.budget_of.taken == 0


# -- names that servers read otherwise -------------------------------------------------------------

NAMED = {
    m.GET_MESSAGES: GET,
    m.COMMIT: GET,
    m.REGISTER_PARTITION: REGISTER,
    m.REGISTER_CONSUMER: {"clientId": "c", "groupName": "g", "hostName": "h"},
    m.END_CONSUMER: {"clientId": "c", "groupName": "g"},
}


@pytest.mark.parametrize("field", ["groupName", "clientId"])
@pytest.mark.parametrize(
    "name", [" g", "g ", "g\t", "\x01g", "\x01\x02", "g\n", "g\x00", "c@g", "c#g"]
)
@pytest.mark.parametrize("method", NAMED)
def test_a_name_that_servers_would_read_as_another_one_is_refused(
    method: int, name: str, field: str
) -> None:
    """They take blanks from its ends, and split it at `@` when a client is gone, so that it would
    have the rights of the other one."""
    play = Tube(node=1 if method in m.OF_BROKER else None)
    assert play.client(ask(method, 1, **NAMED[method] | {field: name})) == b""
    error = reply_of(play.client_got()).error
    assert error is not None
    assert "would not read whole" in error.stackTrace
    assert not play.services.live


def test_a_group_whose_partitions_could_be_those_of_another_is_refused() -> None:
    """Brokers split `group:topic:partition` when a consumer is gone, and set that offset."""
    play = Tube(node=1)
    assert play.client(ask(m.REGISTER_PARTITION, **REGISTER | {"groupName": "g:secret:0"})) == b""
    assert reply_of(play.client_got()).error is not None
    assert play.client(ask(m.REGISTER_PARTITION, **REGISTER | {"clientId": "c-fd00::1"}))


def test_what_may_not_be_sent_is_charged_and_waits() -> None:
    services = TubeServices()
    services.lease = 1
    services.forbidden = {(Right.PRODUCE, "denied")}
    play = Tube(services, node=1)
    assert play.client(send(1, topic="denied"), send(2, topic="denied")) == b""
    (account,) = services.live
    assert (account.topic, account.messages, account.outstanding) == ("(refused)", 1, 0)
    assert refusals(play) == [(1, False, 401)]
    account.grant(1)
    play.after(LONGEST_PAUSE)
    assert refusals(play) == [(2, False, 401)]
    assert (account.messages, account.queued, account.needs) == (2, 0, 0)
    assert play.client(send(3)) == send(3)
