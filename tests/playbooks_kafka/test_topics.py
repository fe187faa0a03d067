"""Topics: each has an account, or its error in the place that answers have for it."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.contract import Denial, EndReason, Refusal
from gateway.wire.first_use import CLOSED_AT_ONCE
from gateway.wire.kafka.asking import LONGEST_QUESTION
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.session import SWEPT
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.plugin import FrameBounds
from gateway.wire.subject import Subject
from tests.support.versions import by_version, versions

from .frames import (
    BY_ID,
    EVERY_VERSION,
    FETCH,
    METADATA,
    PRODUCE,
    SHARE_FETCH,
    ask,
    asked,
    batch,
    described,
    fetch,
    fetched,
    id_of,
    known,
    metadata,
    named,
    produce,
    produced,
    tell,
    told,
)
from .script import KafkaServices, Play

PRODUCES = versions(known(PRODUCE).request)
WITH_TRANSACTIONS = 3
FETCHES = versions(known(FETCH).request)


def guarded(*forbidden: str, right: Right = Right.PRODUCE) -> KafkaServices:
    services = KafkaServices()
    services.forbidden = {(right, name) for name in forbidden}
    return services


def in_pieces(play: Play, data: bytes, piece: int) -> bytes:
    return b"".join(play.client(data[at : at + piece]) for at in range(0, len(data), piece))


# -- Produce ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 11, 10_000])
@pytest.mark.parametrize("version", PRODUCES)
def test_a_denied_topic_is_another_one_to_the_broker_and_itself_to_the_client(
    version: int, piece: int
) -> None:
    play = Play(guarded("denied"), known=("a", "denied"))
    said = produce(version, 1, a=batch(3), denied=batch(5))
    topics = asked(in_pieces(play, said, piece))["TopicData"]
    assert {key: topics[0][key] for key in named(version, "a")} == named(version, "a")
    assert [it["PartitionData"][0]["Records"] for it in topics] == [batch(3), None]
    substitute = {key: topics[1][key] for key in named(version, "denied")}
    assert substitute != named(version, "denied")
    responses = [
        {**named(version, "a"), "PartitionResponses": [{"BaseOffset": 7}]},
        {**substitute, "PartitionResponses": [{"ErrorCode": 3, "BaseOffset": -1}]},
    ]
    heard = told(PRODUCE, version, play.broker(tell(PRODUCE, version, 1, Responses=responses)))
    denied = {**named(version, "denied")}
    assert [heard["Responses"][1][key] for key in denied] == list(denied.values())
    errors = [it["PartitionResponses"][0]["ErrorCode"] for it in heard["Responses"]]
    assert errors == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    account = play.account("a")
    assert (account.messages, account.receipts, account.errors) == (3, 1, 0)
    assert [it.topic for it in play.services.admitted] == ["a", "(refused)"]
    assert play.broker_got() == b"", "nobody asks for the id that stands for a denied topic"


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (Refusal.UNAUTHORIZED, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (Refusal.FULL, ErrorCode.POLICY_VIOLATION),
        (Refusal.TOO_MANY, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_topic_that_is_not_admitted_is_denied_with_the_reason(
    refusal: Refusal, code: ErrorCode
) -> None:
    play = Play()
    play.services.admit = lambda action, subject, *, again=False: Denial(refusal, "no")
    assert play.client(produce(9, 1, a=batch(1))) == b""
    (response,) = told(PRODUCE, 9, play.client_got())["Responses"]
    assert response["Name"] == "a"
    assert response["PartitionResponses"][0]["ErrorCode"] == code


@pytest.mark.parametrize("piece", [1, 11, 10_000])
@pytest.mark.parametrize("version", versions(known(PRODUCE).request, WITH_TRANSACTIONS))
@pytest.mark.parametrize("theirs", ["theirs", ""])
def test_a_client_produces_in_no_transaction_of_somebody_else(
    version: int, piece: int, theirs: str
) -> None:
    """Brokers take a request without a name for one in no transaction, and one with an empty name
    for one that the gateway may send."""
    play = Play(guarded(f"group:{theirs}"), known=("a",))
    said = produce(version, 1, 1, theirs, a=batch(3))
    assert in_pieces(play, said, piece) == b""
    (response,) = told(PRODUCE, version, play.client_got())["Responses"]
    assert {key: response[key] for key in named(version, "a")} == named(version, "a")
    told_of = response["PartitionResponses"][0]["ErrorCode"]
    assert told_of == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    own = produce(version, 2, 1, "own", a=batch(3))
    assert in_pieces(play, own, piece) == own


def test_nobody_produces_in_a_transaction_before_it_is_known_whose_it_is() -> None:
    services = guarded()
    services.undecided = {"group:own"}
    play = Play(services)
    said = produce(9, 1, 1, "own", a=batch(3))
    assert play.client(said) == b""
    play.finish()
    assert play.broker_got() == said


def test_an_error_of_the_broker_is_counted() -> None:
    play = Play()
    play.client(produce(9, 1, a=batch(3), b=batch(1)))
    play.broker(produced(9, 1, a=19, b=0))
    assert [(it.topic, it.errors, it.outstanding) for it in play.services.admitted] == [
        ("a", 1, 0),
        ("b", 0, 0),
    ]


def test_an_id_that_is_not_known_is_asked_for_and_known_then() -> None:
    """The request waits meanwhile."""
    play = Play()
    said = produce(BY_ID, 1, a=batch(1))
    own = play.client(said)
    assert [it["TopicId"] for it in asked(own)["Topics"]] == [id_of("a")]
    assert play.client(metadata(12, 2)) == b""
    heard = play.broker(described(12, -1, "a"))
    assert heard == b"", "the response to the gateway's own request is swallowed"
    assert play.broker_got() == said + metadata(12, 2)
    assert play.account("a").messages == 1


def test_an_id_that_nobody_knows_is_refused_at_last() -> None:
    play = Play()
    assert asked(play.client(produce(BY_ID, 1, a=batch(1))))["Topics"]
    topic = {"TopicId": id_of("a"), "ErrorCode": 100, "Name": None}
    heard = play.broker(tell(METADATA, 12, -1, Topics=[topic]))
    assert play.broker_got() == b""
    (response,) = told(PRODUCE, BY_ID, heard)["Responses"]
    assert response["TopicId"] == id_of("a")
    assert response["PartitionResponses"][0]["ErrorCode"] == ErrorCode.UNKNOWN_TOPIC_ID


# -- requests of Produce that a read cuts ----------------------------------------------------------

CUT = 200


@pytest.mark.parametrize("version", PRODUCES)
def test_a_cut_request_of_as_many_topics_as_are_open_passes_as_it_comes(version: int) -> None:
    play = Play(known=("a", "b"))
    play.client(produce(version, 1, a=batch(1), b=batch(1)))
    said = produce(version, 2, b=batch(2, 300), a=batch(3, 300))
    first = play.client(said[:CUT])
    assert first == said[:CUT]
    assert first + play.client(said[CUT:]) == said
    assert [play.account(topic).messages for topic in "ab"] == [4, 3]


def test_a_cut_request_of_more_topics_is_collected() -> None:
    play = Play()
    said = produce(9, 2, b=batch(2, 300), a=batch(3, 300))
    assert play.client(said[:CUT]) == b""
    assert play.client(said[CUT:]) == said
    assert [play.account(topic).messages for topic in "ab"] == [3, 2]


BOUNDS = FrameBounds(collected=CUT)
"""By which a request of more bytes than `CUT` is not collected."""


@pytest.mark.parametrize("version", PRODUCES)
def test_a_cut_request_that_is_too_large_to_be_collected_passes_as_it_comes(version: int) -> None:
    play = Play(known=("a", "b"), bounds=BOUNDS)
    for number in range(2):
        said = produce(version, number, a=batch(2, 300), b=batch(3, 300))
        first = play.client(said[:CUT])
        assert first == said[:CUT]
        assert first + play.client(said[CUT:]) == said
    assert [play.account(topic).messages for topic in "ab"] == [4, 6]


@pytest.mark.parametrize("may", [True, False])
def test_the_only_topic_of_such_a_request_waits_until_its_right_is_known(may: bool) -> None:
    services = guarded()
    services.undecided = {"new"}
    play = Play(services, bounds=BOUNDS)
    said = produce(9, 1, new=batch(3, 300))
    before = play.client(said[:CUT]) + play.client(said[CUT:])
    assert b"new" not in before
    if not may:
        services.forbidden = {(Right.PRODUCE, "new")}
    play.finish()
    if may:
        assert before + play.broker_got() == said
        assert play.account("new").messages == 3
    else:
        assert play.ended is EndReason.OPERATOR_CLOSED
        assert play.broker_got() == b""


def opened(services: KafkaServices) -> Play:
    """Return a play whose producer has sent to two topics."""
    play = Play(services)
    assert play.client(produce(9, 1, a=batch(1), b=batch(1)))
    return play


def test_a_denied_topic_within_a_request_ends_the_connection_before_its_bytes_pass() -> None:
    play = opened(guarded("denied"))
    said = produce(9, 2, b=batch(2, 300), denied=batch(3, 300))
    passed = play.client(said[:CUT])
    assert passed == said[:CUT]
    assert b"denied" not in play.client(said[CUT:])
    assert play.ended is EndReason.OPERATOR_CLOSED


def test_nothing_of_a_large_request_passes_before_a_topic_of_it_is_allowed() -> None:
    """Or else a broker would make room for it, on behalf of a client that may use no topic."""
    said = bytearray(produce(9, 1, a=batch(1), b=batch(1)))
    said[:4] = (100 << 20).to_bytes(4)
    names = said.index(b"\x02a")
    play = Play(guarded("a", "b"))
    assert play.client(bytes(said[:names])) == b""
    assert play.client(bytes(said[names : names + 2])) == b""
    assert play.session.scanners[0].stop > play.session.collected_bound


def test_after_a_denied_topic_cut_requests_are_collected() -> None:
    play = opened(guarded("denied"))
    play.client(produce(9, 2, denied=batch(1)))
    said = produce(9, 3, b=batch(2, 300), denied=batch(3, 300))
    assert play.client(said[:CUT]) == b""
    kept, taken = asked(play.client(said[CUT:]))["TopicData"]
    assert kept["PartitionData"][0]["Records"] == batch(2, 300)
    assert taken["PartitionData"][0]["Records"] is None


@pytest.mark.parametrize("may", [True, False])
def test_a_topic_within_a_request_waits_until_its_right_is_known(may: bool) -> None:
    services = guarded()
    services.undecided = {"new"}
    play = opened(services)
    said = produce(9, 2, b=batch(2, 300), new=batch(3, 300))
    assert play.client(said[:CUT]) == said[:CUT]
    before = play.client(said[CUT:])
    assert b"new" not in before
    if not may:
        services.forbidden = {(Right.PRODUCE, "new")}
        play.finish()
        assert play.ended is EndReason.OPERATOR_CLOSED
        return
    play.finish()
    assert before + play.broker_got() == said[CUT:]
    assert play.account("new").messages == 3


def test_a_policy_that_is_never_decided_ends_the_connection_at_last() -> None:
    services = guarded()
    services.undecided = {"new"}
    play = opened(services)
    said = produce(9, 2, b=batch(2, 300), new=batch(3, 300))
    play.client(said[:CUT])
    play.client(said[CUT:])
    play.after(LONGEST_QUESTION)
    assert play.ended is None
    play.after(LONGEST_QUESTION)
    assert play.ended is EndReason.OPERATOR_CLOSED


def test_each_new_topic_within_a_request_may_be_asked_for() -> None:
    services = guarded()
    services.undecided = {"c", "d", "e"}
    play = opened(services)
    for number, new in enumerate("cde", start=2):
        said = produce(9, number, b=batch(1, 300), **{new: batch(1, 300)})
        passed = play.client(said[:CUT]) + play.client(said[CUT:])
        play.finish()
        assert passed + play.broker_got() == said


def test_a_topic_is_named_once_in_a_request() -> None:
    """Its entries would be several frames with one receipt, and bills count receipts."""
    play = Play(known=("a",))
    topic = {**named(9, "a"), "PartitionData": [{"Index": 0, "Records": batch(1)}]}
    with pytest.raises(PeerError, match="twice"):
        play.client(ask(PRODUCE, 9, 1, Acks=1, TopicData=[topic, topic]))


def test_a_topic_without_partitions_is_no_frame() -> None:
    play = Play()
    data = [{**named(9, topic), "PartitionData": []} for topic in "ab"]
    said = ask(PRODUCE, 9, 1, Acks=1, TopicData=data)
    assert play.client(said) == said
    assert [it.frames for it in play.services.admitted] == [0, 0]


@pytest.mark.parametrize("forbidden", ["group:t", "a"])
def test_what_is_refused_and_awaits_no_response_ends_the_connection(forbidden: str) -> None:
    """As brokers do. It does not reach them."""
    play = Play(guarded(forbidden))
    assert play.client(produce(9, 1, 0, "t", a=batch(1))) == b""
    assert play.ended is EndReason.OPERATOR_CLOSED


@pytest.mark.parametrize("version", [14, 32_767, -1])
def test_a_request_of_an_unknown_version_is_no_head(version: int) -> None:
    """A request of 12 bytes was offered again without end."""
    play = Play()
    with pytest.raises(PeerError, match="head"):
        play.client(struct.pack(">ihhi", 8, PRODUCE, version, 7))


@pytest.mark.parametrize("name", ["/" + "x" * 249, "b" * 5000])
def test_a_name_that_no_topic_may_have_is_not_kept(name: str) -> None:
    play = Play()
    with pytest.raises(PeerError, match="name"):
        play.client(produce(9, 1, **{name: batch(1), "a": batch(1)}))


def test_bytes_behind_a_request_that_the_session_decides_are_a_violation() -> None:
    said = produce(9, 1, denied=batch(1), a=batch(1)) + b"?"
    with pytest.raises(PeerError, match="bytes behind"):
        Play(guarded("denied")).client((len(said) - 4).to_bytes(4) + said[4:])


def test_tagged_fields_which_pass_uncounted_are_small() -> None:
    said = ask(PRODUCE, 9, 1, Acks=1, TopicData=[])[:-1] + b"\x01\x05" + b"\xa0\x8d\x06"
    said += bytes(100_000)
    said = (len(said) - 4).to_bytes(4) + said[4:]
    with pytest.raises(PeerError):
        Play().client(said[:1000])


def test_what_has_come_of_a_request_is_charged_if_its_end_never_comes() -> None:
    play = Play()
    said = produce(9, 1, a=batch(7, 100) * 3)
    play.client(said[:-90])  # the head of the third batch has come
    account = play.account("a")
    play.close()
    assert account.messages == 21


def test_an_account_that_is_closed_within_its_request_holds_nobody() -> None:
    play = Play()
    said = produce(9, 1, a=batch(1, 500))
    play.client(said[:300])
    account = play.account("a")
    account.hold()
    play.revoke(account)
    play.client(said[300:])
    assert play.client(produce(9, 2, b=batch(1)))
    assert not play.is_waiting


def test_no_client_foresees_the_substitute_of_an_id() -> None:
    """Whoever foresaw it would ask for the id whose substitute is that of a hidden topic."""
    secret = id_of("secret")
    foreseen = bytes(255 - byte for byte in secret)
    drawn = set()
    for _ in range(3):
        play = Play(guarded("secret", right=Right.CONSUME), known=("secret",))
        topics = [{"TopicId": it, "Partitions": [{}]} for it in (secret, foreseen)]
        said = ask(FETCH, 16, 1, Topics=topics)
        play.client(said)
        play.after(LONGEST_QUESTION)  # nobody knows the other one
        drawn |= {it["TopicId"] for it in asked(play.broker_got())["Topics"]}
    assert len(drawn) == 6
    assert not drawn & {secret, foreseen}


def test_no_substitute_is_the_id_of_a_topic() -> None:
    ids, drawn = TopicIds(), iter([bytes(16), id_of("a"), id_of("x"), id_of("x"), id_of("y")])
    ids.learn(id_of("a"), b"a")
    substitutes = Substitutes(ids, lambda _size: next(drawn))
    assert substitutes.id(id_of("secret"), 29) == id_of("x")
    assert substitutes.id(id_of("secret"), 29) == id_of("x")
    assert substitutes.id(id_of("other"), 29) == id_of("y")


# -- Fetch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", FETCHES)
def test_a_fetch_of_a_denied_topic_is_denied_by_itself(version: int) -> None:
    play = Play(guarded("denied", right=Right.CONSUME), known=("a", "denied"))
    said = fetch(version, 1, "a", "denied")
    reached = play.client(said)
    assert len(reached) == len(said)
    substitute = {k: asked(reached)["Topics"][1][k] for k in named(version, "denied", "Topic")}
    responses = [
        {**named(version, "a", "Topic"), "Partitions": [{"Records": batch(2)}]},
        {**substitute, "Partitions": [{"ErrorCode": 3}]},
    ]
    heard = told(FETCH, version, play.broker(tell(FETCH, version, 1, Responses=responses)))
    denied = named(version, "denied", "Topic")
    assert [heard["Responses"][1][key] for key in denied] == list(denied.values())
    errors = [it["Partitions"][0]["ErrorCode"] for it in heard["Responses"]]
    assert errors == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    counted = [(it.topic, it.messages) for it in play.services.admitted]
    assert counted == [("a", 2), ("(refused)", 0)]
    assert play.broker_got() == b""


OF_REPLICAS = [it for it in EVERY_VERSION if it[0] in {FETCH, 2} or (it[0] == 23 and it[1] >= 3)]


@pytest.mark.parametrize("replica", [0, -3])
@pytest.mark.parametrize(("key", "version"), by_version(OF_REPLICAS))
def test_a_client_is_no_replica(key: int, version: int, replica: int) -> None:
    """A broker would judge it by the principal of the gateway. It takes -3 for one of its own."""
    play = Play()
    is_tagged = key == FETCH and version >= 15
    as_replica: dict[str, Any] = (
        {"ReplicaState": {"ReplicaId": replica}} if is_tagged else {"ReplicaId": replica}
    )
    with pytest.raises(PeerError, match="replica"):
        play.client(ask(key, version, 1, Topics=[], **as_replica))
    assert play.broker_got() == b""


def test_a_fetch_waits_for_the_name_of_an_id_and_then_goes_on_as_it_is() -> None:
    play = Play()
    said = fetch(16, 1, "a")
    own = play.client(said, metadata(12, 2))
    assert [it["TopicId"] for it in asked(own)["Topics"]] == [id_of("a")]
    assert play.is_waiting
    assert play.broker(described(12, -1, "a")) == b""
    assert play.broker_got() == said + metadata(12, 2)
    assert play.broker(fetched(16, 1, a=batch(2))) == fetched(16, 1, a=batch(2))
    assert play.account("a").messages == 2


@pytest.mark.parametrize("responses", [True, False])
def test_a_fetch_of_an_id_that_nobody_knows_goes_on_at_last(responses: bool) -> None:
    play = Play()
    said = fetch(16, 1, "a")
    play.client(said)
    if responses:
        topic = {"TopicId": id_of("a"), "ErrorCode": 100, "Name": None}
        play.broker(tell(METADATA, 12, -1, Topics=[topic]))
    else:
        play.after(LONGEST_QUESTION)
    reached = play.broker_got()
    assert len(reached) == len(said)
    (topic,) = asked(reached)["Topics"]
    assert topic["TopicId"] != id_of("a")


def test_a_fetch_waits_until_it_is_known_whether_it_may() -> None:
    services = guarded()
    services.undecided = {"a"}
    play = Play(services)
    said = fetch(12, 1, "a")
    assert play.client(said) == b""
    play.finish()
    assert play.broker_got() == said


def test_a_fetch_waits_for_a_name_and_then_for_the_right_to_it() -> None:
    """A fetch session would keep the substitute of a topic that the client may use."""
    services = guarded()
    services.undecided = {"a", "b"}
    play = Play(services, known=("b",))
    said = fetch(16, 1, "a", "b")
    play.client(said)
    play.finish()
    assert play.broker_got() == b""
    play.broker(described(12, -1, "a"))
    assert play.broker_got() == b""
    play.finish()
    assert play.broker_got() == said


def test_a_grant_does_not_have_a_fetch_go_on_before_its_topics_are_known() -> None:
    play = Play()
    play.services.lease = 1
    play.client(fetch(12, 1, "b"), fetch(12, 2, "b"), fetch(16, 3, "a"))
    play.broker(fetched(12, 1, b=batch(2)), fetched(12, 2, b=batch(2)))
    play.broker_got()
    play.grant(play.account("b"), 100)
    assert play.broker_got() == b""
    play.broker(described(12, -1, "a"))
    assert play.broker_got() == fetch(16, 3, "a")


def test_an_error_of_a_fetch_that_is_tried_again_is_one_that_consumers_know() -> None:
    """Java's throw IllegalStateException at a code that brokers do not give them there."""
    services = guarded()
    services.undecided = {"a"}
    play = Play(services)
    play.client(fetch(12, 1, "a"))
    play.after(LONGEST_QUESTION)
    (topic,) = asked(play.broker_got())["Topics"]
    responses = [{"Topic": topic["Topic"], "Partitions": [{"ErrorCode": 3}]}]
    heard = told(FETCH, 12, play.broker(tell(FETCH, 12, 1, Responses=responses)))
    assert heard["Responses"][0]["Partitions"][0]["ErrorCode"] == 6


