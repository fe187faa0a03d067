"""Permits of consumers under a limit: passed on as their messages may come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account, Action, Burst
from gateway.wire.contract import (
    Attend,
    Await,
    Direction,
    Drop,
    Forward,
    Inject,
    Later,
    Pause,
    Replace,
)
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.commands import IN_USE
from gateway.wire.pulsar.counts import MOST
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.permits import (
    AT_ONCE,
    LEAST_SIZE,
    MOST_PERMITS,
    QUIET,
    ConsumerPermits,
    flow,
)
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.throttle import FAR_BYTES, FAR_MESSAGES, LONGEST, SHORTEST
from tests.support.subjects import subject_of

from .frames import close_consumer, error, frame, message, read, subscribe, success, unsubscribe
from .script import Outcome, Play, at


@pytest.fixture
def play() -> Play:
    return limited()


def limited(play: Play | None = None) -> Play:
    """A consumer that is open, and has no allowance."""
    play = play or Play(limited=True)
    play.client(subscribe(1)).forwards()
    play.broker(success(1)).forwards()
    play.account.hold()
    return play


def asks(play: Play, permits: int) -> Outcome:
    return play.client(flow(1, permits))


def gets(play: Play, messages: int = 1, size: int = 100) -> None:
    """The broker delivers so many, whatever passed."""
    play.account.messages += messages
    play.account.bytes += messages * size


def delivered(play: Play, now: float = 0.0) -> list[int]:
    """The permits that go on after a delivery."""
    effects = play.session.delivered(now)
    assert effects is not None
    return [passed for effect in effects if (passed := _permits(effect))]


def _permits(effect: object) -> int:
    if not isinstance(effect, Inject):
        return 0
    assert effect.direction is Direction.TO_BROKER
    return read(effect.data).flow.messagePermits


def test_without_limits_in_the_configuration_flow_passes_unseen() -> None:
    play = Play()
    play.client(subscribe(1)).happens()
    asks(play, 1000).passes()


def test_an_unlimited_consumer_gets_its_permits_at_once() -> None:
    play = Play(limited=True)
    play.client(subscribe(1)).happens()
    play.broker(success(1)).happens()
    asks(play, 1000).forwards()
    assert play.session.delivered(0.0) is None


def test_permits_of_a_consumer_that_is_not_known_go_nowhere() -> None:
    asks(Play(limited=True), 1000).drops()


def test_the_first_permit_goes_alone(play: Play) -> None:
    asks(play, 1000).gives(Replace(flow(1, 1)), Attend())
    asks(play, 500).gives(Drop(), Attend())
    assert delivered(play) == []


def test_a_single_permit_goes_as_it_came(play: Play) -> None:
    asks(play, 1).forwards()
    assert play.session.delivered(0.0) is None


def test_after_the_first_message_as_many_go_as_are_allowed(play: Play) -> None:
    asks(play, 1000).happens()
    play.account.grant(20)
    gets(play)
    assert delivered(play) == [19]
    gets(play, 9)
    assert delivered(play) == []
    play.account.grant(5)
    assert delivered(play) == [5]


def test_a_consumer_without_allowance_awaits_it(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play)
    assert play.session.delivered(0.0) == (Await(play.account),)
    play.account.grant(11)
    assert delivered(play) == [10]


def test_a_consumer_without_allowance_asks_services(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play)
    play.services.lending.add(play.account)
    play.account.grant(1)
    assert delivered(play) == [1]


def test_a_queue_of_one_has_its_permit_at_once(play: Play) -> None:
    play.account.grant(100)
    for _ in range(50):
        asks(play, 1).forwards()
        gets(play)


def test_a_batch_is_waited_for_as_long_as_it_costs(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play, 100)
    assert play.session.delivered(0.0) == (Await(play.account),)
    play.account.grant(100)
    assert delivered(play) == []
    play.account.grant(10)
    assert delivered(play) == [109], "the broker is 99 below zero"


def with_bytes(size: int, play: Play | None = None) -> Play:
    """A consumer that asked for a thousand, and may have so many bytes and any number of
    messages."""
    play = play or limited()
    asks(play, 1000).happens()
    play.account.grant(messages=1 << 40, size=size)
    return play


def test_bytes_are_as_many_messages_as_came_before() -> None:
    play = with_bytes(1100 + 10_000)
    gets(play, 100, size=100)
    assert delivered(play) == [11 + 99], "the broker is 99 below zero"


def test_under_a_limit_of_bytes_permits_double_with_each_delivery() -> None:
    play = with_bytes(1 << 40)
    for permits in (1, 2, 4, 8, 16):
        gets(play, permits - permits // 2)
        assert delivered(play) != []
        assert outstanding(play) <= play.account.messages
    gets(play, outstanding(play))
    assert outstanding(play) == 0
    delivered(play)
    assert outstanding(play) == play.account.messages


def outstanding(play: Play) -> int:
    """The permits of the latest consumer that the broker has."""
    permits = play.session.incarnations._permits
    assert permits is not None
    return permits._all[play.account].outstanding


def test_a_large_message_counts_more_than_the_tiny_ones_before_it() -> None:
    play = with_bytes(20_000_000)
    asks(play, 10_000).happens()
    gets(play, 500, size=100)
    delivered(play)
    before = outstanding(play)
    gets(play, 1, size=5_000_000)
    delivered(play)
    gets(play, before - 1, size=100)
    delivered(play)
    assert outstanding(play) < 100 < before


def test_a_large_message_is_forgotten_some_hundreds_of_messages_later() -> None:
    play = with_bytes(50_000_000)
    asks(play, 100_000).happens()
    gets(play, 500, size=100)
    gets(play, 1, size=5_000_000)
    delivered(play)
    for _ in range(6):
        gets(play, max(100, outstanding(play)), size=100)
        delivered(play)
    assert outstanding(play) > 1000


def test_a_permit_waits_until_a_frame_like_those_before_is_paid_for(play: Play) -> None:
    """Otherwise one would go for a byte of allowance, for each of many consumers."""
    asks(play, 1000).happens()
    gets(play, 1, size=1_000_000)
    play.account.grant(messages=1 << 40, size=1_000_010)
    assert delivered(play) == []
    assert play.account.needs == 1_000_000
    play.account.grant(messages=0, size=999_990)
    assert delivered(play) == [1]


def test_a_consumer_that_is_limited_later_keeps_its_permits() -> None:
    play = Play(limited=True)
    play.client(subscribe(1)).happens()
    play.broker(success(1)).happens()
    asks(play, 1000).forwards()
    gets(play, 400)
    play.account.hold()
    asks(play, 500).gives(Drop(), Await(play.account), Attend())
    play.account.grant(7)
    assert delivered(play) == [7]


def test_a_consumer_without_a_limit_any_more_gets_all_waiting_permits(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play)
    play.account.grant()
    assert delivered(play) == [999]
    assert play.session.delivered(0.0) is None
    asks(play, 500).forwards()


@pytest.mark.parametrize("ends", ["client", "broker"])
def test_permits_die_with_their_incarnation(play: Play, ends: str) -> None:
    asks(play, 1000).happens()
    before = play.account
    match ends:
        case "client":
            play.client(close_consumer(1, request=2)).happens()
            play.broker(success(2)).happens()
        case _:
            play.broker(close_consumer(1)).happens()
    before.messages += 1
    before.grant()
    assert play.session.delivered(0.0) is None


def test_the_next_incarnation_begins_with_one_permit(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play)
    play.broker(close_consumer(1)).happens()
    play.client(subscribe(1, request=2)).happens()
    play.broker(success(2)).happens()
    play.account.hold()
    asks(play, 1000).gives(Replace(flow(1, 1)), Attend())


# -- permits count from SUCCESS on -------------------------------------------------------------


def opening(request: int = 1) -> Play:
    """A consumer that is being opened, and has an allowance."""
    play = Play(limited=True)
    play.client(subscribe(1, request=request)).forwards()
    play.account.grant(100_000 - play.account.messages_ceiling)
    return play


def test_a_permit_before_success_is_not_taken_for_one_that_the_broker_has() -> None:
    """Go with a queue of nothing asks while it subscribes again, and once more behind SUCCESS. The
    broker ignores the first one: it has not opened the consumer."""
    play = opening()
    asks(play, 1).drops()
    play.broker(success(1)).forwards()
    asks(play, 1).forwards()
    for _ in range(3):
        gets(play)
        asks(play, 1).forwards()


def test_many_permits_before_success_let_no_more_through_than_the_limit() -> None:
    """The broker may have opened the consumer before we hear of it, and count them."""
    play = opening()
    play.account.hold()
    for _ in range(5):
        asks(play, 1000).drops()
    play.broker(success(1)).forwards()
    asks(play, 1000).gives(Replace(flow(1, 1)), Attend())


def test_permits_before_success_pass_where_nothing_limits_them() -> None:
    play = Play(limited=True)
    play.client(subscribe(1)).forwards()
    asks(play, 1000).forwards()


def test_a_permit_behind_a_refused_unsubscribe_waits_for_success_too() -> None:
    play = opening()
    play.client(unsubscribe(1, request=2)).forwards()
    play.broker(error(2)).forwards()
    asks(play, 1).drops()
    play.broker(success(1)).forwards()
    asks(play, 1).forwards()


def test_permits_of_an_open_consumer_live_through_another_subscribe(play: Play) -> None:
    """The broker says SUCCESS and goes on with the consumer that it has."""
    asks(play, 10).happens()
    play.client(subscribe(1, request=2)).happens()
    play.account.grant(100_000 - play.account.messages_ceiling)
    play.broker(success(2)).gives(Forward(), Attend())
    assert delivered(play) == [], "the broker has one permit"
    gets(play)
    assert delivered(play) == [9]


def test_no_number_of_subscribes_raises_what_the_broker_has(play: Play) -> None:
    asks(play, 1).forwards()
    for request in range(2, 50):
        play.client(subscribe(1, request=request)).happens()
        play.account.hold()
        asks(play, 1).drops()
        play.broker(success(request)).gives(Forward(), Attend())
        assert delivered(play) == []


def test_a_refused_unsubscribe_raises_it_no_more(play: Play) -> None:
    """The broker keeps the consumer with its permits, which nobody knows before its response."""
    asks(play, 1).forwards()
    play.client(unsubscribe(1, request=2)).forwards()
    refused = error(3, ServerError.ServiceNotReady, IN_USE.text)
    play.client(subscribe(1, request=3)).refuses(refused)
    play.broker(error(2)).forwards()
    asks(play, 1).gives(Drop(), Attend())


def test_permits_between_subscribe_and_success_wait_where_the_broker_counts_them(
    play: Play,
) -> None:
    play.client(subscribe(1, request=2)).happens()
    play.account.grant(100_000 - play.account.messages_ceiling)
    asks(play, 5).drops()
    assert delivered(play) == []
    first = Inject(Direction.TO_BROKER, flow(1, 1))
    play.broker(success(2)).gives(Forward(), first, Attend())
    gets(play)
    assert delivered(play) == [4]


def test_permits_die_when_the_consumer_was_closed_before_it_is_subscribed_again(
    play: Play,
) -> None:
    """The close crosses the second SUBSCRIBE: what the client asked for before it is lost."""
    asks(play, 1).forwards()
    play.client(subscribe(1, request=2)).happens()
    play.account.grant(100_000 - play.account.messages_ceiling)
    asks(play, 5).drops()
    play.broker(close_consumer(1)).forwards()
    play.broker(success(2)).forwards()
    asks(play, 1).forwards()


def test_a_refused_second_subscribe_leaves_no_way_around_the_limit(play: Play) -> None:
    """The broker goes on with the consumer, of which the client was told that it is not open."""
    account = play.account
    asks(play, 1000).happens()
    play.client(subscribe(1, request=2)).forwards()
    play.broker(error(2)).happens()
    assert (play.state(Action.CONSUME), play.services.live) == (State.OPEN, [account])
    play.broker(message(1)).passes()
    assert account.messages == 1


def test_what_an_abandoned_consumer_gets_still_counts(play: Play) -> None:
    """The broker may open a consumer after the client has closed it, and has its permits then."""
    account = play.account
    play.client(close_consumer(1, request=2)).happens()
    play.client(subscribe(1, request=3)).happens()
    account = play.account
    play.broker(error(3)).happens()
    assert play.state(Action.CONSUME) is State.ABANDONED
    play.broker(message(1)).passes()
    assert account.messages == 1
    assert play.services.live == [account]
    asks(play, 1000).drops()


def test_a_second_subscribe_that_is_refused_leaves_the_first_one() -> None:
    """Two in a row: the broker refuses the second one, and opens the consumer by the first one."""
    play = opening()
    account = play.account
    play.client(subscribe(1, request=2)).forwards()
    play.broker(error(2)).forwards()
    play.broker(success(1)).forwards()
    asks(play, 1000).happens()
    assert (play.state(Action.CONSUME), play.services.live) == (State.OPEN, [account])


# ----------------------------------------------------------------------------------------------


def test_consumers_of_a_connection_wait_apart() -> None:
    play = limited()
    first = play.account
    asks(play, 1000).happens()
    play.client(subscribe(2, request=2)).happens()
    play.broker(success(2)).happens()
    play.client(flow(2, 1000)).forwards()
    assert play.account is not first
    assert not first.is_endless


def test_what_is_batched_in_part_is_forgotten_beyond_a_batch() -> None:
    account = Account(Action.CONSUME, subject_of("t"))
    account.hold()
    consumer = ConsumerPermits(1, account)
    consumer.want(10**7)
    assert consumer.take(0.0) == 1
    account.messages += 3 * MOST  # of which the broker charged a few
    account.grant(account.messages + 5)
    assert consumer.take(0.0) == MOST + 5


def test_a_debt_of_the_broker_lives_through_another_subscribe(play: Play) -> None:
    """The broker has 99 permits less than none, and goes on with them."""
    asks(play, 1000).happens()
    gets(play, 100)
    play.client(subscribe(1, request=2)).happens()
    play.account.hold()
    play.broker(success(2)).gives(Forward(), Await(play.account), Attend())
    play.account.grant(100 + 10)
    assert delivered(play) == [109]


# -- nothing comes -----------------------------------------------------------------------------


def silent(play: Play) -> Play:
    """A consumer that got a message, and nothing of the ten more that it may have."""
    asks(play, 1000).happens()
    gets(play)
    play.account.grant(11)
    effects = play.delivered()
    assert effects == (
        Inject(Direction.TO_BROKER, flow(1, 10)),
        at(QUIET),
    )
    return play


def passed_when_asked(play: Play, now: float) -> list[int]:
    """The permits that go on when the session is asked again, as it wished."""
    effects = play.goes_on(-1, now)
    return [passed for effect in effects if (passed := _permits(effect))]


def test_when_nothing_comes_permits_go_twice_as_many_each_time(play: Play) -> None:
    silent(play)
    passed = [sum(passed_when_asked(play, n * QUIET)) for n in range(1, 15)]
    assert passed[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 245]
    assert sum(passed) == 500, "half of what the client has room for"


def test_nobody_is_looked_for_when_there_is_nothing_more_to_try(play: Play) -> None:
    silent(play)
    for n in range(1, 10):
        play.goes_on(-1, n * QUIET)
    assert play.goes_on(-1, 100.0) == ()


def test_whoever_gets_messages_is_not_doubted(play: Play) -> None:
    silent(play)
    gets(play)
    assert delivered(play, QUIET - 1) == []
    assert passed_when_asked(play, QUIET) == []
    assert passed_when_asked(play, 2 * QUIET) == [1]


def test_whoever_has_no_allowance_is_not_doubted(play: Play) -> None:
    silent(play)
    play.account.hold()
    assert passed_when_asked(play, QUIET) == []


def test_whoever_never_got_anything_is_not_doubted(play: Play) -> None:
    """A broker's first read takes permits for batches."""
    asks(play, 1000).happens()
    play.account.grant(100)
    assert delivered(play, 1000.0) == []
    assert play.laters == []


