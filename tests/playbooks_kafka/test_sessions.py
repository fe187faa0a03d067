"""Fetch sessions and share sessions: no connection uses another's, and none outlives a right."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.contract import EndReason
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.session import SWEPT
from gateway.wire.kafka.sessions import MOST
from tests.support.versions import by_version

from .frames import (
    FETCH,
    SHARE_FETCH,
    ask,
    asked,
    batch,
    described,
    fetch,
    fetched,
    id_of,
    known,
    named,
    produce,
    tell,
    told,
)
from .script import KafkaServices, Play

SHARE_ACKNOWLEDGE = 79
WITH_SESSIONS = [(FETCH, it) for it in range(7, known(FETCH).request.last + 1)]
SESSION = 77


def guarded(*forbidden: str) -> KafkaServices:
    services = KafkaServices()
    services.forbidden = {(Right.CONSUME, name) for name in forbidden}
    return services


def within(version: int, session: int, epoch: int = 1, correlation: int = 2) -> bytes:
    """Return a fetch of what the session has."""
    fields: dict[str, Any] = {"SessionId": session, "SessionEpoch": epoch, "Topics": []}
    return ask(FETCH, version, correlation, MaxWaitMs=500, **fields)


def given(version: int, correlation: int, session: int, **topics: bytes) -> bytes:
    """Return a response that belongs to a session."""
    said = told(FETCH, version, fetched(version, correlation, **topics))
    return tell(FETCH, version, correlation, **{**said, "SessionId": session})


def begun(version: int, services: KafkaServices | None = None, piece: int = 100_000) -> Play:
    """Return a connection to which a broker gave a session for topic a."""
    play = Play(services, known=("a",))
    said = fetch(version, 1, "a")
    assert play.client(said) == said
    response = given(version, 1, SESSION, a=batch(2))
    heard = b"".join(
        play.broker(response[at : at + piece]) for at in range(0, len(response), piece)
    )
    assert heard == response
    return play


# -- fetch sessions --------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), by_version(WITH_SESSIONS))
@pytest.mark.parametrize("epoch", [-2, 1, 5])
def test_a_session_of_another_connection_is_not_found(key: int, version: int, epoch: int) -> None:
    """The broker knows the gateway alone, and would serve the session's topics to anybody."""
    play = Play()
    assert play.client(within(version, SESSION, epoch)) == b""
    heard = told(key, version, play.client_got())
    assert heard["ErrorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert heard["SessionId"] == 0
    assert heard["Responses"] == []
    assert play.ended is None


@pytest.mark.parametrize(("key", "version"), by_version(WITH_SESSIONS))
@pytest.mark.parametrize("epoch", [0, -1])
def test_a_client_that_comes_back_begins_anew_and_closes_no_session(
    key: int, version: int, epoch: int
) -> None:
    """It names the session of its last connection, and all topics: a broker closes that session.
    Here it could be anybody's. An error would have franz-go ask again at once, and for ever."""
    play = Play(known=("a",))
    partitions = {**named(version, "a", "Topic"), "Partitions": [{"Partition": 0}]}
    fields: dict[str, Any] = {"MaxWaitMs": 500, "SessionEpoch": epoch, "Topics": [partitions]}
    said = ask(key, version, 1, SessionId=SESSION, **fields)
    assert play.client(said) == ask(key, version, 1, SessionId=0, **fields)


@pytest.mark.parametrize("piece", [1, 100_000])
@pytest.mark.parametrize(("key", "version"), by_version(WITH_SESSIONS))
def test_a_connection_uses_the_session_that_it_was_given(
    key: int, version: int, piece: int
) -> None:
    play = begun(version, piece=piece)
    for number in range(2, 5):  # the later ones are like the last one
        said = within(version, SESSION, number - 1, number)
        assert play.client(said) == said
        response = given(version, number, SESSION, a=batch(1))
        assert play.broker(response) == response
    assert play.account("a").messages == 5
    assert play.client(within(version, SESSION + 1, 5, 5)) == b""
    assert told(key, version, play.client_got())["ErrorCode"] == 70


def test_a_session_without_messages_is_known_too() -> None:
    """Most answers of an idle consumer are empty."""
    play = Play(known=("a",))
    play.client(fetch(16, 1, "a"))
    play.broker(given(16, 1, SESSION))
    said = within(16, SESSION)
    assert play.client(said) == said


def test_a_connection_has_few_sessions() -> None:
    play = Play(known=("a",))
    for number in range(1, MOST + 2):
        play.client(fetch(16, number, "a"))
        play.broker(given(16, number, number, a=batch(1)))
    assert play.client(within(16, 1)) == b""
    assert told(FETCH, 16, play.client_got())["ErrorCode"] == 70
    assert play.client(within(16, MOST + 1)) != b""


@pytest.mark.parametrize("piece", [1, 100_000])
@pytest.mark.parametrize(("key", "version"), by_version(WITH_SESSIONS))
def test_a_session_gives_nothing_of_a_topic_whose_right_is_gone(
    key: int, version: int, piece: int
) -> None:
    """Its account was closed for want of messages, so nobody ended the connection when the rules
    changed."""
    services = guarded()
    play = begun(version, services, piece)
    for _ in range(3):
        play.after(SWEPT)
    services.forbidden = {(Right.CONSUME, "a")}
    play.client(within(version, SESSION))
    response = given(version, 2, SESSION, a=batch(3, 500))
    heard = b"".join(
        play.broker(response[at : at + piece]) for at in range(0, len(response), piece)
    )
    assert len(heard) == len(response)
    (topic,) = told(key, version, heard)["Responses"]
    assert topic["Partitions"][0]["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not any(topic["Partitions"][0]["Records"])


def test_an_account_that_was_closed_is_opened_again_by_messages() -> None:
    play = begun(16)
    for _ in range(3):
        play.after(SWEPT)
    assert [it.topic for it in play.services.released] == ["a"]
    play.client(within(16, SESSION))
    response = given(16, 2, SESSION, a=batch(3))
    assert play.broker(response) == response
    assert play.account("a").messages == 3


def test_a_right_that_is_taken_back_ends_the_connection_and_its_session() -> None:
    play = begun(16)
    play.revoke(play.account("a"))
    assert play.ended is EndReason.OPERATOR_CLOSED


@pytest.mark.parametrize("version", [12, 16])
def test_nothing_passes_in_answer_to_a_substitute(version: int) -> None:
    """Though a broker had a topic of that name or id."""
    play = Play(guarded("secret"), known=("a", "secret"))
    (_, topic) = asked(play.client(fetch(version, 1, "a", "secret")))["Topics"]
    names = {key: topic[key] for key in named(version, "secret", "Topic")}
    partitions = [{"PartitionIndex": 0, "Records": batch(2)}]
    response = tell(FETCH, version, 1, Responses=[{**names, "Partitions": partitions}])
    heard = play.broker(response)
    (said,) = told(FETCH, version, heard)["Responses"]
    assert said["Partitions"][0]["Records"] == bytes(len(batch(2)))
    assert said["Partitions"][0]["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_substitutes_are_kept_as_long_as_a_session_may_have_them() -> None:
    play = Play(guarded("secret"), known=("a", "secret"))
    (_, topic) = asked(play.client(fetch(16, 1, "a", "secret")))["Topics"]
    play.broker(given(16, 1, SESSION, a=batch(1)))
    for _ in range(3):
        play.after(SWEPT)
    play.client(within(16, SESSION))
    partitions = [{"PartitionIndex": 0, "ErrorCode": 100}]
    responses = [{"TopicId": topic["TopicId"], "Partitions": partitions}]
    heard = told(FETCH, 16, play.broker(tell(FETCH, 16, 2, Responses=responses)))
    assert heard["Responses"][0]["TopicId"] == id_of("secret")


# -- share sessions --------------------------------------------------------------------------------

MEMBER = {"GroupId": "g", "MemberId": "a-member"}
LONG_GROUP = "g" * 500
SHARES = [
    (key, version)
    for key in (SHARE_FETCH, SHARE_ACKNOWLEDGE)
    for version in range(known(key).request.first, known(key).request.last + 1)
]


def share(key: int, version: int, epoch: int, correlation: int = 1, **more: Any) -> bytes:
    fields: dict[str, Any] = {**MEMBER, "ShareSessionEpoch": epoch, "Topics": [], **more}
    return ask(key, version, correlation, **fields)


@pytest.mark.parametrize(("key", "version"), SHARES)
@pytest.mark.parametrize("epoch", [-1, 1, 9])
@pytest.mark.parametrize("services", [KafkaServices, guarded])
def test_a_share_session_of_another_connection_is_not_found(
    key: int, version: int, epoch: int, services: Any
) -> None:
    play = Play(services())
    assert play.client(share(key, version, epoch)) == b""
    heard = told(key, version, play.client_got())
    assert heard["ErrorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("group", ["g", LONG_GROUP])
@pytest.mark.parametrize(("key", "version"), SHARES)
def test_a_connection_uses_the_share_session_that_it_has_begun(
    key: int, version: int, group: str
) -> None:
    play = Play(guarded())
    first = share(SHARE_FETCH, version, 0, GroupId=group)
    assert play.client(first) == first
    play.broker(tell(SHARE_FETCH, version, 1))
    said = share(key, version, 1, 2, GroupId=group)
    assert play.client(said) == said
    assert play.client(share(key, version, 1, 3, MemberId="another")) == b""
    assert play.client(share(key, version, 1, 4, GroupId="another")) == b""


def test_a_session_that_the_broker_refused_to_begin_is_not_found() -> None:
    """It may be another member's, which goes on."""
    play = Play(guarded())
    play.client(share(SHARE_FETCH, 1, 0))
    play.broker(tell(SHARE_FETCH, 1, 1, ErrorCode=42))
    assert play.client(share(SHARE_FETCH, 1, 7, 2)) == b""
    assert told(SHARE_FETCH, 1, play.client_got())["ErrorCode"] == 122


@pytest.mark.parametrize("services", [KafkaServices, guarded])
def test_a_member_gets_messages_of_topics_with_an_account(services: Any) -> None:
    play = Play(services(), known=("a", "b"))
    topics = [{"TopicId": id_of("a"), "Partitions": [{"PartitionIndex": 0}]}]
    play.client(share(SHARE_FETCH, 1, 0, Topics=topics))
    play.services.forbidden = {(Right.CONSUME, "b")}
    partitions = [{"PartitionIndex": 0, "Records": batch(2)}]
    said = [{"TopicId": id_of(name), "Partitions": partitions} for name in ("a", "b")]
    heard = told(SHARE_FETCH, 1, play.broker(tell(SHARE_FETCH, 1, 1, Responses=said)))
    parts = [it["Partitions"][0] for it in heard["Responses"]]
    assert play.account("a").messages == 2
    assert parts[0]["Records"] == batch(2)
    assert not parts[1]["Records"]
    assert parts[1]["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_share_fetch_waits_for_the_name_of_an_id() -> None:
    """Its messages would come to an account that nobody can open."""
    play = Play()
    topics = [{"TopicId": id_of("a"), "Partitions": [{"PartitionIndex": 0}]}]
    said = share(SHARE_FETCH, 1, 0, Topics=topics)
    own = play.client(said)
    assert [it["TopicId"] for it in asked(own)["Topics"]] == [id_of("a")]
    assert play.is_waiting


@pytest.mark.parametrize("version", [4, 12])
def test_an_answer_about_a_topic_without_a_name_passes(version: int) -> None:
    play = Play()
    play.client(fetch(version, 1, ""))
    partitions = [{"PartitionIndex": 0, "ErrorCode": 3}]
    response = tell(FETCH, version, 1, Responses=[{"Topic": "", "Partitions": partitions}])
    assert play.broker(response) == response


# -- what nobody knows yet -------------------------------------------------------------------------


def test_a_session_goes_on_when_it_is_known_again_who_may_use_its_topics() -> None:
    """Rights that others decide may be asked for again after a pause; until then the client gets
    an error, after which it asks again, and the next request waits for the response."""
    services = guarded()
    play = begun(16, services)
    for _ in range(3):
        play.after(SWEPT)
    services.undecided = {"a"}
    play.client(within(16, SESSION, 1, 2))
    heard = told(FETCH, 16, play.broker(given(16, 2, SESSION, a=batch(3))))
    assert heard["Responses"][0]["Partitions"][0]["ErrorCode"] == ErrorCode.NOT_LEADER
    said = within(16, SESSION, 2, 3)
    assert play.client(said) == b""
    play.finish()
    assert play.broker_got() == said
    response = given(16, 3, SESSION, a=batch(3))
    assert play.broker(response) == response
    assert play.account("a").messages == 3


def test_a_session_goes_on_when_the_name_of_an_id_is_known_again() -> None:
    play = begun(16)
    for _ in range(3):
        play.after(SWEPT)
    play.listener.ids._names.clear()
    play.client(within(16, SESSION, 1, 2))
    heard = told(FETCH, 16, play.broker(given(16, 2, SESSION, a=batch(3))))
    assert heard["Responses"][0]["Partitions"][0]["ErrorCode"] == ErrorCode.UNKNOWN_TOPIC_ID
    said = within(16, SESSION, 2, 3)
    own = play.broker_got() + play.client(said)
    assert [it["TopicId"] for it in asked(own)["Topics"]] == [id_of("a")]
    play.broker(described(12, -1, "a"))
    assert play.broker_got() == said
    response = given(16, 3, SESSION, a=batch(3))
    assert play.broker(response) == response


def test_a_topic_without_a_name_in_the_transaction_of_somebody_else_is_a_violation() -> None:
    services = KafkaServices()
    services.forbidden = {(Right.PRODUCE, "group:theirs")}
    with pytest.raises(PeerError, match="without a name"):
        Play(services).client(produce(9, 1, 1, "theirs", **{"": batch(1)}))


def test_no_substitute_is_made_for_a_request_that_waits() -> None:
    """It would stand in the way of the next responses for as long as the session lasts."""
    play = Play()
    said = fetch(16, 1, "a")
    play.client(said)
    play.broker(described(12, -1, "a"))
    assert play.broker_got().endswith(said)
    assert len(play.session._substitutes) == 0  # type: ignore[attr-defined]
