"""What comes too often waits for its time, and is decided as if it came then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import (
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    EndReason,
    Forward,
    Hold,
    Inject,
    Later,
    Refusal,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State
from gateway.wire.services import Again, LookupOutcome

from .frames import (
    NO_REQUEST,
    TOPIC,
    Fields,
    close_consumer,
    close_producer,
    connect,
    connect_to,
    connected,
    error,
    failed,
    frame,
    lookup,
    producer,
    producer_success,
    send,
    subscribe,
    success,
    unsubscribe,
)
from .script import VERIFY, Outcome, Play, opening
from .services import FORBIDDEN, ORIGIN, SEALED_1, URL_1, FakeServices

TOO_OFTEN = Denial(Refusal.TOO_OFTEN, "rule few allows no more now")
REJECTED = Denial(Refusal.FULL, "rule few allows 10 producers")


def partitions(request: int = 1, topic: str = TOPIC) -> bytes:
    return frame(Kind.PARTITIONED_METADATA, topic=topic, request_id=request)


def no_partitions(request: int, code: ServerError.ValueType, text: str) -> bytes:
    no = CommandPartitionedTopicMetadataResponse.Failed
    fields: Fields = {"request_id": request, "response": no, "error": code, "message": text}
    return frame(Kind.PARTITIONED_METADATA_RESPONSE, **fields)


AtTime = Callable[[float], Effects]


class Paced(Play):
    """A pair under rules of how often; all that is paced waits for two seconds at first."""

    def __init__(self, *paced: Action, **settings: Any) -> None:
        super().__init__(limited=True, **settings)
        self.services.paced = set(paced) or set(Action)
        self.services.delay = 2.0

    def later(self, said: Outcome, until: float = 2.0) -> AtTime:
        """It is kept, and asked for at that time by this."""
        assert said.effects is not None
        drop, later = said.effects
        assert drop == Drop()
        assert isinstance(later, Later)
        assert later.until == until
        return later.then

    def still(self, then: AtTime, now: float, until: float) -> AtTime:
        """It is asked for again at that time."""
        effects = self.due(then, now).effects
        assert effects is not None
        (later,) = effects
        assert isinstance(later, Later)
        assert later.until == until
        return later.then

    def due(self, then: AtTime, now: float = 2.0) -> Outcome:
        return self._stepped(then(now))


@pytest.fixture
def play() -> Paced:
    return Paced()


def to_broker(data: bytes) -> Inject:
    return Inject(Direction.TO_BROKER, data)


def to_client(data: bytes) -> Inject:
    return Inject(Direction.TO_CLIENT, data)


# -- producers and consumers -------------------------------------------------------------------


def test_a_producer_that_waits_is_unknown_until_its_time_comes(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    assert play.state(Action.PRODUCE) is None
    assert play.services.admitted == []
    play.due(then).gives(to_broker(producer(1, request=5)))
    assert play.state(Action.PRODUCE) is State.OPENING
    play.broker(producer_success(5)).forwards()
    play.client(send(1)).passes()


def test_services_are_asked_for_the_wait_of_client_and_topic(play: Paced) -> None:
    play.client(subscribe(1, topic=TOPIC)).happens()
    (asked,) = play.services.counted
    assert (asked.action, asked.name) == (Action.CONSUME, TOPIC)
    assert (asked.subject.principal, asked.subject.subscription) == ("alice", "s")


def test_a_request_without_a_wait_goes_on_at_once(play: Paced) -> None:
    play.services.delay = 0.0
    play.client(producer(1)).forwards()
    play.client(subscribe(1, request=2)).forwards()
    assert len(play.services.counted) == 2


@pytest.mark.parametrize("paced", [Action.PRODUCE, Action.CONSUME, Action.LOOKUP])
def test_only_actions_with_a_rate_limit_wait(paced: Action) -> None:
    play = Paced(paced)
    said = {
        Action.PRODUCE: producer(1, request=1),
        Action.CONSUME: subscribe(1, request=2),
        Action.LOOKUP: lookup(3),
    }
    for action, data in said.items():
        outcome = play.client(data)
        if action is paced:
            play.later(outcome)
        else:
            outcome.forwards()


def test_a_close_waits_behind_what_it_closes(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    play.client(close_producer(1, request=6)).drops()
    both = (to_broker(producer(1, request=5)), to_broker(close_producer(1, request=6)))
    play.due(then).gives(*both)
    assert play.state(Action.PRODUCE) is State.CLOSING
    play.broker(success(6)).gives(Forward(), play.over)


def test_close_and_unsubscribe_wait_behind_the_opening(play: Paced) -> None:
    then = play.later(play.client(subscribe(1, request=5)))
    said = [unsubscribe(1, request=6), close_consumer(1, request=7)]
    for each in said:
        play.client(each).drops()
    play.due(then).gives(*map(to_broker, [subscribe(1, request=5), *said]))


def test_other_requests_do_not_wait_behind_a_delayed_one(play: Paced) -> None:
    play.services.delay = 0.0
    play.client(producer(2, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.services.delay = 2.0
    play.later(play.client(producer(1, request=5)))
    play.client(send(2)).passes()
    play.client(close_consumer(1, request=6)).forwards()
    play.client(close_producer(2, request=7)).forwards()


def test_what_is_opened_twice_keeps_its_order(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    play.services.delay = 1.0
    play.client(producer(1, request=6)).drops()
    both = (to_broker(producer(1, request=5)), to_broker(producer(1, request=6)))
    assert play.due(then).effects == both


def test_the_next_of_the_same_id_is_asked_for_in_its_turn(play: Paced) -> None:
    first = play.later(play.client(producer(1, request=5)))
    play.services.delay = 3.0
    play.client(producer(1, request=6)).drops()
    effects = play.due(first).effects
    assert effects is not None
    went, later = effects
    assert went == to_broker(producer(1, request=5))
    assert isinstance(later, Later)
    assert later.until == 3.0
    assert to_broker(producer(1, request=6)) in (play.due(later.then, 3.0).effects or ())


def test_one_that_is_opened_in_place_goes_on_until_its_time_comes(play: Paced) -> None:
    """What the client sent before it asked belongs to the incarnation before."""
    play.services.delay = 0.0
    play.client(producer(1, request=5)).forwards()
    play.broker(producer_success(5)).forwards()
    before = play.account
    play.services.delay = 2.0
    then = play.later(play.client(producer(1, request=6)))
    play.client(send(1)).passes()
    play.due(then).gives(Discard(before), to_broker(producer(1, request=6)))
    assert play.services.released == [before]
    play.client(send(1)).drops()


def test_one_that_is_not_admitted_when_its_time_comes_is_told(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5, topic="forbidden")))
    play.due(then).gives(
        Drop(), to_client(error(5, ServerError.AuthorizationError, FORBIDDEN.text))
    )
    assert play.state(Action.PRODUCE) is None


@pytest.mark.parametrize("open", [producer(1, request=5), subscribe(1, request=5)])
@pytest.mark.parametrize(
    ("denial", "code"),
    [(TOO_OFTEN, ServerError.ServiceNotReady), (REJECTED, ServerError.NotAllowedError)],
)
def test_what_would_wait_too_long_is_refused_and_leaves_nothing(
    play: Paced, open: bytes, denial: Denial, code: ServerError.ValueType
) -> None:
    play.services.delay = denial
    said = play.client(open)
    refused = said.refuses if open == producer(1, request=5) else said.refuses_consumer
    refused(error(5, code, denial.text))
    assert play.services.admitted == []
    assert not play.session._delays


# -- lookups -----------------------------------------------------------------------------------


def test_a_lookup_that_waited_is_answered_like_any_other(play: Paced) -> None:
    then = play.later(play.client(lookup(3)))
    play.due(then).gives(to_broker(lookup(3)))
    answered = play.broker(connect_to(URL_1, 3)).replaced().lookupTopicResponse
    assert answered.brokerServiceUrl == SEALED_1


def test_partitions_count_as_lookups(play: Paced) -> None:
    then = play.later(play.client(partitions(3)))
    assert [asked.action for asked in play.services.counted] == [Action.LOOKUP]
    play.due(then).gives(to_broker(partitions(3)))
    play.services.delay = 0.0
    play.client(partitions(4)).forwards()


def test_partitions_pass_unseen_where_there_are_no_rules() -> None:
    Play().client(partitions(3)).passes()
    Play(limited=True).client(partitions(3)).forwards()


def test_lookups_do_not_wait_for_each_other(play: Paced) -> None:
    play.later(play.client(lookup(3)))
    play.services.delay = 0.0
    play.client(lookup(4)).forwards()


def test_a_lookup_that_would_wait_too_long_may_be_tried_on_the_same_connection(
    play: Paced,
) -> None:
    play.services.delay = TOO_OFTEN
    code, text = ServerError.MetadataError, TOO_OFTEN.text
    play.client(lookup(3)).refuses(failed(3, code, text))
    play.client(partitions(4)).refuses(no_partitions(4, code, text))
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


def test_a_go_client_is_refused_by_an_error_after_which_it_asks_again() -> None:
    play = Paced(version="Pulsar-Go-0.19.0")
    play.services.delay = TOO_OFTEN
    for asked in (lookup(3), partitions(3)):
        play.client(asked).refuses(error(3, ServerError.ServiceNotReady, TOO_OFTEN.text))
    play.services.delay = 0.0
    play.client(lookup(3)).forwards()


def test_rules_that_come_later_hold_for_open_pairs() -> None:
    play = Play(limited=True)
    play.client(partitions(3)).forwards()
    play.services.paced, play.services.delay = {Action.LOOKUP}, 0.0
    play.client(lookup(4)).forwards()
    play.client(partitions(5)).forwards()
    assert len(play.services.counted) == 2


def test_what_waits_when_rules_go_still_keeps_its_order(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    play.services.paced = set()
    play.client(close_producer(1, request=6)).drops()
    assert play.due(then).words == "inject + inject"


# -- bounds ------------------------------------------------------------------------------------

MANY = "too many requests wait on this connection"


def test_the_number_of_waiting_requests_is_bounded() -> None:
    play = Paced(bounds=Bounds(delayed=2))
    then = play.later(play.client(producer(1, request=1)))
    play.later(play.client(lookup(2)))
    play.client(producer(3, request=3)).refuses(error(3, ServerError.ServiceNotReady, MANY))
    play.client(lookup(4)).refuses(failed(4, ServerError.MetadataError, MANY))
    play.client(close_producer(1, request=5)).refuses(error(5, ServerError.ServiceNotReady, MANY))
    play.services.delay = 0.0
    play.client(producer(6, request=6)).forwards()
    play.services.delay = 2.0
    play.due(then).happens()
    play.later(play.client(producer(3, request=7)))


def test_the_bytes_of_waiting_requests_are_bounded() -> None:
    large = producer(1, request=1, producer_name="p" * 500)
    play = Paced(bounds=Bounds(delayed_bytes=300))
    then = play.later(play.client(large))
    play.client(producer(2, request=2)).refuses(error(2, ServerError.ServiceNotReady, MANY))
    play.due(then).gives(to_broker(large))
    play.later(play.client(producer(2, request=3)))


# -- where it is still to be learned -----------------------------------------------------------

SOON = Again(0.5, since=7.0)


@pytest.fixture
def unknown(play: Paced) -> Paced:
    """How long something waits is known by nobody yet."""
    play.services.delay = SOON
    return play


def test_services_are_asked_again_until_a_request_may_go_on(unknown: Paced) -> None:
    then = unknown.later(unknown.client(producer(1, request=5)), until=0.5)
    then = unknown.still(then, now=0.5, until=1.0)
    unknown.services.delay = 0.0
    unknown.due(then, now=1.0).gives(to_broker(producer(1, request=5)))
    assert unknown.services.again == [None, SOON, SOON]
    assert len({(asked.action, asked.name) for asked in unknown.services.counted}) == 1


def test_a_known_wait_is_not_asked_for_again(unknown: Paced) -> None:
    then = unknown.later(unknown.client(lookup(5)), until=0.5)
    unknown.services.delay = 2.0
    then = unknown.still(then, now=0.5, until=2.5)
    unknown.due(then, now=2.5).gives(to_broker(lookup(5)))
    assert len(unknown.services.counted) == 2


def test_a_request_refused_after_its_wait_is_answered(unknown: Paced) -> None:
    then = unknown.later(unknown.client(producer(1, request=5)), until=0.5)
    unknown.client(close_producer(1, request=6)).drops()
    unknown.services.delay = TOO_OFTEN
    told = error(5, ServerError.ServiceNotReady, TOO_OFTEN.text)
    said = unknown.due(then, now=0.5)
    assert said.effects is not None
    assert to_client(told) in said.effects
    assert unknown.services.admitted == []
    assert unknown.state(Action.PRODUCE) is None


def test_nothing_overtakes_what_it_follows(unknown: Paced) -> None:
    then = unknown.later(unknown.client(producer(1, request=5)), until=0.5)
    unknown.client(close_producer(1, request=6)).drops()
    then = unknown.still(then, now=0.5, until=1.0)
    unknown.services.delay = 0.0
    words = unknown.due(then, now=1.0).words
    assert words == "inject + inject"


# -- ends --------------------------------------------------------------------------------------


def test_a_client_that_goes_leaves_nothing(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    play.session.close()
    assert not play.session._delays
    play.due(then).gives()
    assert play.services.live == []


def test_what_waits_when_the_gateway_stops_is_opened_and_moved(play: Paced) -> None:
    then = play.later(play.client(producer(1, request=5)))
    play.leave().gives()
    play.due(then).gives(to_broker(producer(1, request=5)))
    play.leave().gives()
    play.broker(producer_success(5)).forwards()
    assert play.leave().words == "discard + inject"
    assert play.state(Action.PRODUCE) is State.MOVING


def test_a_lookup_that_waits_when_the_gateway_stops_is_answered(play: Paced) -> None:
    then = play.later(play.client(lookup(6)))
    play.leave().gives()
    play.due(then).gives(to_broker(lookup(6)))
    play.broker(connect_to(URL_1, 6)).happens()
    assert play.leave().effects is None


# -- connections -------------------------------------------------------------------------------


def paced_services(delay: float | Again | Denial) -> FakeServices:
    services = FakeServices()
    services.paced, services.delay = {Action.CONNECT}, delay
    return services


def test_a_client_waits_before_any_broker_is_asked() -> None:
    services = paced_services(0.5)
    talk = opening(VERIFY, services).client_says(connect())
    talk.waits(0.5).dials(None).said_to_broker()
    talk.broker_says(connected()).tells_client(connected()).opens()
    (asked,) = services.counted
    subject = asked.subject
    assert (asked.action, subject.principal) == (Action.CONNECT, "alice")
    assert (subject.connection, subject.host) == ORIGIN[:2]
    assert (asked.name, subject.topic) == ("", None)


def test_it_is_asked_again_for_a_client_of_which_nothing_is_known_yet() -> None:
    services = paced_services(SOON)
    talk = opening(VERIFY, services).client_says(connect()).waits(0.5)
    services.delay = 0.0
    talk.waits(0.5).dials(None).said_to_broker()
    assert services.again == [None, SOON, SOON]


def test_a_client_without_a_wait_is_let_in_at_once() -> None:
    opening(VERIFY, paced_services(0.0)).client_says(connect()).dials(None).said_to_broker()


def test_a_client_that_would_wait_too_long_is_refused() -> None:
    talk = opening(VERIFY, paced_services(TOO_OFTEN)).client_says(connect())
    told = talk.refused(EndReason.TOO_MANY_CONNECTS).error
    assert (told.error, told.message) == (ServerError.ServiceNotReady, TOO_OFTEN.text)
    assert told.request_id == NO_REQUEST


def test_a_client_without_a_good_credential_counts_for_nobody() -> None:
    services = paced_services(0.5)
    talk = opening(VERIFY, services).client_says(connect(auth_data=b"alice's expired token"))
    talk.refused(EndReason.AUTHENTICATION_FAILED)
    assert services.counted == []


def test_services_are_not_asked_if_no_rule_limits_connections() -> None:
    services = FakeServices()
    opening(VERIFY, services).client_says(connect()).dials(None).said_to_broker()
    assert services.counted == []


def test_a_close_that_is_held_after_its_wait_is_kept(play: Paced) -> None:
    """What opens its producer anew is refused when its time comes, and frames are held by then."""
    play.services.delay = 0.0
    play.client(producer(1, request=5)).forwards()
    play.broker(producer_success(5)).forwards()
    account = play.account
    account.hold()
    play.client(send(1)).holds(account)
    play.services.delay = 2.0
    then = play.later(play.client(producer(1, request=6, topic="persistent://public/default/u")))
    close = close_producer(1, request=7)
    play.client(close).drops()
    assert Hold(account, close) in (play.due(then).effects or ())