# -- share groups ----------------------------------------------------------------------------------


def test_what_a_member_of_a_share_group_gets_is_counted() -> None:
    play = Play(known=("a",))
    play.client(ask(SHARE_FETCH, 1, 1, GroupId="g", Topics=[{"TopicId": id_of("a")}]))
    partitions = [{"Records": batch(3)}, {"Records": batch(4)}]
    said = tell(SHARE_FETCH, 1, 1, Responses=[{"TopicId": id_of("a"), "Partitions": partitions}])
    assert play.broker(said) == said
    assert (play.account("a").messages, play.account("a").bytes) == (7, 2 * len(batch(3)))


def test_a_denied_topic_of_a_share_group_is_not_asked_for_by_its_substitute() -> None:
    play = Play(guarded("a", right=Right.CONSUME), known=("a",))
    topics = [{"TopicId": id_of("a"), "Partitions": [{"PartitionIndex": 0}]}]
    reached = play.client(ask(SHARE_FETCH, 1, 1, GroupId="g", Topics=topics))
    (topic,) = asked(reached)["Topics"]
    partitions = [{"ErrorCode": 100, "Records": None}]
    said = [{"TopicId": topic["TopicId"], "Partitions": partitions}]
    heard = told(SHARE_FETCH, 1, play.broker(tell(SHARE_FETCH, 1, 1, Responses=said)))
    assert heard["Responses"][0]["TopicId"] == id_of("a")
    assert play.broker_got() == b""


