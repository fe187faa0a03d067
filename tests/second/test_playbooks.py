"""Sessions and openings of `memo`, without I/O."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.admission import NO_ROOM
from gateway.wire.budget import Budget
from gateway.wire.contract import (
    FORWARD,
    Denial,
    Dial,
    Dialled,
    Direction,
    Drop,
    Effects,
    End,
    EndReason,
    Inject,
    Later,
    Opened,
    Opening,
    Pause,
    Peer,
    Receive,
    Refusal,
    Refused,
    Replace,
    Step,
    StepResult,
    Transmit,
)
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.services import Again
from gateway.wire.subject import Caller, Subject
from tests.playbooks.services import BROKER_1, NAME_1, ORIGIN, OWN, FakeServices
from tests.second.entry import MemoEntry
from tests.second.memo import (
    ANSWER,
    Kind,
    error_of,
    frame,
    head_of,
    places,
    places_of,
    refusal,
    sections,
    text,
    texts,
)
from tests.second.session import MOVED, REFUSED, TOO_OFTEN, MemoSession

TO_BROKER, TO_CLIENT = Direction
NOW = 100.0


class Play:
    """A session between two peers. `sent`: bytes sent in each direction."""

    def __init__(self, **settings: object) -> None:
        self.services = FakeServices()
        entry = EntrySettings(services=self.services)
        self.session = MemoSession(
            replace(entry, **settings),  # type: ignore[arg-type]
            Subject(Caller(protocol="memo", connection=1, host="192.0.2.7")),
        )
        self.sent = {TO_BROKER: b"", TO_CLIENT: b""}
        self.effects: Effects = ()
        self.later: list[Later] = []

    def say(self, direction: Direction, *frames: bytes) -> Effects:
        """Send frames from a peer; return the effects of the last one."""
        scanner = self.session.scanners[direction]
        for data in frames:
            self.effects = ()
            if scanner.scan(bytearray(data), 0, len(data)) == len(data):
                self.sent[direction] += data
            else:
                assert scanner.stop == len(data)
                self.carry_out(self.session.decide(direction, data, NOW), direction, data)
        return self.effects

    def carry_out(self, effects: Effects, direction: Direction, data: bytes = b"") -> None:
        """Carry out effects as the plane does."""
        self.effects = effects
        for effect in effects:
            match effect:
                case Replace(other):
                    self.sent[direction] += other
                case Inject(way, other):
                    self.sent[way] += other
                case Later():
                    self.later.append(effect)
                case Drop() | Pause() | End():
                    pass
                case _:
                    assert (effect,) == FORWARD
                    self.sent[direction] += data

    ask = property(lambda self: partial(self.say, TO_BROKER))
    response = property(lambda self: partial(self.say, TO_CLIENT))


def put(id: int, *topics: str) -> bytes:
    return frame(id, Kind.PUT, sections((topic, 2, b"data") for topic in topics))


def done(id: int) -> bytes:
    return frame(id, Kind.PUT | ANSWER)


def get(id: int, *topics: str) -> bytes:
    return frame(id, Kind.GET, texts(topics))


def got(id: int, *topics: str) -> bytes:
    return frame(id, Kind.GET | ANSWER, sections((topic, 3, b"found") for topic in topics))


def where(id: int, *topics: str) -> bytes:
    return frame(id, Kind.WHERE, texts(topics))


def no(id: int, denial: Denial) -> bytes:
    return refusal(id, denial)


def counts(accounts: list[Account]) -> dict[str, int]:
    return {f"{it.action} {it.topic.rpartition('/')[2]}": it.messages for it in accounts}


# -- accounts of several topics ------------------------------------------------------------------


def test_the_first_put_opens_accounts_and_the_next_one_passes() -> None:
    play = Play()
    assert play.ask(put(1, "a", "b")) == FORWARD
    assert play.ask(put(2, "b"), put(3, "a", "b")) == ()
    assert counts(play.services.admitted) == {"produce a": 4, "produce b": 6}
    assert play.sent[TO_BROKER] == put(1, "a", "b") + put(2, "b") + put(3, "a", "b")


def test_all_bytes_of_a_put_are_counted_for_its_topics() -> None:
    play = Play()
    play.ask(put(1, "a", "b"), put(2, "a", "b"))
    assert sum(it.bytes for it in play.services.admitted) == 2 * len(put(1, "a", "b"))


def test_messages_of_a_get_are_counted_by_topic() -> None:
    play = Play()
    play.ask(get(1, "a", "b"), get(2, "a"))
    play.response(got(1, "a", "b"), got(2, "a"))
    assert counts(play.services.admitted) == {"consume a": 6, "consume b": 3}


def test_a_put_with_a_forbidden_topic_is_refused() -> None:
    play = Play()
    play.ask(put(1, "a", "forbidden"))
    assert error_of(play.sent[TO_CLIENT]).refusal is Refusal.UNAUTHORIZED
    assert not play.sent[TO_BROKER]


def test_an_invalid_topic_name_is_refused() -> None:
    play = Play()
    play.ask(put(1, "a/b"))
    assert error_of(play.sent[TO_CLIENT]).refusal is Refusal.NAME


def test_topics_take_bytes_of_a_budget_and_give_them_back() -> None:
    budget = Budget(1024)
    play = Play(budget=budget)
    play.ask(put(1, "a"), put(2, "b"))
    play.response(done(1))
    assert play.sent[TO_CLIENT] == done(1) + no(2, NO_ROOM)
    assert not play.session.close()
    assert budget.taken == 0
    assert not play.services.live


def test_many_accounts_are_given_back_in_steps() -> None:
    play = Play()
    play.ask(*(put(n, f"topic-{n}") for n in range(600)))
    steps = 1
    while play.session.close():
        steps += 1
    assert steps == 3
    assert not play.services.live


# -- answers in order ----------------------------------------------------------------------------


def test_a_refusal_keeps_its_place_among_the_brokers_answers() -> None:
    play = Play()
    play.ask(put(1, "a"), put(2, "forbidden"), put(3, "x/y"), put(4, "a"), frame(5, 99))
    assert play.sent[TO_CLIENT] == b""
    play.response(done(1), done(4))
    ids, rest = [], play.sent[TO_CLIENT]
    while rest:
        ids.append(head_of(rest)[0])
        rest = rest[int.from_bytes(rest[:4]) + 4 :]
    assert ids == [1, 2, 3, 4, 5]


def test_a_refusal_is_sent_at_once_if_no_answer_is_owed() -> None:
    play = Play()
    effects = play.ask(put(1, "forbidden"))
    assert [type(it) for it in effects] == [Drop, Inject, Pause]
    assert effects[-1] == Pause(TO_BROKER, NOW + REFUSED)


@pytest.mark.parametrize("response", [done(1), frame(1, Kind.WHERE | ANSWER, places([]))])
def test_an_answer_without_a_request_is_a_violation(response: bytes) -> None:
    with pytest.raises(PeerError):
        Play().response(response)


def test_an_unknown_request_that_must_not_pass_ends_the_connection() -> None:
    (effect,) = Play(unknown_pass=False).ask(frame(1, 99))
    assert isinstance(effect, End)
    assert effect.reason is EndReason.UNKNOWN_COMMAND


# -- limits --------------------------------------------------------------------------------------


def test_a_put_above_its_limit_is_refused_and_a_later_one_passes() -> None:
    play = Play()
    play.services.lease = 2
    play.ask(put(1, "a"))
    play.ask(put(2, "a", "b"))
    play.response(done(1))
    assert play.sent[TO_CLIENT] == done(1) + no(2, TOO_OFTEN)
    for account in play.services.admitted:
        account.grant(2)
    assert play.ask(put(3, "a", "b")) == ()


def test_no_request_overtakes_a_delayed_lookup() -> None:
    play = Play()
    play.services.paced = {Action.LOOKUP}
    play.services.delay = 2.0
    effects = play.ask(where(1, "a", "b"))
    assert [type(it) for it in effects] == [Drop, Later, Pause]
    assert play.session.leave(NOW) == ()
    play.carry_out(play.later[0].then(NOW + 2), TO_BROKER)
    assert play.sent[TO_BROKER] == where(1, "a", "b")


def test_a_lookup_asks_again_for_its_remaining_topics() -> None:
    play = Play()
    play.services.paced = {Action.LOOKUP}
    play.services.delay = again = Again(0.5, NOW)
    play.ask(where(1, "a", "b"))
    play.services.delay = 0.0
    play.carry_out(play.later[0].then(NOW + 0.5), TO_BROKER)
    assert play.services.again == [None, again, None]
    assert play.sent[TO_BROKER] == where(1, "a", "b")


# -- WHERE ---------------------------------------------------------------------------------------


def test_where_names_the_gateways_addresses() -> None:
    play = Play()
    play.ask(where(1, "a"))
    play.response(frame(1, Kind.WHERE | ANSWER, places([("a", *BROKER_1.pair)])))
    assert places_of(play.sent[TO_CLIENT]) == [("a", NAME_1, 6650)]


def test_a_broker_without_a_gateway_address_is_not_named() -> None:
    play = Play()
    play.ask(where(1, "a"))
    play.response(frame(1, Kind.WHERE | ANSWER, places([("a", "w" * 250, 1)])))
    assert error_of(play.sent[TO_CLIENT]).refusal is Refusal.NOT_READY


# -- ends ----------------------------------------------------------------------------------------


def test_a_revoked_account_is_released_alone() -> None:
    play = Play()
    play.ask(put(1, "a"), put(2, "b"))
    first = play.services.admitted[0]
    denial = Denial(Refusal.UNAUTHORIZED, "not any more")
    assert play.session.revoke(first, denial, NOW) == ()
    assert play.services.released == [first]
    play.services.forbids = True
    assert play.ask(put(3, "b")) == ()
    assert play.ask(put(4, "a"))[0] == Drop()


def test_a_leaving_client_gets_all_answers_first() -> None:
    play = Play()
    play.ask(put(1, "a"))
    assert play.session.leave(NOW) == ()
    play.ask(put(2, "a"))
    play.response(done(1))
    assert play.sent[TO_CLIENT] == done(1) + no(2, MOVED)
    assert play.session.leave(NOW) is None


# -- opening -------------------------------------------------------------------------------------


def hello(name: str, token: str) -> bytes:
    return frame(1, Kind.HELLO, text(name) + text("test 1") + text(token))


WELCOME = frame(1, Kind.HELLO | ANSWER, text("welcome"))
DIALLED = Dialled(Address("broker", 1))


def play_opening(
    opening: Opening, *results: StepResult
) -> tuple[list[Step], Opened | Refused | None]:
    """Run an opening with these results; return its steps, and its outcome if it has ended."""
    steps = [next(opening)]
    for result in results:
        try:
            steps.append(opening.send(result))
        except StopIteration as stop:
            return steps, stop.value
    return steps, None


def test_a_verified_client_has_its_principal_sent_to_the_broker() -> None:
    services = FakeServices()
    entry = MemoEntry(EntrySettings(services=services, mode=Mode.VERIFY))
    said = hello("whoever", "alice's token")
    steps, outcome = play_opening(entry.open(ORIGIN), said, DIALLED, None, WELCOME, None)
    introduced = frame(1, Kind.HELLO, text("alice") + text("test 1") + text(OWN.data))
    assert steps == [
        Receive(Peer.CLIENT),
        Dial(None),
        Transmit(Peer.BROKER, introduced),
        Receive(Peer.BROKER),
        Transmit(Peer.CLIENT, WELCOME),
    ]
    assert isinstance(outcome, Opened)
    assert outcome.session.caller == Caller(
        "memo", "clients", "main", ORIGIN.id, ORIGIN.host, "alice", "test 1"
    )
    assert outcome.session.expires_at == 1000.0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (hello("alice", "wrong"), EndReason.AUTHENTICATION_FAILED),
        (put(1, "a"), EndReason.CLIENT_VIOLATION),
        (b"\0\0\0\1a", EndReason.CLIENT_VIOLATION),
        (Denial(Refusal.TIMEOUT, "too slow"), EndReason.HANDSHAKE_TIMEOUT),
    ],
)
def test_a_refused_client_gets_a_reason(said: StepResult, reason: EndReason) -> None:
    entry = MemoEntry(EntrySettings(services=FakeServices(), mode=Mode.VERIFY))
    _, outcome = play_opening(entry.open(ORIGIN), said)
    assert isinstance(outcome, Refused)
    assert outcome.reason is reason
    assert error_of(outcome.farewell).text


def test_a_trace_describes_frames_without_secrets() -> None:
    entry = MemoEntry(EntrySettings(services=FakeServices()))
    assert entry.describe(Direction.TO_BROKER, put(3, "a", "b")) == "PUT 3 a:2 b:2"
    assert entry.describe(Direction.TO_BROKER, where(4, "a")) == "WHERE 4 a"
    assert "secret" not in entry.describe(Direction.TO_BROKER, hello("alice", "secret"))
    for cut in (b"\0", frame(1, 77)):
        assert entry.describe(Direction.TO_BROKER, cut) == "not decodable"
