"""Which requests and replies pass the scanners, and which ones stop."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Account, Right
from gateway.wire.contract import Direction, End, EndReason
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.envelopes import succeeded
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.frames import BLOCK
from gateway.wire.tubemq.in_flight import MOST
from gateway.wire.tubemq.session import LEAST_PAUSE, LONGEST_PAUSE, SWEPT
from gateway.wire.tubemq.to_broker import MOST_USES
from tests.unit.wire.tubemq.frames import in_blocks_of, vector

from .script import PATIENCE_MS, Tube, TubeServices, ask, request_of, tell, told
from .test_requests import GET, OK, got, send

TAKEN: dict[str, Any] = {
    "success": True,
    "errCode": 200,
    "errMsg": "4600743810514145280",
    "requireAuth": False,
    "messageId": 4600743810514145280,
    "appendTime": 1_796_083_200_000,
    "appendOffset": 28_000,
}


MESSAGES = [{"messageId": 1, "checkSum": 1, "payLoadData": b"x", "flag": 0}]


def receipt_passes(play: Tube, frame: bytes) -> bool:
    return play.passes(frame, Direction.TO_CLIENT)


FIELDS: dict[str, Any] = {
    "clientId": "p",
    "topicName": "demo",
    "partitionId": 1,
    "data": b"x",
    "flag": 0,
    "checkSum": -1,
    "sentAddr": 1,
}


def producer(services: TubeServices | None = None, **more: Any) -> tuple[Tube, Account]:
    """Return a pair on which one message was sent, and its account."""
    play = Tube(services, node=1, **more)
    assert not play.passes(send(1))
    return play, play.services.live[0]


# -- requests ------------------------------------------------------------------------------------


def test_messages_of_a_known_client_to_a_known_topic_pass_and_are_counted() -> None:
    play, account = producer()
    sizes = (0, 5, 127, 128, 200, BLOCK, 2 * BLOCK, 1 << 20)
    assert all(play.passes(send(2 + size, bytes(size))) for size in sizes)
    assert (account.messages, account.bytes) == (1 + len(sizes), 5 + sum(sizes))


@pytest.mark.parametrize("sender", ["java", "go"])
def test_what_real_producers_send_passes(sender: str) -> None:
    frame = vector("sendMessageP2B", sender).frame
    play = Tube(node=2)
    assert not play.passes(frame)
    assert play.passes(frame[:4] + b"next" + frame[8:])


def test_a_credential_that_the_gateway_does_not_verify_passes() -> None:
    play, _ = producer()
    for serial, size in ((2, 5), (3, 20_000)):
        assert play.passes(send(serial, bytes(size), authInfo={"visitAuthorizedToken": serial}))


def test_a_large_message_passes_while_it_comes_and_nothing_of_it_is_kept() -> None:
    play, account = producer()
    frame = send(2, bytes(1 << 20))
    half = len(frame) // 2
    assert play.client(frame[:half]) == frame[:half]
    assert play.budget_of.taken < half
    assert play.client(frame[half:]) == frame[half:]
    assert (account.messages, account.bytes) == (2, 5 + (1 << 20))


def test_what_names_another_topic_behind_a_large_message_never_becomes_whole() -> None:
    play, _ = producer()
    message = m.METHODS[m.SEND_MESSAGE].request(**(FIELDS | {"data": bytes(20_000)}))
    frame = request_of(m.SEND_MESSAGE, message.SerializeToString() + b"\x12\x05other", 2)
    passed = play.client(frame[:-1])
    with pytest.raises(PeerError, match="other fields"):
        play.client(frame[-1:])
    assert len(passed) < len(frame) - len(b"\x12\x05other")


def test_what_has_come_of_a_message_that_never_ends_is_counted() -> None:
    play, account = producer()
    frame = send(2, bytes(1 << 20))
    play.client(frame[: len(frame) // 2])
    play.close()
    assert account.messages == 2
    assert 1 << 18 < account.bytes < 1 << 20


def in_the_middle() -> tuple[Tube, Account, bytes]:
    """Return a pair on which a large message passes, its account, and the message's last byte."""
    play, account = producer()
    play.broker(tell(m.SEND_MESSAGE, 1, **OK))
    frame = send(2, bytes(100_000))
    play.client(frame[:-1])
    return play, account, frame[-1:]


def test_a_large_message_that_comes_slowly_keeps_its_account() -> None:
    play, account, end = in_the_middle()
    for _ in range(3):
        play.after(SWEPT)
    assert play.client(end)
    assert play.services.live == [account]