# -- sweeps ----------------------------------------------------------------------------------------


def test_an_account_that_is_not_used_is_closed() -> None:
    play = Play()
    play.client(produce(9, 1, a=batch(1), b=batch(1)))
    play.broker(produced(9, 1, a=0, b=0))
    for number in range(2, 5):
        play.after(SWEPT)
        play.client(produce(9, number, a=batch(1)))
        play.broker(produced(9, number, a=0))
    assert [it.topic for it in play.services.released] == ["b"]
    play.client(produce(9, 9, b=batch(1)))
    assert play.account("b").messages == 1


def test_unused_accounts_are_closed_some_at_a_time() -> None:
    play = Play()
    names = [f"t{number}" for number in range(2 * CLOSED_AT_ONCE + 1)]
    play.client(produce(9, 1, **dict.fromkeys(names, batch(1))))
    play.broker(produced(9, 1, **dict.fromkeys(names, 0)))
    for seconds in (SWEPT, 0, 0, SWEPT):
        play.after(seconds)
    closed = [len(play.services.released)]
    while play.services.live:
        play.after(0)
        closed.append(len(play.services.released))
    assert closed == [CLOSED_AT_ONCE, 2 * CLOSED_AT_ONCE, 2 * CLOSED_AT_ONCE + 1]
    assert play.budget.taken == 0