def test_who_asks_for_more_than_it_has_room_for_got_more_than_was_counted(play: Play) -> None:
    """A batch of 600 was counted as one message, and the client asks again for all of it."""
    silent(play)
    asks(play, 600).happens()
    passed = [sum(passed_when_asked(play, n * QUIET)) for n in range(1, 8)]
    assert passed[:5] == [10, 20, 40, 80, 160]
    assert sum(passed) == 599


# -- far beyond the limit ------------------------------------------------------------------------


def far_beyond() -> Play:
    """A consumer that has permits and got large messages by them."""
    play = with_bytes(100_000)
    gets(play, 100, size=100)
    assert delivered(play)
    gets(play, 2, size=FAR_BYTES)
    return play


def stopped_until(play: Play, now: float) -> float | None:
    """Until when the client's connection is stopped, if it is."""
    effects = play.session.delivered(now) or ()
    pauses = [effect for effect in effects if isinstance(effect, Pause)]
    assert all(it.direction is Direction.TO_CLIENT for it in pauses)
    return pauses[0].until if pauses else None


def test_who_got_far_more_than_it_may_is_stopped_for_a_while() -> None:
    play = far_beyond()
    assert stopped_until(play, 1.0) == 1.0 + SHORTEST
    assert stopped_until(play, 1.05) is None, "it is stopped"


