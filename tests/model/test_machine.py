"""Whatever happens in whatever order, the gateway loses, doubles and reorders nothing.

The machine draws what clients, brokers, limits and the network do, and which frame moves next.
After it everything settles: allowances return, what was closed is opened again, all frames move.
Then every message has its receipt and stands in its topic, in order, and was received.
The broker itself checks that no SEND reaches it for an incarnation that is over: there, a held
frame that is released too late would be doubled.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from .broker import Connection, Topic
from .client import Client, Consumer, Party, Producer, State
from .links import Direct, Gateway

TOPICS = ("persistent://public/default/a", "persistent://public/default/b")
MOST = 4  # producers, and consumers
MOST_MESSAGES = 60  # of a topic
MOST_LOSSES = 2  # more, and little else happens

SOME = st.integers(0, 1000)


class World(RuleBasedStateMachine):
    """Client and broker, and what lies between."""

    between: type[Direct] = Direct

    def __init__(self) -> None:
        super().__init__()
        self.topics = {name: Topic(name) for name in TOPICS}
        link = self.between()
        self.client = Client(link)
        self.broker = Connection(link, self.topics, self.client.said)
        self.ids = 0
        self.losses = 0

    @initialize(patient=st.booleans())
    def begins(self, patient: bool) -> None:
        """With some open: a drawn run would spend most of its steps on that."""
        self.client.patient = patient
        for topic in TOPICS:
            self.opens(topic, produces=True)
        self.opens(TOPICS[0], produces=False)
        self._move_all()

    # -- the application -----------------------------------------------------------------------

    @precondition(lambda self: self.ids < 2 * MOST)
    @rule(topic=st.sampled_from(TOPICS), produces=st.booleans())
    def opens(self, topic: str, produces: bool) -> None:
        self.ids += 1
        if produces:
            producer = Producer(f"p{self.ids}", self.ids, topic)
            self.client.producers[self.ids] = producer
            self.client.open(producer)
        else:
            consumer = Consumer(self.ids, topic)
            self.client.consumers[self.ids] = consumer
            self.client.open(consumer)

    @rule()
    def opens_again(self) -> None:
        for party in self._parties(State.CLOSED):
            self.client.open(party)

    @rule(pick=SOME, count=st.integers(1, 3))
    def sends(self, pick: int, count: int) -> None:
        producers = [p for p in self.client.producers.values() if p.state not in _LEFT]
        if producers:
            producer = producers[pick % len(producers)]
            for _ in range(count):
                if producer.next < MOST_MESSAGES // MOST:
                    self.client.submit(producer)

    @rule(pick=SOME)
    def sees_an_error_and_opens_in_place(self, pick: int) -> None:
        """As Java does after a SEND_ERROR: PRODUCER once more, though nobody closed it."""
        producers = [p for p in self.client.producers.values() if p.state is State.OPEN]
        if producers:
            self.client.open(producers[pick % len(producers)])

    @rule(pick=SOME)
    def closes(self, pick: int) -> None:
        parties = self._parties(State.OPEN, State.OPENING)
        if parties:
            self.client.close(parties[pick % len(parties)])

    @rule(pick=SOME)
    def uses_an_id_again(self, pick: int) -> None:
        gone = [p for p in self.client.producers.values() if p.state is State.GONE]
        if gone and self.ids < 3 * MOST:
            before = gone[pick % len(gone)]
            self.ids += 1
            producer = Producer(f"p{self.ids}", before.id, before.topic)
            self.client.producers[before.id] = producer
            self.client.open(producer)

    def _parties(self, *states: State) -> list[Party]:
        everybody: list[Party] = [*self.client.producers.values(), *self.client.consumers.values()]
        return [party for party in everybody if party.state in states]

    # -- the broker ----------------------------------------------------------------------------

    @rule(pick=SOME)
    def unloads(self, pick: int) -> None:
        """One topic: everybody on it is closed."""
        topic = self.topics[TOPICS[pick % len(TOPICS)]]
        for id in [id for id, it in self.broker.producers.items() if it.topic is topic]:
            self.broker.close_producer(id)
        for id in [id for id, it in self.broker.consumers.items() if it.topic is topic]:
            self.broker.close_consumer(id)

    @rule()
    def refuses(self) -> None:
        self.broker.refuse_next = True

    @rule(pick=SOME)
    def dispatches(self, pick: int) -> None:
        consumers = list(self.broker.consumers)
        if consumers:
            self.broker.dispatch(consumers[pick % len(consumers)])

    # -- limits --------------------------------------------------------------------------------

    @rule(pick=SOME)
    def holds(self, pick: int) -> None:
        accounts = self.client.link.accounts
        if accounts:
            self.client.link.hold(accounts[pick % len(accounts)])

    @rule(pick=SOME, messages=st.integers(1, 3))
    def grants(self, pick: int, messages: int) -> None:
        accounts = self.client.link.accounts
        if accounts:
            self.client.link.grant(accounts[pick % len(accounts)], messages)

    # -- the network ---------------------------------------------------------------------------

    @rule(pick=SOME, times=st.integers(1, 20))
    def moves(self, pick: int, times: int) -> None:
        for _ in range(times):
            moves = self._moves()
            if moves:
                moves[pick % len(moves)]()

    @precondition(lambda self: self.losses < MOST_LOSSES)
    @rule()
    def loses_the_connection(self) -> None:
        self.losses += 1
        self.client.link.close()
        link = self.between()
        self.client.reconnect(link)
        self.broker = Connection(link, self.topics, self.client.said)

    @rule()
    def everything_moves(self) -> None:
        self._move_all()

    def _move_all(self) -> None:
        while moves := self._moves():
            moves[0]()

    def _moves(self) -> list[Callable[[], None]]:
        link = self.client.link
        moves = list(link.moves)
        if link.to_broker:
            moves.append(self.broker.read)
        if link.to_client:
            moves.append(self.client.read)
        return moves

    # -- in the end ----------------------------------------------------------------------------

    def teardown(self) -> None:
        self._settle()
        for producer in self.client.producers.values():
            self._check_producer(producer)
        for topic in self.topics.values():
            self._check_consumed(topic)
        self.client.link.check()
        self.client.link.close()

    def _settle(self) -> None:
        self.broker.refuse_next = False
        for _ in range(100):
            self.client.link.grant_all()
            self._move_all()
            for party in self._parties(State.CLOSED):
                self.client.open(party)
            dispatched = [self.broker.dispatch(id) for id in list(self.broker.consumers)]
            if not any(dispatched) and not self._moves():
                return
        raise AssertionError("it never settles")

    def _check_producer(self, producer: Producer) -> None:
        assert producer.state in (State.OPEN, State.GONE), f"it stays {producer.state.name}"
        assert not producer.pending, "sent, and never acknowledged"
        log = [
            it.sequence for it in self.topics[producer.topic].log if it.producer == producer.name
        ]
        firsts = list(dict.fromkeys(log))
        assert firsts == sorted(firsts), "stored in another order than sent"
        assert set(producer.done) <= set(log), "acknowledged, and not stored"

    def _check_consumed(self, topic: Topic) -> None:
        consumers = [c for c in self.client.consumers.values() if c.topic == topic.name]
        if any(consumer.state is State.OPEN for consumer in consumers):
            assert topic.acknowledged == set(range(len(topic.log))), "stored, and never received"


_LEFT = (State.CLOSING, State.GONE)


class Through(World):
    between = Gateway


SETTINGS = settings(
    max_examples=400,
    stateful_step_count=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_the_model_itself_loses_nothing() -> None:
    run_state_machine_as_test(World, settings=SETTINGS)


def test_the_gateway_loses_doubles_and_reorders_nothing() -> None:
    run_state_machine_as_test(Through, settings=SETTINGS)