def test_an_account_of_a_request_without_messages_is_closed_too() -> None:
    play = Play()
    play.client(produce(9, 1, a=b""), produce(9, 2, 0, b=b""))
    play.broker(produced(9, 1, a=0))
    for number in range(3, 6):
        play.after(SWEPT)
        play.client(metadata(12, number))
        play.broker(described(12, number))
    assert {it.topic for it in play.services.released} == {"a", "b"}


def test_a_sweep_within_an_answer_leaves_its_substitutes() -> None:
    play = Play(guarded("denied", right=Right.CONSUME))
    reached = play.client(fetch(12, 1, "a", "denied"))
    other = asked(reached)["Topics"][1]["Topic"]
    responses = [
        {"Topic": "a", "Partitions": [{"Records": batch(2, 500)}]},
        {"Topic": other, "Partitions": [{"ErrorCode": 3}]},
    ]
    said = tell(FETCH, 12, 1, Responses=responses)
    heard = play.broker(said[:200])
    play.after(SWEPT)
    heard += play.broker(said[200:])
    assert told(FETCH, 12, heard)["Responses"][1]["Topic"] == "denied"


def test_a_sweep_within_a_request_leaves_its_substitutes() -> None:
    play = Play(guarded("denied"))
    play.client(metadata(12, 1))
    play.broker(described(12, 1))
    said = produce(9, 2, denied=batch(1), a=batch(2, 500))
    reached = play.client(said[:200])
    play.after(SWEPT)
    reached += play.client(said[200:])
    other = asked(reached)["TopicData"][0]["Name"]
    responses = [{"Name": other, "PartitionResponses": [{"ErrorCode": 17}]}]
    heard = told(PRODUCE, 9, play.broker(tell(PRODUCE, 9, 2, Responses=responses)))
    assert heard["Responses"][0]["Name"] == "denied"


