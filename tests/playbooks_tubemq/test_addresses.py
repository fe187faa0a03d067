"""No address of a broker reaches a client, and the master keeps those of its brokers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.brokers.learned import LearnedHosts
from gateway.errors import PeerError
from gateway.wire.contract import EndReason
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.plugin import PLUGIN
from gateway.wire.tubemq.session import SWEPT
from tests.unit.wire.tubemq.frames import in_blocks_of

from .script import REAL, Tube, ask, asked, except_, reply_of, tell, told

BROKERS = [f"1:{REAL[1].host}: ", f"2:{REAL[2].host}:8125"]
"""As a master names them: port 8123 may be left out."""
STAMP = 1795168910952


def shown(play: Tube, id: int) -> str:
    address = play.services.advertise_node(id, REAL[id])
    return f"{address.host}:{address.port}"


PRODUCER: dict[str, Any] = {"clientId": "p", "hostName": "h"}
CONSUMER: dict[str, Any] = {"clientId": "c", "groupName": "g"}
OK: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
OK_V2: dict[str, Any] = {"errCode": 200, "errMsg": "OK!"}

LISTS = [
    (m.REGISTER_PRODUCER, {**PRODUCER, "brokerCheckSum": -1}, OK, "brokerInfos", "brokerCheckSum"),
    (m.BEAT_PRODUCER, {**PRODUCER, "brokerCheckSum": -1}, OK, "brokerInfos", "brokerCheckSum"),
    (
        m.REGISTER_BALANCED,
        {**CONSUMER, "hostName": "h", "sourceCount": 1, "nodeId": 0},
        OK_V2, "brokerConfigList", "brokerConfigId",
    ),
    (m.BEAT_BALANCED, CONSUMER, OK_V2, "brokerConfigList", "brokerConfigId"),
    (
        m.FIND_PARTITIONS,
        {**CONSUMER, "brokerConfigId": -2, "topicMetaInfoId": -2},
        OK_V2, "brokerConfigList", "brokerConfigId",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("method", "fields", "fine", "field", "stamp"), LISTS)
def test_clients_are_told_of_the_gateways_addresses(
    method: int, fields: dict[str, Any], fine: dict[str, Any], field: str, stamp: str
) -> None:
    play = Tube()
    play.client(ask(method, **fields))
    brokers: dict[str, Any] = {field: BROKERS, stamp: STAMP}
    found = told(play.broker(tell(method, **fine, **brokers)))
    assert list(getattr(found, field)) == [f"{id}:{shown(play, id)}" for id in REAL]
    assert play.services.nodes == REAL


@pytest.mark.parametrize(("method", "fields", "fine", "field", "stamp"), LISTS[:2])
def test_a_stamp_stands_for_the_addresses_too(
    method: int, fields: dict[str, Any], fine: dict[str, Any], field: str, stamp: str
) -> None:
    play = Tube()
    play.client(ask(method, **fields))
    brokers: dict[str, Any] = {field: BROKERS, stamp: STAMP}
    first = told(play.broker(tell(method, **fine, **brokers)))
    shown_stamp = getattr(first, stamp)
    assert shown_stamp != STAMP
    sent = asked(play.client(ask(method, 2, **{**fields, stamp: shown_stamp})))
    assert getattr(sent, stamp) == STAMP
    again = told(play.broker(tell(method, 2, **fine, **{stamp: STAMP})))
    assert getattr(again, stamp) == shown_stamp
    assert not getattr(again, field)


def test_no_reply_is_taken_for_one_of_another_method() -> None:
    """The fifth field of one has brokers' addresses, and of the other the topics."""
    register = ask(m.REGISTER_PRODUCER, 7, **PRODUCER, brokerCheckSum=-1)
    beat = ask(m.BEAT_PRODUCER, 7, **PRODUCER, brokerCheckSum=-1)
    play = Tube()
    with pytest.raises(PeerError, match="a second request 7"):
        play.client(register, beat)
    play = Tube()
    play.client(ask(m.REGISTER_PRODUCER, 7, 1, **PRODUCER, brokerCheckSum=-1))
    play.after(SWEPT)  # and the first is forgotten
    play.client(beat)
    with pytest.raises(PeerError, match="a reply to producerRegisterP2M"):
        play.broker(tell(m.REGISTER_PRODUCER, 7, **OK, brokerCheckSum=1, brokerInfos=BROKERS))
    assert play.client_got() == b""


def test_a_stamp_of_another_gateway_is_none_that_the_master_knows() -> None:
    play = Tube()
    sent = asked(play.client(ask(m.BEAT_PRODUCER, **PRODUCER, brokerCheckSum=STAMP + 12345)))
    assert sent.brokerCheckSum != STAMP
    none = asked(play.client(ask(m.BEAT_PRODUCER, 2, **PRODUCER, brokerCheckSum=-1)))
    assert none.brokerCheckSum == -1