def test_a_client_is_not_moved_while_a_large_message_passes() -> None:
    play, _, end = in_the_middle()
    assert play.session.leave(play.now) == ()
    play.client(end)
    play.broker(tell(m.SEND_MESSAGE, 2, **OK))
    assert play.session.leave(play.now) is None


def test_a_right_that_is_taken_back_ends_the_connection_within_a_large_message() -> None:
    play, account, _ = in_the_middle()
    play.services.forbidden = {(Right.PRODUCE, "demo")}
    play.revoke(account)
    assert play.end == End(EndReason.OPERATOR_CLOSED, detail="not allowed")


def test_messages_that_wait_go_on_behind_a_large_message() -> None:
    services = TubeServices()
    play, account = producer(services)
    services.lease = 1
    play.client(send(2, topic="limited"), send(3, topic="limited"))
    large = send(4, bytes(100_000))
    play.client(large[:50_000])
    services.live[1].grant(10)
    play.after(LONGEST_PAUSE)
    assert play.broker_got() == b""
    assert play.client(large[50_000:]) == large[50_000:]
    play.after(LONGEST_PAUSE)
    assert play.broker_got() == send(3, topic="limited")
    assert account.messages == 2


def test_partitions_and_filters_of_a_known_topic_pass() -> None:
    play, account = producer()
    assert play.passes(ask(m.SEND_MESSAGE, 2, **(FIELDS | {"partitionId": 7})))
    assert play.passes(send(3, msgType="é", msgTime="202611270900"))
    assert play.passes(send(4, msgTime="202611270901"))
    assert account.messages == 4


@pytest.mark.parametrize(
    "frame",
    [
        send(2, topic="other"),
        ask(m.SEND_MESSAGE, 2, **(FIELDS | {"clientId": "q"})),
        ask(m.SEND_MESSAGE, 2, PATIENCE_MS + 1, **FIELDS),
        ask(m.GET_MESSAGES, 2, **GET),
        in_blocks_of(20, send(2)),
    ],
    ids=["topic", "client", "timeout", "method", "blocks"],
)
def test_a_request_of_another_use_or_form_stops(frame: bytes) -> None:
    play, _ = producer()
    assert not play.passes(frame)


FINE = m.METHODS[m.SEND_MESSAGE].request(**FIELDS).SerializeToString()


@pytest.mark.parametrize(
    "message",
    [
        FINE + b"\x12\x04demo",
        b"\x0a\x01q" + FINE,
        FINE.replace(b"\x18\x01", b"\x18\x01\x18\x02"),
        FINE.replace(b"\x12\x04", b"\x12\x84\x80\x80\x80\x80\x00"),
        FINE.replace(b"\x38\x01", b"\x38" + b"\xff" * 10 + b"\x01"),
        FINE + b"\x42\x02\xff\xfe",
        FINE + b"\x5b\x5c",
    ],
    ids=["topic twice", "client twice", "partition twice", "length", "number", "text", "group"],
)
def test_a_request_that_is_not_written_as_usual_stops(message: bytes) -> None:
    for play in (producer()[0], Tube(node=1)):
        with suppress(PeerError):  # some cannot be decoded
            for serial in (7, 8):
                assert not play.passes(request_of(m.SEND_MESSAGE, message, serial))


def test_bytes_behind_the_envelope_stop_a_request() -> None:
    """Clients in C++ send zeros there."""
    play, _ = producer()
    frame = send(2)
    longer = frame[:12] + (len(frame) - 16 + 3).to_bytes(4) + frame[16:] + bytes(3)
    assert not play.passes(longer)


def test_a_use_with_long_names_is_not_remembered() -> None:
    play = Tube(node=1)
    long = GET | {"clientId": "c" * 1024}
    assert not play.passes(ask(m.GET_MESSAGES, 1, **long))
    assert not play.passes(ask(m.GET_MESSAGES, 2, **long))


def test_more_uses_than_are_remembered_stop_again() -> None:
    play = Tube(node=1)
    topics = [f"topic_{number:02}" for number in range(MOST_USES + 1)]
    for serial, topic in enumerate(topics):
        assert not play.passes(send(serial, topic=topic))
    assert play.passes(send(1000, topic=topics[-1]))
    assert play.passes(send(1001, topic=topics[1]))
    assert not play.passes(send(1002, topic=topics[0]))


def test_requests_for_messages_pass_and_are_counted_when_they_are_answered() -> None:
    play = Tube(node=1)
    assert not play.passes(ask(m.GET_MESSAGES, 1, **GET))
    assert play.passes(ask(m.GET_MESSAGES, 2, **GET))
    reply = got(2, b"123", b"4567")
    assert play.broker(reply) == reply
    (account,) = play.services.live
    assert (account.messages, account.bytes) == (2, 7)