def test_an_account_that_is_closed_as_idle_holds_nobody() -> None:
    """Nobody grants it anything any more."""
    play = Play()
    play.services.lease = 2
    play.client(produce(9, 1, a=batch(2)))
    play.broker(produced(9, 1, a=0))
    for number in range(2, 5):
        play.after(SWEPT)
        play.client(metadata(12, number))
        play.broker(described(12, number))
    assert [it.topic for it in play.services.released] == ["a"]
    assert play.client(produce(9, 9, b=batch(1))) == produce(9, 9, b=batch(1))
    assert not play.is_waiting


# -- bounds ----------------------------------------------------------------------------------------


def test_too_many_denied_topics_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.wire.kafka.substitutes.MOST", 3)
    play = Play(guarded(*"abcd"))
    play.client(produce(9, 1, a=batch(1), b=batch(1), c=batch(1), mine=batch(1)))
    with pytest.raises(PeerError):
        play.client(produce(9, 2, a=batch(1), d=batch(1), mine=batch(1)))


def test_topics_that_differ_in_their_first_letter_alone_are_told_apart() -> None:
    names = [f"{letter}-events" for letter in "abcdefghijklmnopqrstuvwxyz"]
    play = Play(guarded(*names))
    names.append("mine")
    reached = play.client(produce(9, 1, **dict.fromkeys(names, batch(1))))
    others = [it["Name"] for it in asked(reached)["TopicData"]]
    responses = [{"Name": it, "PartitionResponses": [{"ErrorCode": 17}]} for it in others]
    heard = told(PRODUCE, 9, play.broker(tell(PRODUCE, 9, 1, Responses=responses)))
    assert [it["Name"] for it in heard["Responses"]] == names