def test_it_is_stopped_again_when_more_came_and_longer_each_time() -> None:
    play = far_beyond()
    now, seconds = 1.0, []
    for _ in range(8):
        until = stopped_until(play, now)
        assert until is not None
        seconds.append(round(until - now, 3))
        now = until
        assert stopped_until(play, now) is None, "something must pass before"
        gets(play, 1, size=1000)
    assert seconds == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LONGEST, LONGEST]
    now += 2 * LONGEST
    assert stopped_until(play, now) == now + SHORTEST


def test_it_is_not_stopped_where_its_limit_has_room() -> None:
    play = far_beyond()
    play.services.lending.add(play.account)
    play.account.grant(size=100 * FAR_BYTES)
    assert stopped_until(play, 1.0) is None


def test_one_message_of_any_size_stops_nobody() -> None:
    play = with_bytes(100)
    gets(play, 1, size=10 * FAR_BYTES)
    assert stopped_until(play, 1.0) is None


def test_whose_permits_are_all_with_the_broker_is_stopped_too() -> None:
    play = limited()
    asks(play, 1).forwards()
    play.account.grant(messages=1000, size=100_000)
    gets(play, 100, size=100)
    asks(play, 120).gives(Forward(), Attend())
    gets(play, 3, size=FAR_BYTES)
    assert stopped_until(play, 1.0) == 1.0 + SHORTEST


