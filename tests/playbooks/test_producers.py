"""Producers: what opens, counts, holds and ends an incarnation."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.contract import Direction, Drop, Forward, Hold, Inject
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.commands import BUSY, IN_USE
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.incarnations import FEW_STRAYS, MOST_STRAYS, UNANSWERED
from gateway.wire.pulsar.states import State

from .frames import (
    NO_REQUEST,
    TOPIC,
    close_producer,
    error,
    number_field,
    producer,
    producer_success,
    queued,
    raw,
    receipt,
    send,
    send_error,
    success,
)
from .script import FEW, Play
from .services import FORBIDDEN

OTHER = "persistent://public/default/other"


@pytest.fixture
def play() -> Play:
    return Play()


def opened(play: Play, id: int = 1, request: int = 1) -> Play:
    play.client(producer(id, request=request)).happens()
    play.broker(producer_success(request)).forwards()
    return play


def state(play: Play, id: int = 1) -> State | None:
    return play.state(Action.PRODUCE, id)


# -- opening -----------------------------------------------------------------------------------


def test_a_producer_is_admitted_by_its_topic_and_opened_by_the_broker(play: Play) -> None:
    play.client(producer(1, request=5, topic="persistent://a/b/c")).forwards()
    assert (play.account.topic, play.account.action) == ("persistent://a/b/c", Action.PRODUCE)
    play.client(send(1)).drops()
    play.broker(producer_success(5)).forwards()
    play.client(send(1)).passes()


def test_a_refused_producer_never_reaches_the_broker(play: Play) -> None:
    outcome = play.client(producer(1, request=5, topic="persistent://a/b/forbidden"))
    outcome.refuses(error(5, ServerError.AuthorizationError, FORBIDDEN.text))
    assert state(play) is None
    play.client(send(1)).drops()


def test_a_refused_re_creation_ends_the_incarnation_before(play: Play) -> None:
    over = opened(play).over
    response = error(2, ServerError.AuthorizationError, FORBIDDEN.text)
    refused = Inject(Direction.TO_CLIENT, response)
    play.services.forbids = True
    play.client(producer(1, request=2)).gives(over, Drop(), refused)
    play.client(send(1)).drops()


def test_a_producer_refused_by_the_broker_is_in_no_state(play: Play) -> None:
    play.client(producer(1, request=5)).forwards()
    play.broker(error(5)).gives(Forward(), play.over)
    assert state(play) is None
    assert play.services.live == []


def test_an_error_for_another_request_changes_nothing(play: Play) -> None:
    play.client(producer(1, request=5)).forwards()
    play.broker(error(6)).forwards()
    play.broker(error()).forwards()
    assert state(play) is State.OPENING


def test_a_queued_producer_opens_by_a_second_answer_to_the_same_request(play: Play) -> None:
    play.client(producer(1, request=5)).forwards()
    play.broker(queued(5)).forwards()
    assert state(play) is State.QUEUED
    play.client(send(1)).drops()
    play.broker(queued(5)).forwards()
    play.broker(producer_success(5)).forwards()
    play.client(send(1)).passes()


def test_a_queued_producer_may_be_refused_in_the_end(play: Play) -> None:
    play.client(producer(1, request=5)).forwards()
    play.broker(queued(5)).forwards()
    play.broker(error(5)).gives(Forward(), play.over)


def test_more_producers_and_consumers_than_the_bound_are_refused() -> None:
    play = Play(bounds=FEW)
    for id in (1, 2):
        play.client(producer(id, request=id)).forwards()
    text = "too many requests wait on this connection"
    play.client(producer(3, request=3)).refuses(error(3, ServerError.TooManyRequests, text))
    play.broker(error(1)).happens()
    play.client(producer(3, request=4)).forwards()


def test_a_re_creation_is_not_one_more() -> None:
    play = Play(bounds=FEW)
    for id in (1, 2):
        opened(play, id, id)
    over = play.over
    play.client(producer(2, request=3)).gives(over, Forward())


# -- what passes -------------------------------------------------------------------------------


def test_sends_and_receipts_are_counted(play: Play) -> None:
    opened(play)
    play.client(send(1, 0)).passes()
    play.client(send(1, 1, messages=10)).passes()
    account = play.account
    assert (account.messages, account.frames, account.outstanding) == (11, 2, 2)
    assert account.bytes == len(send(1, 0)) + len(send(1, 1, messages=10))
    play.broker(receipt(1, 0)).passes()
    assert account.outstanding == 1
    play.broker(receipt(1, 1)).passes()
    assert account.outstanding == 0


def test_a_send_error_is_an_answer_too(play: Play) -> None:
    opened(play)
    play.client(send(1)).passes()
    play.broker(send_error(1)).forwards()
    assert play.account.outstanding == 0


def test_receipts_of_unknown_producers_pass_uncounted(play: Play) -> None:
    play.broker(receipt(9)).passes()
    play.broker(send_error(9)).forwards()


def test_receipts_still_count_while_a_producer_closes(play: Play) -> None:
    opened(play)
    play.client(send(1)).passes()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(receipt(1)).passes()
    assert play.account.outstanding == 0


def test_a_send_that_the_scanner_cannot_read_is_counted_by_the_session(play: Play) -> None:
    opened(play)
    odd = raw(6, number_field(1, 1) + number_field(2, 7) + number_field(3, 4) + number_field(90, 1))
    play.client(odd).forwards()
    account = play.account
    assert (account.messages, account.surplus, account.bytes) == (4, 3, len(odd))


@pytest.mark.parametrize("count", [0, 1 << 31, (1 << 64) - 1])
def test_a_client_that_sends_no_message_or_fewer_is_at_fault(play: Play, count: int) -> None:
    opened(play)
    with pytest.raises(PeerError, match=r"a SEND of -?[0-9]+ messages"):
        play.client(raw(6, number_field(1, 1) + number_field(3, count)))
    assert play.account.messages == 0


def test_a_send_for_a_producer_that_was_never_opened_is_dropped(play: Play) -> None:
    play.client(send(9)).drops()


def send_strays(play: Play, size: int) -> None:
    """Send so many bytes to a producer that is not open."""
    stray = raw(Kind.SEND, send(1)[12:16], bytes(1024 * 1024 - 32))
    for _ in range(size // len(stray)):
        play.client(stray).drops()


def test_more_sends_for_producers_that_are_not_open_than_clients_have_end_the_connection(
    play: Play,
) -> None:
    send_strays(play, FEW_STRAYS)
    with pytest.raises(PeerError, match="not open"):
        send_strays(play, FEW_STRAYS)


def test_a_client_may_close_its_producer_and_gets_no_more_sends_by_that(play: Play) -> None:
    opened(play)
    play.client(close_producer(1)).forwards()
    with pytest.raises(PeerError, match="not open"):
        send_strays(play, 2 * FEW_STRAYS)


@pytest.mark.parametrize("in_flight", [0, 1])
def test_all_that_a_client_has_sent_when_it_reads_the_brokers_close_is_dropped(
    play: Play, in_flight: int
) -> None:
    opened(play)
    for sequence in range(in_flight):
        play.client(send(1, sequence)).passes()
    play.broker(close_producer(1, request=NO_REQUEST)).happens()
    send_strays(play, MOST_STRAYS)
    with pytest.raises(PeerError, match="not open"):
        send_strays(play, FEW_STRAYS)


# -- holding -----------------------------------------------------------------------------------


def test_a_held_account_gives_hold_and_goes_on_when_it_is_granted(play: Play) -> None:
    account = opened(play).account
    account.hold()
    play.client(send(1)).holds(account)
    account.grant(1)
    account.grant(0)
    play.client(send(1)).passes()
    play.client(send(1)).holds(account)
    assert account.messages == 1


def test_one_held_producer_leaves_the_others_alone(play: Play) -> None:
    opened(play, 1, 1)
    held = play.account
    opened(play, 2, 2)
    held.hold()
    play.client(send(1)).holds(held)
    play.client(send(2)).passes()


def test_a_held_send_that_the_scanner_cannot_read_is_held_too(play: Play) -> None:
    opened(play).account.hold()
    play.client(raw(6, number_field(1, 1) + number_field(90, 1))).holds(play.account)


def test_a_clients_close_waits_behind_its_held_frames(play: Play) -> None:
    account = opened(play).account
    account.hold()
    play.client(send(1)).holds(account)
    play.client(close_producer(1, request=2)).gives(Hold(account))
    play.release()
    play.client(send(1)).passes()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_clients_close_waits_for_nothing_where_nothing_waits(play: Play) -> None:
    """An hour, at a limit of one message an hour."""
    opened(play).account.hold()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_close_that_waited_goes_on_when_the_broker_closes_first(play: Play) -> None:
    account = opened(play).account
    account.hold()
    play.client(send(1)).holds(account)
    close = close_producer(1, request=2)
    play.client(close).gives(Hold(account))
    waiting = Inject(Direction.TO_BROKER, close)
    play.broker(close_producer(1)).gives(Forward(), play.over, waiting)
    play.broker(success(2)).forwards()


def test_a_close_that_waited_goes_before_the_producer_that_follows_it(play: Play) -> None:
    over = opened(play).over
    play.account.hold()
    play.client(send(1)).happens()
    close = close_producer(1, request=2)
    play.client(close).happens()
    waiting = Inject(Direction.TO_BROKER, close)
    play.client(producer(1, request=3)).gives(over, waiting, Forward())


# -- closing -----------------------------------------------------------------------------------


def test_a_client_closes_its_producer(play: Play) -> None:
    opened(play)
    play.client(close_producer(1, request=2)).forwards()
    play.client(send(1)).drops()
    assert play.services.live == [play.account]
    play.broker(success(2)).gives(Forward(), play.over)
    assert play.services.live == []
    play.client(send(1)).drops()


def test_a_close_that_fails_ends_the_incarnation_too(play: Play) -> None:
    opened(play)
    play.client(close_producer(1, request=2)).forwards()
    play.broker(error(2)).gives(Forward(), play.over)


def test_a_close_of_an_unknown_producer_is_the_brokers_to_answer(play: Play) -> None:
    play.client(close_producer(9, request=2)).forwards()
    play.broker(success(2)).forwards()


def test_the_broker_closes_a_producer(play: Play) -> None:
    opened(play)
    play.client(send(1)).passes()
    play.broker(receipt(1)).passes()
    play.broker(close_producer(1)).gives(Forward(), play.over)
    play.client(send(1)).drops()
    assert state(play) is None


def test_a_close_by_the_broker_of_an_unknown_producer_passes(play: Play) -> None:
    play.broker(close_producer(9)).forwards()


def test_a_producer_may_be_closed_by_the_broker_without_an_answer(play: Play) -> None:
    play.client(producer(1, request=5)).forwards()
    play.broker(close_producer(1)).gives(Forward(), play.over)
    assert play.session.incarnations.handles._awaited == {}


def test_both_sides_close_at_once(play: Play) -> None:
    opened(play)
    play.client(close_producer(1, request=2)).forwards()
    play.broker(close_producer(1)).gives(Forward(), play.over)
    play.broker(success(2)).forwards()
    assert play.services.live == []


def test_a_producer_given_up_before_its_answer_does_not_open(play: Play) -> None:
    """Clients close a producer whose creation takes too long; the responses may cross."""
    play.client(producer(1, request=1)).forwards()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).drops()
    play.broker(success(2)).gives(Forward(), play.over)
    assert play.services.live == []


def test_a_producer_given_up_before_its_answer_may_never_get_one(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(success(2)).gives(Forward(), play.over)
    assert play.services.live == []


def test_a_producer_given_up_before_its_answer_may_be_opened_after_all(play: Play) -> None:
    """4.2.4 answers a close in one write with PRODUCER first, and then opens the producer."""
    play.client(producer(1, request=1)).forwards()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(success(2)).gives(Forward(), play.over)
    play.broker(producer_success(1)).forwards()
    assert state(play) is State.ABANDONED
    refused = error(3, ServerError.ServiceNotReady, IN_USE.text)
    play.client(producer(1, request=3, topic=OTHER)).refuses(refused)
    play.client(producer(1, request=4)).happens()
    play.broker(producer_success(4)).forwards()
    play.client(send(1)).passes()


def test_an_id_is_of_one_topic_as_long_as_it_is_in_use(play: Play) -> None:
    """The broker would say yes, and go on with the producer that it has: what is sent to one topic
    would count for another one."""
    opened(play)
    account = play.account
    refused = error(2, ServerError.ServiceNotReady, IN_USE.text)
    play.client(producer(1, request=2, topic=OTHER)).refuses(refused)
    play.client(send(1)).passes()
    assert (play.account, play.account.messages) == (account, 1)
    play.client(close_producer(1, request=3)).forwards()
    play.broker(success(3)).gives(Forward(), play.over)
    play.client(producer(1, request=4, topic=OTHER)).forwards()


def test_another_spelling_of_its_topic_is_the_same_topic(play: Play) -> None:
    opened(play)
    over = play.over
    play.client(producer(1, request=2, topic=TOPIC.rpartition("/")[2])).gives(over, Forward())
    play.broker(producer_success(2)).forwards()
    assert {account.topic for account in play.services.admitted} == {TOPIC}


def test_a_queued_producer_given_up_does_not_open(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.broker(queued(1)).forwards()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).drops()
    play.broker(success(2)).gives(Forward(), play.over)


# -- re-creation with the same id --------------------------------------------------------------


def test_a_new_incarnation_has_a_new_account(play: Play) -> None:
    over = opened(play).over
    play.client(producer(1, request=2)).gives(over, Forward())
    assert play.services.live == [play.account]
    play.client(send(1)).drops()
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()
    assert play.account.messages == 1


def test_a_producer_that_is_asked_for_twice_is_opened_by_either_answer(play: Play) -> None:
    """The broker refuses the second request while it is at work on the first one, or says yes to
    both."""
    for second in (error(2), producer_success(2)):
        play = Play()
        play.client(producer(1, request=1)).forwards()
        play.client(producer(1, request=2)).forwards()
        play.broker(second).forwards()
        play.broker(producer_success(1)).forwards()
        play.client(send(1)).passes()
        assert len(play.services.admitted) == 1


def test_the_second_request_opens_what_the_first_one_did_not(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    play.broker(error(1)).forwards()
    play.client(send(1)).drops()
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()


def test_two_refusals_end_it(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    play.broker(error(2)).forwards()
    play.broker(error(1)).gives(Forward(), play.over)


def test_a_close_between_two_answers_is_of_the_one_before(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).passes()
    play.broker(close_producer(1)).gives(Forward(), play.over)
    assert state(play) is State.OPENING
    play.client(send(1)).drops()
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()


def test_a_second_refusal_does_not_end_what_is_moved(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).passes()
    play.leave().happens()
    assert state(play) is State.LEAVING
    play.broker(error(2)).forwards()
    assert state(play) is State.LEAVING


def test_a_close_that_waits_is_not_lost_between_two_answers(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    play.broker(producer_success(1)).forwards()
    play.account.hold()
    play.client(send(1)).holds(play.account)
    close = close_producer(1, request=3)
    play.client(close).holds(play.account)
    waited = Inject(Direction.TO_BROKER, close)
    play.broker(close_producer(1)).gives(Forward(), play.over, waited)
    play.broker(producer_success(2)).forwards()
    play.broker(success(3)).gives(Forward(), play.over)
    assert play.services.live == []


def test_a_producer_is_not_asked_for_without_end(play: Play) -> None:
    """Each request is kept until it is answered."""
    for request in range(1, UNANSWERED + 1):
        play.client(producer(1, request=request)).forwards()
    refused = error(99, ServerError.TooManyRequests, BUSY.text)
    play.client(producer(1, request=99)).refuses(refused)


def test_a_close_that_was_meant_for_the_incarnation_before_does_not_end_this_one(
    play: Play,
) -> None:
    """A client that opens its producer again by itself may cross with the broker's close."""
    opened(play)
    play.client(producer(1, request=2)).happens()
    play.broker(close_producer(1)).forwards()
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()


