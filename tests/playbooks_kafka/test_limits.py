"""Limits: nothing is held, the next request stays unread, and answers say for how long."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.telemetry.latency import ListenerLatencies, SlowSends
from gateway.wire.account import Account, Action, Right
from gateway.wire.contract import Await, Denial, EndReason, Postpone, Refusal
from gateway.wire.kafka.asking import LONGEST_QUESTION
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.fields import DEAR
from gateway.wire.kafka.names import read_topic
from gateway.wire.kafka.throttle import AT_ONCE, LONGEST_WAIT, LONGEST_WAIT_IN_GROUP, Throttle
from gateway.wire.services import Again, LookupOutcome
from gateway.wire.subject import Caller, Subject
from tests.support.versions import versions

from .frames import (
    FETCH,
    HEARTBEAT,
    METADATA,
    PRODUCE,
    ask,
    batch,
    described,
    fetch,
    fetched,
    known,
    metadata,
    named,
    produce,
    produced,
    tell,
    told,
)
from .script import KafkaServices, Play


def limited(lease: int = 2, **settings: Any) -> Play:
    """Return a pair whose topics get an allowance of so many messages."""
    play = Play(**settings)
    play.services.lease = lease
    return play


# -- what is sent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 9, 12, 13])
def test_the_request_above_a_limit_passes_and_the_next_one_waits_for_the_grant(
    version: int,
) -> None:
    play = limited(known=("a", "b"))
    first, second = produce(version, 1, a=batch(5)), produce(version, 2, a=batch(1))
    behind = metadata(12, 3)
    assert play.client(first, second, behind) == first
    assert play.waits == LONGEST_WAIT
    assert play.awaited == {play.account("a")}
    play.grant(play.account("a"), 10)
    assert play.broker_got() == second + behind


def test_what_is_fetched_above_a_limit_keeps_the_next_fetch_waiting_alone() -> None:
    play = limited()
    play.client(fetch(12, 1, "a"))
    play.broker(fetched(12, 1, a=batch(5)))
    others = produce(9, 2, b=batch(1)) + metadata(12, 3)
    assert play.client(others, fetch(12, 4, "b"), metadata(12, 5)) == others
    assert play.is_waiting
    play.grant(play.account("a"), 10)
    assert play.broker_got() == fetch(12, 4, "b") + metadata(12, 5)


def with_errors(version: int, correlation: int, errors: int) -> bytes:
    """Return a response to Fetch with so many partitions of a topic, which have an error."""
    partitions = [
        {"PartitionIndex": index, "ErrorCode": 3, "Records": None} for index in range(errors)
    ]
    responses = [{**named(version, "a", "Topic"), "Partitions": partitions}]
    return tell(FETCH, version, correlation, Responses=responses)


@pytest.mark.parametrize("version", [0, 4, 7, 12, 13])
def test_errors_in_place_of_messages_are_charged(version: int) -> None:
    """A fetch session repeats them in each response, however short the requests are."""
    play = limited(known=("a",))
    play.client(fetch(version, 1, "a"))
    response = with_errors(version, 1, 1000)
    play.broker(response)
    account = play.account("(refused)")
    assert account.action is Action.CONSUME
    assert account.messages == 0
    assert len(response) / 2 < account.bytes < len(response)
    assert play.account("a").bytes == 0
    account.bytes_ceiling = account.bytes + 1
    play.client(fetch(version, 2, "a"))
    play.broker(with_errors(version, 2, 1))
    others = produce(9, 3, b=batch(1))
    assert play.client(others, fetch(version, 4, "a")) == others
    assert play.awaited == {account}
    play.grant(account)
    assert play.broker_got() == fetch(version, 4, "a")


def test_a_partition_without_news_is_not_charged() -> None:
    play = limited()
    play.client(fetch(4, 1, "a"))
    play.broker(fetched(4, 1, a=b""))
    assert [it.topic for it in play.services.live] == ["a"]


def test_a_grant_that_is_not_enough_has_the_request_wait_on() -> None:
    play = limited()
    both = produce(9, 2, a=batch(1), b=batch(1))
    play.client(produce(9, 1, a=batch(5), b=batch(5)), both)
    play.grant(play.account("a"), 10)
    assert play.broker_got() == b""
    assert play.awaited == {play.account("b")}
    play.grant(play.account("b"), 10)
    assert play.broker_got() == both


def test_a_topic_that_had_its_turn_does_not_wait_again_while_another_one_waits() -> None:
    """Units that are not used for a moment are taken back."""
    play = limited()
    both = produce(9, 2, a=batch(1), b=batch(1))
    play.client(produce(9, 1, a=batch(5), b=batch(5)), both)
    play.grant(play.account("a"), 10)
    play.account("a").hold()
    play.grant(play.account("b"), 10)
    assert play.broker_got() == both


def test_a_request_to_another_topic_does_not_wait() -> None:
    play = limited()
    other = produce(9, 2, b=batch(1))
    assert play.client(produce(9, 1, a=batch(5)), other)[-len(other) :] == other


@pytest.mark.parametrize("in_group", [False, True])
def test_a_request_that_waits_too_long_ends_the_connection_and_does_not_pass(
    in_group: bool,
) -> None:
    play = limited()
    longest = LONGEST_WAIT_IN_GROUP if in_group else LONGEST_WAIT
    if in_group:
        play.client(ask(HEARTBEAT, 4, 9, GroupId="g"))
        play.broker(tell(HEARTBEAT, 4, 9))
    play.client(produce(9, 1, a=batch(5)), produce(9, 2, a=batch(1)), produce(9, 3, a=batch(1)))
    assert play.waits == longest
    play.after(longest - 0.1)
    assert play.end is None
    play.after(0.1)
    assert play.broker_got() == b""
    assert play.ended is EndReason.OVER_LIMIT


def test_the_first_request_to_a_topic_waits_too() -> None:
    """Whoever opens connections, or uses topics, without end has a new account each time."""
    play = limited()
    play.services.lease = 0
    assert play.client(produce(9, 1, a=batch(1))) == b""
    assert play.waits == LONGEST_WAIT
    play.grant(play.account("a"))
    assert play.broker_got() == produce(9, 1, a=batch(1))


@pytest.mark.parametrize("topics", ["a", "ab"])
def test_a_request_waits_until_its_account_has_allowance_for_all_of_it(topics: str) -> None:
    play = limited()
    play.services.lease = 100
    frame = produce(9, 1, **{topic: batch(1) for topic in topics})
    play.client(frame)
    for topic in topics:
        play.account(topic).bytes_ceiling = play.account(topic).bytes + len(batch(1)) - 1
    assert play.client(frame) == b""
    for topic in topics:
        assert play.account(topic).needs >= len(batch(1))
        play.grant(play.account(topic), 0)
    assert play.broker_got() == frame
    assert not any(play.account(topic).needs for topic in topics)


def test_a_topic_that_may_be_lent_a_message_does_not_wait() -> None:
    play = limited()
    play.client(produce(9, 1, a=batch(5)))
    play.services.lending = {play.account("a")}
    play.account("a").messages_ceiling = play.account("a").messages
    assert play.client(produce(9, 2, a=batch(1))) == produce(9, 2, a=batch(1))


def test_a_request_whose_topic_is_revoked_waits_no_longer() -> None:
    play = limited()
    play.client(produce(9, 1, a=batch(5)), produce(9, 2, a=batch(1)))
    before = play.account("a")
    play.revoke(before)
    assert play.broker_got() == produce(9, 2, a=batch(1))
    assert play.awaited == set()
    assert play.account("a") is not before


def test_what_is_fetched_waits_within_its_response_until_its_account_has_had_its_turn() -> None:
    play = limited()
    play.client(fetch(12, 1, "a"), fetch(12, 2, "a"))
    first, second = fetched(12, 1, a=batch(5)), fetched(12, 2, a=batch(5))
    assert play.broker(first, second)[: len(first)] == first
    assert play.account("a").needs == len(batch(5)) + 3, "and tagged fields"
    assert play.awaited == {play.account("a")}
    play.grant(play.account("a"), 10)
    assert play.account("a").messages == 10
    assert not play.account("a").needs


def test_what_is_fetched_ends_the_connection_if_it_waits_too_long() -> None:
    play = limited()
    play.client(fetch(12, 1, "a"), fetch(12, 2, "a"))
    play.broker(fetched(12, 1, a=batch(5)), fetched(12, 2, a=batch(5)))
    play.after(LONGEST_WAIT)
    assert play.ended is EndReason.OVER_LIMIT
    assert play.account("a").messages == 5


@pytest.mark.parametrize("version", versions(known(FETCH).response, 1))
def test_a_fetch_that_waits_too_long_brings_nothing(version: int) -> None:
    play = limited(known=("a",))
    play.client(fetch(version, 1, "a"))
    play.broker(fetched(version, 1, a=batch(5)))
    play.services.due[play.account("a")] = 900.0
    for number in (2, 3):
        play.client(fetch(version, number, "a"))
        play.after(LONGEST_WAIT)
        assert play.broker_got() == b""
        heard = told(FETCH, version, play.client_got())
        assert (heard["ThrottleTimeMs"], heard["Responses"]) == (1000 * LONGEST_WAIT, [])
        assert not heard.get("ErrorCode")
    play.grant(play.account("a"), 10)
    assert play.client(fetch(version, 4, "a")) == fetch(version, 4, "a")


def test_accounts_are_asked_about_some_at_a_time() -> None:
    """A request may have thousands of topics."""
    services = KafkaServices()
    services.lease = 0
    throttle = Throttle(services)
    accounts: list[Account] = []
    for number in range(2 * AT_ONCE):
        account = services.admit(Action.PRODUCE, Subject(Caller(), read_topic(f"t{number}")))
        assert isinstance(account, Account)
        accounts.append(account)
        throttle.lacks(account, 1)
    waits = throttle.wait(throttle.produced, 1000.0)
    assert waits == (*(Await(it) for it in accounts[:AT_ONCE]), Postpone(1000.0 + LONGEST_WAIT))
    services.lending = set(accounts)
    assert throttle.wait(throttle.produced, 1001.0) == (Postpone(1001.0),)
    assert throttle.wait(throttle.produced, 1001.0) is None
    assert not any(account.needs for account in accounts)


# -- what is denied --------------------------------------------------------------------------------


def denying(*topics: str) -> Play:
    services = KafkaServices()
    services.forbidden = {(Right.PRODUCE, topic) for topic in topics}
    play = Play(services)
    play.services.lease = 2
    return play


@pytest.mark.parametrize("topic", ["denied", "no/such/name"])
def test_what_is_sent_to_a_denied_topic_is_charged_and_waits(topic: str) -> None:
    play = denying("denied")
    said = batch(5)
    assert play.client(produce(9, 1, **{topic: said}), produce(9, 2, **{topic: said})) == b""
    error = told(PRODUCE, 9, play.client_got())["Responses"][0]["PartitionResponses"][0]
    assert error["ErrorCode"] in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC)
    account = play.account("(refused)")
    assert (account.messages, account.bytes, account.outstanding) == (5, len(said), 0)
    assert play.waits == LONGEST_WAIT
    play.grant(account, 10)
    assert play.client_got()
    assert (account.messages, account.bytes) == (10, 2 * len(said))
    assert play.broker_got() == b""


def test_what_is_denied_beside_other_topics_is_charged_alone() -> None:
    play = denying("denied")
    play.client(produce(9, 1, a=batch(1), denied=batch(2)))
    assert play.account("a").messages == 1
    assert play.account("(refused)").messages == 2


def test_what_is_denied_is_charged_though_it_awaits_no_response() -> None:
    play = denying("denied")
    play.client(produce(9, 1, 0, denied=batch(2)))
    assert play.account("(refused)").messages == 2
    assert play.ended is EndReason.OPERATOR_CLOSED


def test_no_topic_has_the_account_of_what_is_denied() -> None:
    play = denying("denied")
    play.client(produce(9, 1, denied=batch(1)))
    assert play.client(produce(9, 2, **{"(refused)": batch(1)})) == b""
    play.close()
    assert not play.services.live


# -- what answers say ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(known(PRODUCE).response, 3))
@pytest.mark.parametrize(("due", "expected"), [(0.0, 0), (0.0015, 2), (3.0, 3000), (900.0, 20_000)])
def test_the_answer_says_for_how_long_the_client_is_held(
    version: int, due: float, expected: int
) -> None:
    play = limited(known=("a",))
    play.client(produce(version, 1, a=batch(5)))
    play.services.due[play.account("a")] = due
    said = produced(version, 1, a=0)
    heard = play.broker(said)
    assert len(heard) == len(said)
    assert told(PRODUCE, version, heard)["ThrottleTimeMs"] == expected


def test_a_broker_that_says_more_is_believed() -> None:
    play = limited()
    play.client(produce(9, 1, a=batch(5)))
    play.services.due[play.account("a")] = 1.0
    heard = play.broker(tell(PRODUCE, 9, 1, ThrottleTimeMs=7000))
    assert told(PRODUCE, 9, heard)["ThrottleTimeMs"] == 7000


def test_an_answer_below_the_limit_says_nothing() -> None:
    play = Play()
    play.client(produce(9, 1, a=batch(5)))
    said = produced(9, 1, a=0)
    assert play.broker(said) == said


FETCHES = versions(known(FETCH).response, 1)  # those that state for how long


@pytest.mark.parametrize("version", FETCHES)
@pytest.mark.parametrize(("due", "expected"), [(0.0, 0), (0.0015, 2), (3.0, 3000), (900.0, 20_000)])
def test_what_was_fetched_above_a_limit_says_it_too(
    version: int, due: float, expected: int
) -> None:
    play = limited(known=("a",))
    play.client(fetch(version, 1, "a"))
    for_whom = play.broker(fetched(version, 1, a=batch(1)))
    assert told(FETCH, version, for_whom)["ThrottleTimeMs"] == 0
    play.services.due[play.account("a")] = due
    play.client(fetch(version, 2, "a"))
    said = fetched(version, 2, a=batch(5))
    heard = play.broker(said)
    assert len(heard) == len(said)
    assert told(FETCH, version, heard)["ThrottleTimeMs"] == expected


@pytest.mark.parametrize("version", FETCHES)
def test_a_fetched_answer_that_is_cut_says_what_is_owed_of_those_before(version: int) -> None:
    """Its head has gone when its messages come."""
    play = limited(known=("a", "b"))
    play.client(fetch(version, 1, "a"), fetch(version, 2, "b"), fetch(version, 3, "b"))
    for number, expected in ((1, 0), (2, 3000)):
        said = fetched(version, number, a=batch(5))
        heard = play.broker(said[:40]) + play.broker(said[40:])
        if len(heard) < len(said):
            play.grant(play.account("a"), 10)
            heard += play.client_got()
        assert told(FETCH, version, heard)["ThrottleTimeMs"] == expected
        play.services.due[play.account("a")] = 3.0


def test_in_a_group_nobody_is_told_to_be_silent_for_long() -> None:
    play = limited()
    play.client(ask(HEARTBEAT, 4, 9, GroupId="g"))
    play.broker(tell(HEARTBEAT, 4, 9))
    play.client(produce(9, 1, a=batch(5)))
    play.services.due[play.account("a")] = 900.0
    heard = told(PRODUCE, 9, play.broker(produced(9, 1, a=0)))
    assert heard["ThrottleTimeMs"] == 1000 * LONGEST_WAIT_IN_GROUP


# -- lookups ---------------------------------------------------------------------------------------


def paced(delay: float | Again | Denial) -> Play:
    services = KafkaServices()
    services.paced = {Action.LOOKUP}
    services.delay = delay
    return Play(services)


def test_a_lookup_waits_for_its_rate_and_is_counted_once() -> None:
    play = paced(2.0)
    assert play.client(metadata(12, 1), metadata(12, 2)) == b""
    assert play.waits == 2.0
    play.after(2.0)
    assert play.broker_got() == metadata(12, 1)
    assert len(play.services.counted) == 2, "the second one is counted by now"


def test_a_lookup_asks_again_when_it_is_told_to() -> None:
    again = Again(0.5, 0.0)
    play = paced(again)
    play.client(metadata(12, 1))
    play.services.delay = 0.0
    play.after(0.5)
    assert play.broker_got() == metadata(12, 1)
    assert play.services.again == [None, again]


def test_a_lookup_that_would_wait_too_long_is_refused_topic_by_topic() -> None:
    play = paced(Denial(Refusal.TOO_OFTEN, "no"))
    assert play.client(metadata(12, 1, "a", "b")) == b""
    heard = told(METADATA, 12, play.client_got())
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert [(it["Name"], it["ErrorCode"]) for it in heard["Topics"]] == [("a", code), ("b", code)]
    assert play.services.outcomes == {LookupOutcome.REFUSED: 1}


@pytest.mark.parametrize("key", sorted(DEAR))
def test_a_request_for_all_that_a_cluster_has_counts_as_a_lookup(key: int) -> None:
    """Its response may describe thousands of topics, groups or settings."""
    play = paced(2.0)
    frame = ask(key, known(key).request.last)
    assert play.client(frame) == b""
    assert play.waits == 2.0
    play.after(2.0)
    assert play.broker_got() == frame


def test_the_answer_to_a_lookup_is_timed() -> None:
    services = KafkaServices()
    services.tenants = ListenerLatencies(SlowSends(lambda: 0.0))
    play = Play(services)
    play.client(metadata(12, 1))
    play.now += 0.2
    play.broker(described(12, 1))
    assert services.tenants.of("", proven=True).lookup.seconds == pytest.approx(0.2)


def _owing(play: Play) -> Account:
    """Have a response wait; return the account, whose grant is awaited."""
    play.services.lease = 1
    play.client(fetch(12, 1, "b"), fetch(12, 2, "b"))
    play.broker(fetched(12, 1, b=batch(2)), fetched(12, 2, b=batch(2)))
    return play.account("b")


def test_a_grant_does_not_have_a_lookup_go_on_before_its_time() -> None:
    play = paced(0.0)
    account = _owing(play)
    play.services.delay = 5.0
    play.client(metadata(12, 3))
    play.grant(account, 100)
    assert play.broker_got() == b""
    play.after(5.0)
    assert play.broker_got() == metadata(12, 3)


def test_a_lookup_whose_topics_must_be_asked_for_is_counted_once() -> None:
    play = paced(0.0)
    play.services.forbidden = set()
    play.services.undecided = {"a"}
    play.client(metadata(12, 1, "a"))
    play.finish()
    assert play.broker_got() == metadata(12, 1, "a")
    assert len(play.services.counted) == 1


def test_a_lookup_that_waits_for_its_rate_and_for_rights_is_counted_once() -> None:
    play = paced(1.0)
    play.services.forbidden = set()
    play.services.undecided = {"a"}
    play.client(metadata(12, 1, "a"))
    play.after(1.0)
    assert play.broker_got() == b""
    play.after(LONGEST_QUESTION)
    assert len(play.broker_got()) == len(metadata(12, 1, "a"))
    assert len(play.services.counted) == 1


def test_lookups_that_are_answered_are_counted() -> None:
    play = Play()
    play.client(metadata(12, 1), metadata(12, 2))
    play.broker(described(12, 1), described(12, 2))
    assert play.services.outcomes == {LookupOutcome.CONNECT: 2}


def test_fetches_are_not_counted_twice_when_they_wait() -> None:
    play = limited()
    play.client(fetch(12, 1, "a"))
    play.broker(fetched(12, 1, a=batch(3)))
    play.client(fetch(12, 2, "a"))
    play.grant(play.account("a"), 100)
    said = tell(FETCH, 12, 2)
    assert play.broker(said) == said
    assert play.account("a").messages == 3


@pytest.mark.parametrize(("size", "most"), [(39, 100 * 100), (1_000_000, 1_000_000)])
def test_a_batch_cannot_state_any_number_of_messages(size: int, most: int) -> None:
    """All others under the client's limit wait for what it is charged."""
    play = Play()
    play.client(produce(9, 1, a=batch((1 << 31) - 1, size)))
    assert play.account("a").messages == most