def test_large_batches_stop_who_got_far_more_messages_than_it_may(play: Play) -> None:
    asks(play, 1000).happens()
    gets(play)
    play.account.grant(11)
    assert delivered(play) == [10]
    gets(play, FAR_MESSAGES)
    assert stopped_until(play, 1.0) is None
    gets(play, FAR_MESSAGES)
    assert stopped_until(play, 1.0) == 1.0 + SHORTEST


def test_whoever_is_closed_stops_nobody() -> None:
    play = far_beyond()
    play.broker(close_consumer(1)).happens()
    assert play.session.delivered(1.0) is None


def test_of_many_those_far_beyond_are_found() -> None:
    """Whoever is not looked at this time is the next time."""
    play = Play(limited=True)
    many = 3 * AT_ONCE
    for id in range(many):
        play.client(subscribe(id, request=id)).forwards()
        play.account.hold()
        play.broker(success(id)).happens()
        play.account.messages += 1
        play.account.grant(100)
        play.client(flow(id, 50)).happens()
    play.account.messages += 2 * FAR_MESSAGES
    assert any(stopped_until(play, now) for now in range(3))


# -- the first permit ----------------------------------------------------------------------------


def test_the_first_permit_waits_while_a_limit_owes_much(play: Play) -> None:
    play.services.in_debt.add(play.account)
    asks(play, 1000).gives(Drop(), Await(play.account), Attend())
    assert play.session.delivered(0.0) == (Await(play.account),)
    play.account.grant(5)
    assert delivered(play) == [1]