def test_a_message_above_a_limit_stops() -> None:
    services = TubeServices()
    services.lease = 2
    play, account = producer(services)
    assert play.passes(send(2))
    assert not play.passes(send(3))
    assert account.messages == 2


def test_a_message_does_not_overtake_those_that_wait() -> None:
    services = TubeServices()
    services.lease = 1
    play, account = producer(services)
    play.client(send(2))
    account.grant(10)
    assert not play.passes(send(3))
    play.after(LEAST_PAUSE)
    assert play.broker_got() == send(2) + send(3)
    assert play.passes(send(4))


def test_a_right_that_is_gone_is_judged_anew() -> None:
    services = TubeServices()
    play, account = producer(services)
    services.forbidden = {(Right.PRODUCE, "demo")}
    play._carry_out(play.session.revoke(account, services.forbid, 0.0), 0)  # type: ignore[arg-type]
    assert not play.passes(send(2))
    assert told(play.client_got()).errCode == 401


def test_an_account_that_nobody_used_is_closed_and_opened_by_the_next_message() -> None:
    play, account = producer()
    assert play.passes(send(2))
    play.broker(tell(m.SEND_MESSAGE, 1, **OK), tell(m.SEND_MESSAGE, 2, **OK))
    for _ in range(2):
        play.after(SWEPT)
    assert not play.services.live
    assert not play.passes(send(3))
    assert play.services.live != [account]


def test_two_requests_with_one_number_are_a_violation() -> None:
    play, _ = producer()
    assert play.passes(send(2))
    with pytest.raises(PeerError, match="a second request 2"):
        play.passes(send(2))


def test_a_client_with_too_many_requests_waits() -> None:
    play, _ = producer()
    assert all(play.passes(send(2 + number)) for number in range(MOST - 1))
    assert not play.passes(send(-1))
    assert play.is_waiting


def test_a_request_that_passed_is_forgotten_when_nobody_waits_for_its_reply() -> None:
    """The scanner has no clock, so a sweep begins the time."""
    play, _ = producer()
    assert play.passes(send(2))
    session: Any = play.session
    play.after(SWEPT)
    assert list(session._in_flight) == [2]
    play.after(max(SWEPT, 2 * PATIENCE_MS / 1000))
    assert not session._in_flight


def test_a_gateway_that_stops_takes_no_more_and_waits_for_replies() -> None:
    play, _ = producer()
    assert play.passes(send(2))
    assert play.session.leave(play.now) == ()
    assert not play.passes(send(3))
    play.broker(tell(m.SEND_MESSAGE, 1, **OK), tell(m.SEND_MESSAGE, 2, **OK))
    assert play.session.leave(play.now) is None


# -- receipts ------------------------------------------------------------------------------------


def test_receipts_pass_and_are_counted() -> None:
    play, account = producer()
    for serial in range(2, 6):
        assert play.passes(send(serial))
    assert receipt_passes(play, tell(m.SEND_MESSAGE, 1, **TAKEN))
    other = {"errMsg": "9" * 19, "messageId": 1 << 62, "appendOffset": 28_028}
    assert receipt_passes(play, tell(m.SEND_MESSAGE, 2, **(TAKEN | other)))
    short = {"success": True, "errCode": 200, "errMsg": "7", "messageId": 7}
    assert receipt_passes(play, tell(m.SEND_MESSAGE, 3, **short))
    refused: dict[str, Any] = {"success": False, "errCode": 500, "errMsg": "no"}
    assert not receipt_passes(play, tell(m.SEND_MESSAGE, 4, **refused))
    assert (account.receipts, account.errors) == (4, 1)


@pytest.mark.parametrize(
    "more",
    [{"errMsg": "127.0.0.97:8123 took"}, {"requireAuth": True}, {"errCode": 201}],
    ids=["text", "signature", "code"],
)
def test_a_receipt_that_says_more_stops(more: dict[str, Any]) -> None:
    play, account = producer()
    assert not receipt_passes(play, tell(m.SEND_MESSAGE, 1, **(TAKEN | more)))
    assert account.receipts == 1
    assert b"127.0.0.97" not in play.client_got()


def test_a_receipt_of_what_nobody_sent_goes_nowhere() -> None:
    play, _ = producer()
    assert receipt_passes(play, tell(m.SEND_MESSAGE, 1, **TAKEN))
    assert not receipt_passes(play, tell(m.SEND_MESSAGE, 1, **TAKEN))
    assert play.client_got() == b""


