"""Every interleaving of what opens and ends producers and consumers, from both sides.

`Chaos`: peers that say anything at any time. What must hold whatever they say: every account is
given back exactly once, and nothing is counted or sent for an id that is not open.

`Honest`: a model client and a model broker, as real ones behave, with frames on their way between
them. What must hold: a broker never gets a SEND that it would end the connection for, and a
client that believes its producer open is not left waiting.

Events are drawn as plain lists: a rule-based machine leaves out rules at random, and then hardly
any producer is ever open.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from enum import Enum, auto
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.account import Action
from gateway.wire.contract import Effects, Forward, Inject, Later, Replace
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.handles import bytes_kept
from gateway.wire.pulsar.incarnations import UNANSWERED
from tests.support.scanners import scanners_of

from .frames import (
    close_consumer,
    close_producer,
    error,
    message,
    producer,
    producer_success,
    queued,
    read,
    receipt,
    send,
    send_error,
    subscribe,
    success,
    unsubscribe,
)
from .script import Outcome, Play

Asking = Callable[..., bytes]


class Chaos:
    """Each event takes an id, 1 or 2, and a number to make something of."""

    def __init__(self) -> None:
        self.play = Play()
        self.requests = count(1)
        self.asked: dict[tuple[Asking, int], list[int]] = defaultdict(lambda: [0])
        self.sent = 0
        self.given_up: set[int] = set()
        """Producers that the client closed after it had asked for them."""
        self.may_send: set[int] = set()

    # -- the client ----------------------------------------------------------------------------

    def opens(self, id: int, number: int) -> None:
        if self._ask(producer, id) == "drop + inject":
            return  # too often without a response
        self.given_up.discard(id)
        self.may_send.discard(id)

    def sends(self, id: int, number: int) -> None:
        words = self.play.client(send(id)).words
        assert words in ("pass", "drop", "hold")
        assert words == "drop" or id in self.may_send
        self.sent += words == "pass"

    def closes(self, id: int, number: int) -> None:
        if self._ask(close_producer, id) == "forward":
            self.given_up.add(id)
            self.may_send.discard(id)

    def asks_for_a_consumer(self, id: int, number: int) -> None:
        words = self._ask(CONSUMER_REQUESTS[number % 4], id)
        assert words.endswith("forward") or words == "drop + inject"

    def _ask(self, ask: Asking, id: int) -> str:
        request = next(self.requests)
        self.asked[ask, id].append(request)
        return self.play.client(ask(id, request=request)).words

    # -- the policy ----------------------------------------------------------------------------

    def is_leased(self, id: int, number: int) -> None:
        handle = self.play.session.incarnations.handles.producers.get(id)
        if handle is not None:
            handle.account.hold()
            handle.account.grant(number)

    # -- the broker ----------------------------------------------------------------------------

    def is_opened(self, id: int, number: int) -> None:
        request = self._asked(producer, id, number)
        self.play.broker(producer_success(request)).forwards()
        if request and id not in self.given_up:
            self.may_send.add(id)

    def is_queued(self, id: int, number: int) -> None:
        self.play.broker(queued(self._asked(producer, id, number))).forwards()

    def succeeds(self, id: int, number: int) -> None:
        request = self._asked(REQUESTS[number % 5], id, number // 5)
        assert self.play.broker(success(request)).words.startswith("forward")

    def fails(self, id: int, number: int) -> None:
        request = self._asked(REQUESTS[number % 5], id, number // 5)
        assert self.play.broker(error(request)).words.startswith("forward")

    def is_closed(self, id: int, number: int) -> None:
        words = self.play.broker(close_producer(id)).words
        assert words.startswith(("forward", "drop + discard + later"))
        self.may_send.discard(id)

    def receipts_came(self, id: int, number: int) -> None:
        self.play.session.delivered(0.0)

    def is_later(self, id: int, number: int) -> None:
        if number < len(self.play.laters):
            self.play.goes_on(number, number)

    def consumer_is_closed(self, id: int, number: int) -> None:
        assert self.play.broker(close_consumer(id)).words.startswith("forward")

    def hears(self, id: int, number: int) -> None:
        self.play.broker(receipt(id)).passes()
        self.play.broker(message(id)).passes()
        assert self.play.broker(send_error(id)).words.endswith("forward")

    def _asked(self, ask: Asking, id: int, number: int) -> int:
        """The latest request of a kind, or now and then an older one; 0: never made."""
        requests = self.asked[ask, id]
        return requests[max(0, len(requests) - 1 - max(0, number - 5))]

    # -- what must hold ------------------------------------------------------------------------

    def check(self) -> None:
        handles, live = self.play.session.incarnations.handles, set(self.play.services.live)
        assert {handle.account for handle in handles if not handle.released} == live
        assert len(handles._awaited) <= (UNANSWERED + 2) * len(handles)
        assert self.play.listener.budget.taken == sum(
            bytes_kept(handle.account.subject) for handle in handles
        )
        to_broker, to_client = scanners_of(self.play.session)
        for table in (to_broker.producers, to_client.producers, to_client.consumers):
            assert set(table.values()) <= live
        produced = [each for each in self.play.services.admitted if each.action is Action.PRODUCE]
        assert sum(account.frames for account in produced) == self.sent

    def end(self) -> None:
        self.play.session.close()
        assert Counter(self.play.services.released) == Counter(self.play.services.admitted)
        assert len(self.play.session.incarnations.handles) == 0
        assert self.play.listener.budget.taken == 0


REQUESTS: list[Asking] = [producer, close_producer, subscribe, close_consumer, unsubscribe]
CONSUMER_REQUESTS: list[Asking] = [subscribe, subscribe, close_consumer, unsubscribe]

CHAOTIC = [
    *(Chaos.opens, Chaos.opens, Chaos.is_opened, Chaos.is_opened, Chaos.is_opened),
    *(Chaos.sends, Chaos.sends, Chaos.is_leased, Chaos.is_queued, Chaos.hears),
    *(Chaos.receipts_came, Chaos.is_later),
    *(Chaos.closes, Chaos.is_closed, Chaos.succeeds, Chaos.succeeds, Chaos.fails),
    *(Chaos.asks_for_a_consumer, Chaos.asks_for_a_consumer, Chaos.consumer_is_closed),
]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(CHAOTIC), st.sampled_from([1, 1, 2]), st.integers(0, 7)),
        min_size=20,
        max_size=60,
    )
)
def test_whatever_peers_say_each_account_is_given_back_once(
    events: list[tuple[Callable[[Chaos, int, int], None], int, int]],
) -> None:
    chaos = Chaos()
    for event, id, number in events:
        event(chaos, id, number)
        chaos.check()
    chaos.end()


# -- peers as they are -------------------------------------------------------------------------


class At(Enum):
    """How far a producer is at the broker, or in the client."""

    NOWHERE = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSING = auto()


class ModelBroker:
    """One producer of a connection, as brokers 4.x and 5.0 keep it.

    `was_closed`: by the broker itself; SENDs are ignored then, not a reason to hang up.
    """

    def __init__(self) -> None:
        self.says: deque[bytes] = deque()
        self.at = At.NOWHERE
        self.request = 0
        self.was_closed = False

    def hears(self, frame: bytes) -> None:
        command = read(frame)
        match Kind(command.type):
            case Kind.PRODUCER:
                self._producer(command.producer.request_id)
            case Kind.CLOSE_PRODUCER:
                # In the midst of its creation as well: then PRODUCER gets no response at all.
                self.at = At.NOWHERE
                self.says.append(success(command.close_producer.request_id))
            case Kind.SEND:
                assert self.at is At.OPEN or self.was_closed, "the connection would be cut"
                if self.at is At.OPEN:
                    self.says.append(receipt(1, command.send.sequence_id))
            case other:
                raise AssertionError(other)

    def _producer(self, request: int) -> None:
        match self.at:
            case At.OPEN:
                self.says.append(producer_success(request))
            case At.OPENING:
                self.says.append(error(request, text="already present on the connection"))
            case _:
                self.at, self.request, self.was_closed = At.OPENING, request, False

    def creates(self, *, good: bool) -> None:
        self.at = At.OPEN if good else At.NOWHERE
        self.says.append(producer_success(self.request) if good else error(self.request))

    def unloads(self) -> None:
        self.at, self.was_closed = At.NOWHERE, True
        self.says.append(close_producer(1))


class ModelClient:
    """One producer of a client that asks again after it was refused or closed."""

    def __init__(self) -> None:
        self.at = At.NOWHERE
        self.request = 0

    def hears(self, frame: bytes) -> None:
        command = read(frame)
        match Kind(command.type):
            case Kind.PRODUCER_SUCCESS if command.producer_success.request_id == self.request:
                self.at = At.OPEN
            case Kind.ERROR if command.error.request_id == self.request:
                self.at = At.NOWHERE
            case Kind.SUCCESS if command.success.request_id == self.request:
                self.at = At.NOWHERE
            case Kind.CLOSE_PRODUCER if self.at is At.OPEN:
                self.at = At.NOWHERE


class Honest:
    """Frames to the broker wait in `underway`, those to the client in `broker.says`."""

    def __init__(self) -> None:
        self.play = Play()
        self.client = ModelClient()
        self.broker = ModelBroker()
        self.underway: deque[bytes] = deque()
        self.later: deque[Later] = deque()
        self.requests = count(1)
        self.sequence = count()

    def opens(self) -> None:
        """Also where it is open: Java opens again by itself after a SEND_ERROR."""
        if self.client.at in (At.NOWHERE, At.OPEN):
            self.client.at, self.client.request = At.OPENING, next(self.requests)
            self._say(producer(1, request=self.client.request))

    def gives_up(self) -> None:
        """Also while it is opened: the response takes too long."""
        if self.client.at in (At.OPENING, At.OPEN):
            self.client.at, self.client.request = At.CLOSING, next(self.requests)
            self._say(close_producer(1, request=self.client.request))

    def sends(self) -> None:
        if self.client.at is At.OPEN:
            self._say(send(1, next(self.sequence)))

    def reaches_the_broker(self) -> None:
        if self.underway:
            self.broker.hears(self.underway.popleft())

    def reaches_the_client(self) -> None:
        if self.broker.says:
            frame = self.broker.says.popleft()
            outcome = self.play.broker(frame)
            for each in _carried(outcome, frame):
                self.client.hears(each)
            self.later.extend(it for it in outcome.effects or () if isinstance(it, Later))
            self._goes_on(self.play.session.delivered(0.0) or ())

    def is_later(self) -> None:
        """No receipt has come meanwhile."""
        if self.later:
            later = self.later.popleft()
            self._goes_on(later.then(later.until + 10))

    def _goes_on(self, effects: Effects) -> None:
        for each in _carried(Outcome(effects), b""):
            self.client.hears(each)

    def is_created(self) -> None:
        if self.broker.at is At.OPENING:
            self.broker.creates(good=True)

    def is_refused(self) -> None:
        if self.broker.at is At.OPENING:
            self.broker.creates(good=False)

    def is_unloaded(self) -> None:
        if self.broker.at is At.OPEN:
            self.broker.unloads()

    def _say(self, frame: bytes) -> str:
        outcome = self.play.client(frame)
        self.underway.extend(_carried(outcome, frame))
        return outcome.words

    def settle(self) -> None:
        """Let all arrive that is on its way."""
        while self.underway or self.broker.says or self.later or self.broker.at is At.OPENING:
            self.is_later()
            self.reaches_the_broker()
            self.is_created()
            self.reaches_the_client()

    def end(self) -> None:
        """A client whose producer is open gets a receipt."""
        self.settle()
        assert self.client.at in (At.NOWHERE, At.OPEN)
        if self.client.at is At.OPEN:
            assert self._say(send(1, next(self.sequence))) == "pass"
            self.reaches_the_broker()
            assert self.broker.says


def _carried(outcome: Outcome, frame: bytes) -> list[bytes]:
    """What goes on, to whomever."""
    onward = []
    for effect in outcome.effects if outcome.effects is not None else (Forward(),):
        match effect:
            case Forward():
                onward.append(frame)
            case Replace(data) | Inject(_, data):
                onward.append(data)
            case _:
                pass
    return onward


HONEST = [
    *(Honest.opens, Honest.opens, Honest.gives_up, Honest.sends, Honest.sends),
    *(Honest.reaches_the_broker, Honest.reaches_the_broker, Honest.reaches_the_broker),
    *(Honest.reaches_the_client, Honest.reaches_the_client, Honest.reaches_the_client),
    *(Honest.is_created, Honest.is_created, Honest.is_refused, Honest.is_unloaded),
    Honest.is_later,
]


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(HONEST), min_size=8, max_size=60))
def test_with_real_peers_no_send_is_forbidden_and_none_is_left_waiting(
    events: list[Callable[[Honest], None]],
) -> None:
    honest = Honest()
    for event in events:
        event(honest)
    honest.end()


def test_services_are_told_what_was_open_before() -> None:
    """It is no news to a rule that rejects."""
    play = Play()
    play.client(producer(1, request=1)).happens()
    play.broker(producer_success(1)).happens()
    play.client(producer(1, request=2)).happens()
    play.broker(producer_success(2)).happens()
    while play.reset().effects is not None:
        pass
    play.client(producer(1, request=3)).happens()
    play.client(producer(2, request=4)).happens()
    assert [asked.again for asked in play.services.asked] == [False, True, True, False]