def test_a_topic_that_is_denied_for_two_reasons_has_the_one_of_each_request() -> None:
    services = guarded("a")
    play = Play(services)

    def forbid(right: Right, subject: Subject) -> Denial | None:
        reason = Refusal.FULL if right is Right.PRODUCE else Refusal.UNAUTHORIZED
        is_a = subject.topic is not None and subject.topic.name == "a"
        return Denial(reason, "no") if is_a else None

    services.forbid = forbid  # type: ignore[method-assign]
    first, second = (
        asked(play.client(produce(9, 1, a=batch(1), b=batch(1))))["TopicData"][0]["Name"],
        asked(play.client(fetch(12, 2, "a")))["Topics"][0]["Topic"],
    )
    responses = [{"Name": first, "PartitionResponses": [{"ErrorCode": 17}]}]
    heard = told(PRODUCE, 9, play.broker(tell(PRODUCE, 9, 1, Responses=responses)))
    code = ErrorCode.POLICY_VIOLATION
    assert heard["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == code
    responses = [{"Topic": second, "Partitions": [{"ErrorCode": 3}]}]
    heard = told(FETCH, 12, play.broker(tell(FETCH, 12, 2, Responses=responses)))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert heard["Responses"][0]["Partitions"][0]["ErrorCode"] == code


def test_a_consumer_gets_an_error_that_a_fetch_may_have() -> None:
    play = Play(guarded("a"))
    play.services.forbid = lambda *_: Denial(Refusal.FULL, "no")
    name = asked(play.client(fetch(12, 2, "a")))["Topics"][0]["Topic"]
    responses = [{"Topic": name, "Partitions": [{"ErrorCode": 3}]}]
    heard = told(FETCH, 12, play.broker(tell(FETCH, 12, 2, Responses=responses)))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert heard["Responses"][0]["Partitions"][0]["ErrorCode"] == code


def test_accounts_take_bytes_of_the_budget_and_give_them_back() -> None:
    play = Play()
    play.budget.size = 8000
    for number in range(20):
        with suppress(PeerError):
            play.client(produce(9, number, 0, **{f"t{number}": batch(1)}))
    assert 0 < len(play.services.admitted) < 20
    play.close()