def test_a_receipt_does_not_answer_another_request() -> None:
    play, _ = producer()
    play.client(ask(m.GET_MESSAGES, 2, **GET))
    assert receipt_passes(play, tell(m.SEND_MESSAGE, 1, **TAKEN))
    with pytest.raises(PeerError, match="was not asked"):
        receipt_passes(play, tell(m.SEND_MESSAGE, 2, **TAKEN))


# -- replies that bring messages -----------------------------------------------------------------


def consumer(count: int) -> tuple[Tube, Account]:
    """Return a pair on which as many requests for messages wait, after one that had a reply, and
    their account."""
    play = Tube(node=1)
    play.client(*(ask(m.GET_MESSAGES, serial, **GET) for serial in range(count + 1)))
    first = got(0, b"1")
    assert play.broker(first) == first
    return play, play.services.live[0]


def test_messages_pass_while_they_are_read_and_count_when_their_reply_is_whole() -> None:
    play, account = consumer(1)
    reply = got(1, *[bytes(1000)] * 100)
    half = len(reply) // 2
    assert play.broker(reply[:half]) == reply[:half]
    assert account.messages == 1
    assert play.budget_of.taken < half, "nothing of it is kept"
    assert play.broker(reply[half:]) == reply[half:]
    assert (account.messages, account.surplus, account.bytes) == (101, 99, 100_001)


def test_offsets_are_noted_of_replies_that_pass() -> None:
    play, _ = consumer(1)
    number = 1_000_001
    reply = tell(m.GET_MESSAGES, 1, **OK, messages=MESSAGES, currOffset=2800, maxOffset=5600)
    assert play.passes(reply, Direction.TO_CLIENT)
    ends = {it.partition: it.offset for it in play.services.progress.ends()}
    committed = {it.partition: it.offset for it in play.services.progress.committed()}
    assert (ends[number], committed[number]) == (200, 100)


@pytest.mark.parametrize(
    "reply",
    [
        tell(m.GET_MESSAGES, 1, success=True, errCode=200, errMsg="at broker-1.internal"),
        tell(m.GET_MESSAGES, 1, success=False, errCode=404, errMsg="none at broker-1.internal"),
        in_blocks_of(20, got(1, b"x")),
        in_blocks_of(8191, got(1, bytes(9000))),
    ],
    ids=["text", "failure", "small blocks", "blocks that are not full"],
)
def test_a_reply_that_begins_otherwise_is_judged(reply: bytes) -> None:
    play, _ = consumer(1)
    assert b"broker-1" not in play.broker(reply)
    play, _ = consumer(1)
    assert not play.passes(reply, Direction.TO_CLIENT)


def test_a_text_behind_messages_ends_the_connection() -> None:
    """It would be the reply's, and may have an address."""
    play, _ = consumer(1)
    body = told(got(1, b"x")).SerializeToString() + b"\x1a\x08broker-1"
    with pytest.raises(PeerError, match="go on"):
        play.broker(succeeded(1, m.GET_MESSAGES, body))
    assert b"broker-1" not in play.client_got()


def test_what_the_gateway_says_waits_until_a_reply_is_whole() -> None:
    play, _ = consumer(1)
    reply = got(1, bytes(50_000))
    assert play.broker(reply[:20_000]) == reply[:20_000]
    play.client(ask(m.GET_MESSAGES, 9, **(GET | {"topicName": "no topic"})))
    assert play.client_got() == b""
    rest = play.broker(reply[20_000:])
    assert rest.startswith(reply[20_000:])
    assert told(rest[len(reply) - 20_000 :]).errCode == ErrorCode.UNAUTHORIZED


def test_what_has_come_of_a_reply_that_never_ends_is_counted() -> None:
    play, account = consumer(1)
    reply = got(1, *[bytes(1000)] * 100)
    play.broker(reply[:50_000])
    play.close()
    assert (account.messages, account.bytes) == (1 + 49, 1 + 49_000)


def test_a_reply_that_comes_slowly_keeps_its_account() -> None:
    play, account = consumer(1)
    reply = got(1, bytes(50_000))
    play.broker(reply[:-1])
    for _ in range(3):
        play.after(SWEPT)
    play.broker(reply[-1:])
    assert play.services.live == [account]


def test_a_gateway_that_stops_waits_for_the_end_of_a_reply() -> None:
    play, _ = consumer(1)
    reply = got(1, bytes(50_000))
    play.broker(reply[:20_000])
    assert play.session.leave(play.now) == ()
    play.broker(reply[20_000:])
    assert play.session.leave(play.now) is None