def test_the_first_permit_goes_when_the_debt_is_paid(play: Play) -> None:
    play.services.in_debt.add(play.account)
    asks(play, 1000).happens()
    play.services.in_debt.clear()
    assert delivered(play) == [1]


def test_who_has_its_first_permit_awaits_nothing(play: Play) -> None:
    asks(play, 1000).happens()
    play.services.in_debt.add(play.account)
    asks(play, 500).gives(Drop(), Attend())
    assert play.session.delivered(0.0) == ()


def test_no_flow_has_more_than_brokers_can_read() -> None:
    account = Account(Action.CONSUME, subject_of("t"))
    account.hold()
    consumer = ConsumerPermits(1, account)
    consumer.want(3 * MOST_PERMITS)
    account.messages = 1
    account.grant()
    assert [consumer.take(0.0) for _ in range(4)][:3] == [MOST_PERMITS] * 3


ASKED = st.tuples(st.just("ask"), st.integers(1, 1000))
SENT = st.tuples(st.just("deliver"), st.integers(1, 100))
GRANTED = st.tuples(st.just("grant"), st.integers(1, 100))


@given(st.lists(st.one_of(ASKED, SENT, GRANTED), max_size=60))
def test_permits_are_neither_lost_nor_invented(events: list[tuple[str, int]]) -> None:
    """The model broker sends while it has permits, whole batches; ours and the client's agree."""
    account = Account(Action.CONSUME, subject_of("t"))
    account.hold()
    consumer, asked, passed = ConsumerPermits(1, account), 0, 0
    for event, number in events:
        match event:
            case "ask":
                asked += number
                consumer.want(number)
            case "grant":
                account.grant(number)
            case _:
                if passed > account.messages:
                    account.messages += number
        passed += consumer.take(0.0)
        assert passed + consumer.wanted == asked
        assert passed - account.messages <= max(1, account.messages_ceiling - account.messages)
    account.grant()
    if not account.messages and passed:
        account.messages += 1
    passed += consumer.take(0.0) + consumer.take(0.0)
    assert passed == asked or not account.messages