def test_subscriptions_have_the_peers_addresses() -> None:
    play = Tube()
    ours = f"c@g#1:{shown(play, 1)}#demo:0"
    real = f"c@g#1:{REAL[1].host}:{REAL[1].port}#demo:0"
    fields: dict[str, Any] = {**CONSUMER, "subscribeInfo": [ours], "reportSubscribeInfo": True}
    event = {"rebalanceId": 7, "opType": 1, "subscribeInfo": [ours]}
    sent = asked(play.client(ask(m.BEAT_CONSUMER, **fields, event=event)))
    assert list(sent.subscribeInfo) == [real]
    assert list(sent.event.subscribeInfo) == [real]
    reply = tell(m.BEAT_CONSUMER, **OK, event={"rebalanceId": 8, "subscribeInfo": [real]})
    assert list(told(play.broker(reply)).event.subscribeInfo) == [ours]
    register: dict[str, Any] = {
        **CONSUMER,
        "hostName": "h",
        "topicList": ["demo"],
        "subscribeInfo": [ours],
    }
    assert list(asked(play.client(ask(m.REGISTER_CONSUMER, 2, **register))).subscribeInfo) == [real]


def test_a_broker_of_which_nobody_has_heard_is_hidden_too() -> None:
    """A consumer whose partitions the master spreads is told of brokers one by one, and no list."""
    play = Tube()
    play.services.nodes.clear()
    fields: dict[str, Any] = {**CONSUMER, "reportSubscribeInfo": False}
    play.client(ask(m.BEAT_CONSUMER, **fields))
    event = {"rebalanceId": 8, "subscribeInfo": [f"c@g#1:{REAL[1].host}:8123#demo:0"]}
    found = told(play.broker(tell(m.BEAT_CONSUMER, **OK, event=event)))
    assert list(found.event.subscribeInfo) == [f"c@g#1:{shown(play, 1)}#demo:0"]
    assert play.services.nodes == {1: REAL[1]}


def test_partitions_of_a_brokers_heartbeat_have_them_too() -> None:
    play = Tube(node=2)
    ours, real = f"2:{shown(play, 2)}#demo:1", f"2:{REAL[2].host}:8125#demo:1"
    fields: dict[str, Any] = {**CONSUMER, "readStatus": 0, "partitionInfo": [ours]}
    assert list(asked(play.client(ask(m.BEAT_PARTITIONS, **fields))).partitionInfo) == [real]
    reply = tell(m.BEAT_PARTITIONS, **OK, hasPartFailure=True, failureInfo=[f"411:{real}"])
    assert list(told(play.broker(reply)).failureInfo) == [f"411:{ours}"]


def test_texts_name_no_broker() -> None:
    play = Tube(node=1)
    send: dict[str, Any] = {
        "clientId": "p", "topicName": "demo", "partitionId": 0, "data": b"x", "flag": 0,
        "checkSum": -1, "sentAddr": 1,
    }  # fmt: skip
    play.client(ask(m.SEND_MESSAGE, **send))
    failed: dict[str, Any] = {
        "success": False,
        "errCode": 419,
        "errMsg": f"failed from {REAL[1].host}",
    }
    assert REAL[1].host not in told(play.broker(tell(m.SEND_MESSAGE, **failed))).errMsg
    play.client(ask(m.SEND_MESSAGE, 2, **send))
    error = reply_of(play.broker(except_("java.lang.Exception", f"at {REAL[1].host}", 2))).error
    assert error is not None
    assert REAL[1].host not in error.stackTrace
    play.client(ask(m.SEND_MESSAGE, 3, **send))
    fine: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "4600743801051414528"}
    assert told(play.broker(tell(m.SEND_MESSAGE, 3, **fine))).errMsg == "4600743801051414528"


def test_listeners_in_a_text_have_no_address() -> None:
    play = Tube(node=1)
    learned = LearnedHosts(PLUGIN)
    learned.learn(REAL[1].host)
    play.services.clean = learned.clean
    text = f"from '[PLAINTEXT://{REAL[1].host}:8123]'"
    play.client(ask(m.COMMIT, **CONSUMER, topicName="demo", partitionId=0))
    failed: dict[str, Any] = {"success": False, "errCode": 500, "errMsg": text}
    assert told(play.broker(tell(m.COMMIT, **failed))).errMsg == "from '[PLAINTEXT://broker]'"


def test_a_master_that_is_not_active_ends_the_connection() -> None:
    play = Tube()
    play.client(ask(m.REGISTER_PRODUCER, **PRODUCER, brokerCheckSum=-1))
    name = "org.apache.inlong.tubemq.corerpc.exception.StandbyException"
    assert play.broker(except_(name, "10.0.0.9:8715 is not master now")) == b""
    assert play.end is not None
    assert play.end.reason is EndReason.BROKER_REFUSED


@pytest.mark.parametrize("size", [1, 7, 8192])
def test_blocks_of_any_size_are_read_and_full_ones_written(size: int) -> None:
    play = Tube()
    request = ask(m.REGISTER_PRODUCER, **PRODUCER, brokerCheckSum=-1, topicList=["demo"] * 20)
    assert play.client(in_blocks_of(size, request)) == request
    reply = tell(m.REGISTER_PRODUCER, **OK, brokerCheckSum=-1)
    assert play.broker(in_blocks_of(size, reply)) == reply