def test_a_second_close_ends_a_re_created_producer(play: Play) -> None:
    opened(play)
    play.client(producer(1, request=2)).happens()
    play.broker(close_producer(1)).forwards()
    play.broker(close_producer(1)).gives(Forward(), play.over)


def test_a_producer_opens_again_after_the_broker_closed_it(play: Play) -> None:
    opened(play)
    play.broker(close_producer(1)).happens()
    play.client(producer(1, request=2)).forwards()
    assert state(play) is State.OPENING
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()


# -- the end -----------------------------------------------------------------------------------


def test_the_end_of_a_pair_gives_every_account_back(play: Play) -> None:
    opened(play, 1, 1)
    play.client(producer(2, request=2)).forwards()
    play.client(close_producer(1, request=3)).forwards()
    play.session.close()
    play.session.close()
    assert sorted(map(id, play.services.released)) == sorted(map(id, play.services.admitted))


def test_a_request_id_used_twice_is_the_clients_own_trouble(play: Play) -> None:
    play.client(producer(1, request=1)).forwards()
    play.client(producer(2, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).drops()
    play.client(send(2)).passes()
    play.broker(receipt(2)).passes()
    play.broker(close_producer(1)).happens()
    play.broker(close_producer(2)).happens()
    assert play.services.live == []


def test_the_topic_of_the_usual_frames_is_admitted(play: Play) -> None:
    play.client(producer()).forwards()
    assert play.account.topic == TOPIC