def test_flow_is_what_clients_write() -> None:
    assert flow(3, 7) == frame(Kind.FLOW, consumer_id=3, messagePermits=7)


def test_many_consumers_are_looked_at_some_at_a_time() -> None:
    """A delivery costs the same however many consumers wait, and none is forgotten."""
    play = Play(limited=True)
    many = 3 * AT_ONCE + 5
    for id in range(many):
        play.client(subscribe(id, request=id)).forwards()
        play.account.hold()
        play.broker(success(id)).happens()
        play.client(flow(id, 1000)).happens()
    for account in play.services.admitted:
        account.messages += 1
        account.grant(10)
    asked = set[bytes]()
    effects = play.session.delivered(0.0) or ()
    rounds = 0
    while effects:
        rounds += 1
        injected = [effect.data for effect in effects if isinstance(effect, Inject)]
        assert len(injected) <= AT_ONCE
        asked.update(injected)
        later = [it for it in effects if isinstance(it, Later) and not it.until]
        effects = later[0].then(0.0) if later else ()
    assert rounds == 4
    assert len(asked) == many


# -- topics that are not persistent ----------------------------------------------------------------

UNKEPT = "non-persistent://public/default/t"


@pytest.fixture
def unkept() -> Play:
    """A consumer of a topic whose broker drops what comes while there are no permits."""
    play = Play(limited=True)
    play.client(subscribe(1, topic=UNKEPT)).forwards()
    play.broker(success(1)).forwards()
    play.account.hold()
    return play


def test_permits_of_a_topic_that_is_not_persistent_run_ahead(unkept: Play) -> None:
    """Whatever waited here would lose a message that no limit stands against."""
    asks(unkept, 1000).gives(Forward(), Attend())
    asks(unkept, 500).gives(Forward(), Attend())
    unkept.account.grant(20)
    gets(unkept, 10)
    asks(unkept, 500).gives(Forward(), Attend())


def test_without_allowance_permits_wait_and_then_all_go(unkept: Play) -> None:
    asks(unkept, 1000).happens()
    unkept.account.grant(20)
    gets(unkept, 500)
    asks(unkept, 500).gives(Drop(), Await(unkept.account), Attend())
    unkept.account.grant(490)
    assert delivered(unkept) == [500]


def test_permits_that_run_ahead_wait_while_a_limit_owes_much(unkept: Play) -> None:
    unkept.services.in_debt.add(unkept.account)
    asks(unkept, 1000).gives(Drop(), Await(unkept.account), Attend())
    unkept.account.grant(1)
    assert delivered(unkept) == [1000]


def test_a_limit_of_bytes_holds_no_permit_back_either(unkept: Play) -> None:
    asks(unkept, 1000).happens()
    unkept.account.grant(1 << 30, 10_000)
    gets(unkept, 5, 1000)
    asks(unkept, 500).gives(Forward(), Attend())


def test_no_more_permits_run_ahead_than_may_come_at_once(unkept: Play) -> None:
    """Whatever a client asks for: its limit forgives what it cannot owe."""
    unkept.services.bursts = Burst(300, ENDLESS)
    asks(unkept, 1_000_000).gives(Replace(flow(1, 300)), Attend())
    unkept.account.grant(100)
    gets(unkept, 60)
    assert delivered(unkept) == [60]


def test_a_limit_without_a_burst_lets_one_permit_go(unkept: Play) -> None:
    unkept.services.bursts = Burst(0, ENDLESS)
    asks(unkept, 1000).gives(Replace(flow(1, 1)), Attend())


def test_under_a_limit_of_bytes_so_many_run_ahead_as_fit(unkept: Play) -> None:
    unkept.services.bursts = Burst(ENDLESS, 100 * LEAST_SIZE)
    asks(unkept, 1000).gives(Replace(flow(1, 100)), Attend())
    unkept.account.grant(1 << 30, 1 << 30)
    gets(unkept, 100, 10 * LEAST_SIZE)
    unkept.account.messages_ceiling = unkept.account.messages + 1
    assert delivered(unkept) == [10]


def test_who_got_nothing_runs_no_further_ahead_while_its_limit_owes_much(unkept: Play) -> None:
    asks(unkept, 1000).happens()
    unkept.services.in_debt.add(unkept.account)
    asks(unkept, 500).gives(Drop(), Await(unkept.account), Attend())
