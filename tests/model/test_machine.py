"""Whatever happens in whatever order, the gateway loses, doubles and reorders nothing.

The state machine draws the actions of clients, brokers, limits and the network, and which frame
moves next. Then everything settles: allowances return, closed producers and consumers are reopened,
all frames move. Every message must now have its receipt, be stored in order, and have been
received. The broker itself checks that no SEND of an ended incarnation reaches it: a held frame
that is released too late would be stored twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.wire.account import Account
from gateway.wire.contract import Denial, Refusal
from gateway.wire.counters import ENDLESS
from tests.playbooks.services import OTHER_CLUSTER, URL_2

from .broker import Connection, Connections, Topic
from .client import Client, Consumer, Party, Producer, State
from .links import Direct, Gateway

TOPICS = ("persistent://public/default/a", "persistent://public/default/b")
MOST = 4  # producers, and consumers
MOST_MESSAGES = 60  # of a topic
MOST_GATEWAYS = 3  # alive or stopping at a time
MOST_LOSSES = 2  # with more, little else happens

LEASES = (0, 2, 100_000, ENDLESS)
"""What limits let pass at first: nothing, little, more than there is, everything."""

NOT_NOW = Denial(Refusal.TOO_OFTEN, "not now")

SOME = st.integers(0, 1000)
ELSEWHERE = st.sampled_from([f"pulsar://{OTHER_CLUSTER}", "pulsar://unknown.example:6650"])


class World(RuleBasedStateMachine):
    """A client, a broker, and the link between them."""

    between: type[Direct] = Direct

    def __init__(self) -> None:
        super().__init__()
        self.topics = {name: Topic(name) for name in TOPICS}
        self.connections = Connections()
        self.opens_after_close = False
        self.lease = ENDLESS
        self.client = Client(self.between())
        self._accept(self.client.link)
        self.now = 0.0
        self.disturbed = False  # by an event that doubles messages on a direct connection too
        self.ids = 0
        self.losses = 0

    def _accept(self, link: Direct) -> None:
        others = self.connections
        connection = Connection(link, self.topics, self.client.said, others)
        connection.opens_after_close = self.opens_after_close
        link.limit(self.lease)
        others.append(connection)

    @initialize(
        patient=st.booleans(), opens_after_close=st.booleans(), lease=st.sampled_from(LEASES)
    )
    def begins(self, patient: bool, opens_after_close: bool = False, lease: int = ENDLESS) -> None:
        """Start with open producers and a consumer: a drawn run would spend most of its steps on
        that."""
        self.client.patient = patient
        self.opens_after_close = opens_after_close
        self.lease = lease
        for connection in self.connections:
            connection.opens_after_close = opens_after_close
            connection.link.limit(lease)
        for topic in TOPICS:
            self.opens(topic, produces=True)
        self.opens(TOPICS[0], produces=False)
        self._move_all()

    # -- the application -----------------------------------------------------------------------

    @precondition(lambda self: self.ids < 2 * MOST)
    @rule(topic=st.sampled_from(TOPICS), produces=st.booleans(), queue=st.sampled_from([1, 1000]))
    def opens(self, topic: str, produces: bool, queue: int = 1000) -> None:
        self.ids += 1
        if produces:
            producer = Producer(f"p{self.ids}", self.ids, topic)
            self.client.producers[self.ids] = producer
            self.client.open(producer)
        else:
            consumer = Consumer(self.ids, topic, queue)
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
        """As Java does after a SEND_ERROR: send PRODUCER again for an open producer."""
        producers = [p for p in self.client.producers.values() if p.state is State.OPEN]
        if producers:
            # PRODUCER may cross a close, and open a producer that the client no longer wants.
            self.disturbed = self.connections.crossed = True
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

    @rule(pick=SOME, where=st.sampled_from(["", URL_2]))
    def unloads(self, pick: int, where: str = "") -> None:
        """Close all producers and consumers of one topic, with or without naming the new broker."""
        told = {"assignedBrokerServiceUrl": where} if where else {}
        topic = self.topics[TOPICS[pick % len(TOPICS)]]
        self.disturbed = True
        for broker in self.connections:
            broker.unload(topic, **told)

    @rule(pick=SOME)
    def terminates(self, pick: int) -> None:
        """Terminate one topic."""
        for broker in self.connections:
            broker.terminate(self.topics[TOPICS[pick % len(TOPICS)]])

    @rule(pick=SOME, url=ELSEWHERE)
    def migrates(self, pick: int, url: str) -> None:
        """Migrate one topic to another cluster, with a gateway or without."""
        self.disturbed = True
        for broker in self.connections:
            broker.migrate(self.topics[TOPICS[pick % len(TOPICS)]], url)

    @rule(url=ELSEWHERE)
    def has_migrated(self, url: str) -> None:
        """Answer the next opening by the news of a migration."""
        self.connections[-1].elsewhere = url

    @rule()
    def refuses(self) -> None:
        self.connections[-1].refuse_next = True

    @rule(pick=SOME)
    def dispatches(self, pick: int) -> None:
        consumers = self._consumers()
        if consumers:
            broker, id = consumers[pick % len(consumers)]
            broker.dispatch(id)

    @rule(pick=SOME, most=st.integers(1, 5))
    def writes(self, pick: int, most: int) -> None:
        producers = [(broker, id) for broker in self.connections for id in broker.producers]
        if producers:
            broker, id = producers[pick % len(producers)]
            broker.acknowledge(id, most)

    @rule(pick=SOME, most=st.integers(1, 5))
    def writes_late(self, pick: int, most: int) -> None:
        """Answer messages of a closed producer."""
        late = [(broker, it) for broker in self.connections for it in broker.late]
        if late:
            broker, it = late[pick % len(late)]
            broker.answer_late(it, most, None)

    def _consumers(self) -> list[tuple[Connection, int]]:
        return [(broker, id) for broker in self.connections for id in broker.consumers]

    # -- limits --------------------------------------------------------------------------------

    @rule(pick=SOME)
    def holds(self, pick: int) -> None:
        accounts = self._accounts()
        if accounts:
            link, account = accounts[pick % len(accounts)]
            link.hold(account)

    @rule(pick=SOME, messages=st.integers(1, 3))
    def grants(self, pick: int, messages: int) -> None:
        accounts = self._accounts()
        if accounts:
            link, account = accounts[pick % len(accounts)]
            link.grant(account, messages)

    @rule()
    def the_rules_change(self) -> None:
        """All limits start again without allowance."""
        for link, account in self._accounts():
            link.hold(account)

    @rule(delay=st.sampled_from([0.0, 1.0, 2.0, 2.0, NOT_NOW]))
    def things_may_be_opened_only_so_often(self, delay: float | Denial) -> None:
        for connection in self.connections:
            connection.link.pace(delay)

    @rule(pick=SOME)
    def resets(self, pick: int) -> None:
        """Reset a producer that was held for too long."""
        accounts = self._accounts()
        if accounts:
            link, account = accounts[pick % len(accounts)]
            link.reset(account)

    @rule()
    def resets_go_on(self) -> None:
        for connection in self.connections:
            connection.link.go_on()

    def _accounts(self) -> list[tuple[Direct, Account]]:
        links = (connection.link for connection in self.connections)
        return [(link, account) for link in links for account in link.accounts]

    # -- the network ---------------------------------------------------------------------------

    @rule(pick=SOME, times=st.integers(1, 20))
    def moves(self, pick: int, times: int) -> None:
        for _ in range(times):
            moves = self._moves()
            if moves:
                moves[pick % len(moves)]()

    @precondition(lambda self: self.losses < MOST_LOSSES)
    @rule(pick=SOME)
    def loses_a_connection(self, pick: int) -> None:
        self.losses += 1
        self.disturbed = True
        self._end(self.connections[pick % len(self.connections)])

    def _end(self, connection: Connection) -> None:
        link = connection.link
        link.close()
        connection.end()
        self.connections.remove(connection)
        self.client.lose(link)
        if self.client.link is link:
            self._dial_another()

    def _dial_another(self) -> None:
        self.client.link = self.between()
        self._accept(self.client.link)

    # -- the gateway stops ---------------------------------------------------------------------

    @precondition(lambda self: len(self.connections) < MOST_GATEWAYS)
    @rule()
    def the_gateway_stops(self) -> None:
        """Clients that are told to move find another gateway."""
        link = self.client.link
        if link.can_stop:
            link.stops = True
            self._dial_another()

    @rule(seconds=st.sampled_from([0.01, 0.01, 3.0]))
    def it_moves_its_clients(self, seconds: float) -> None:
        self.now += seconds
        self.connections.crossed |= seconds > 1
        self.disturbed |= seconds > 1
        for connection in [it for it in self.connections if it.link.stops]:
            if not connection.link.leave(self.now) and not self._moves_of(connection):
                assert not any(
                    party.state in _LIVE for party in self.client.parties_on(connection.link)
                ), "the connection ends with an open producer or consumer"
                self._end(connection)

    @rule()
    def everything_moves(self) -> None:
        self._move_all()

    def _move_all(self) -> None:
        while moves := self._moves():
            moves[0]()

    def _moves(self) -> list[Callable[[], None]]:
        return [move for connection in self.connections for move in self._moves_of(connection)]

    def _moves_of(self, connection: Connection) -> list[Callable[[], None]]:
        link = connection.link
        moves = [*link.moves, *connection.openings]
        if link.to_broker:
            moves.append(connection.read)
        if link.to_client:
            moves.append(partial(self.client.read, link))
        return moves

    # -- final checks --------------------------------------------------------------------------

    def teardown(self) -> None:
        self._settle()
        for producer in self.client.producers.values():
            self._check_producer(producer)
        for topic in self.topics.values():
            self._check_consumed(topic)
        for connection in self.connections:
            connection.link.check()
            connection.link.close()

    def _settle(self) -> None:
        for _ in range(200):
            for connection in self.connections:
                connection.refuse_next = False
                connection.elsewhere = ""
                connection.link.pace(0.0)
                connection.link.go_on()
                connection.link.grant_all()
            self._move_all()
            for broker in self.connections:
                for id in tuple(broker.producers):
                    broker.acknowledge(id, MOST_MESSAGES)
            self._move_all()
            self.it_moves_its_clients(0.01)
            for party in self._parties(State.CLOSED):
                self.client.open(party)
            dispatched = [broker.dispatch(id) for broker, id in self._consumers()]
            if not any(dispatched) and not self._moves() and not self._is_busy():
                return
        raise AssertionError("it never settles")

    def _is_busy(self) -> bool:
        """Return True while a stop, a reset or held frames are unfinished."""
        links = [connection.link for connection in self.connections]
        return any(link.stops or link.is_resetting or link.is_holding for link in links)

    def _check_producer(self, producer: Producer) -> None:
        assert producer.state in (State.OPEN, State.GONE), (
            f"the producer stays {producer.state.name}"
        )
        assert not producer.pending, "sent, and never acknowledged"
        log = [
            it.sequence for it in self.topics[producer.topic].log if it.producer == producer.name
        ]
        assert self.disturbed or len(log) == len(set(log)), "stored twice without a disturbance"
        firsts = list(dict.fromkeys(log))
        assert firsts == sorted(firsts), "stored in another order than sent"
        assert set(producer.done) <= set(log), "acknowledged, and not stored"

    def _check_consumed(self, topic: Topic) -> None:
        consumers = [c for c in self.client.consumers.values() if c.topic == topic.name]
        if any(consumer.state is State.OPEN for consumer in consumers):
            assert topic.acknowledged == set(range(len(topic.log))), "stored, and never received"


_LIVE = (State.OPENING, State.OPEN)
_LEFT = (State.CLOSING, State.GONE)


class Through(World):
    between = Gateway


def small(between: type[Direct]) -> World:
    """Return a world whose events a test chooses."""

    class Small(World):
        pass

    Small.between = between
    return Small()


SETTINGS = settings(
    max_examples=300,
    stateful_step_count=60,
    derandomize=True,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def test_the_model_itself_loses_nothing() -> None:
    run_state_machine_as_test(World, settings=settings(SETTINGS, max_examples=100))


def test_the_gateway_loses_doubles_and_reorders_nothing() -> None:
    run_state_machine_as_test(Through, settings=SETTINGS)


@pytest.mark.parametrize("between", [Direct, Gateway])
def test_a_close_after_a_refused_reopening(between: type[Direct]) -> None:
    """Found by a longer search: the close is meant for the previous incarnation."""

    world = small(between)
    world.begins(patient=True)
    world.refuses()
    world.sees_an_error_and_opens_in_place(0)
    world.sends(0, 1)
    world.everything_moves()
    world.opens_again()
    world.unloads(0)
    world.teardown()


@pytest.mark.parametrize("between", [Direct, Gateway])
def test_a_withheld_migration_meets_a_reopening(between: type[Direct]) -> None:
    """Found by a longer search: the migration concerns the previous incarnation, and the broker
    opens the producer whose opening the client was told had failed."""

    world = small(between)
    world.begins(patient=True)
    world.the_gateway_stops()
    world.sees_an_error_and_opens_in_place(1)
    world.migrates(1, "pulsar://unknown.example:6650")
    world.everything_moves()
    world.opens_again()
    world.unloads(1, "")
    world.teardown()


@pytest.mark.parametrize("between", [Direct, Gateway])
def test_a_topic_migrates_twice_before_the_gateway_stops(between: type[Direct]) -> None:
    """Found by a longer search: the migration is the response, and no other one is awaited."""

    world = small(between)
    world.begins(patient=False)
    world.loses_a_connection(0)
    world.opens_again()
    world.has_migrated("pulsar://unknown.example:6650")
    world.everything_moves()
    world.opens_again()
    world.has_migrated("pulsar://blue.internal:6650")
    world.everything_moves()
    world.the_gateway_stops()
    world.teardown()


@pytest.mark.parametrize("between", [Direct, Gateway])
def test_a_consumer_asks_before_success_and_again_after_it(between: type[Direct]) -> None:
    """The broker ignores the first permit; the limit is far above the traffic."""
    world = small(between)
    world.begins(patient=True, lease=100_000)
    world.opens(TOPICS[0], produces=False, queue=1)
    world.everything_moves()
    world.closes(0)
    world.unloads(0)
    world.everything_moves()
    world.opens_again()
    world.everything_moves()
    world.opens(TOPICS[0], produces=True)
    world.everything_moves()
    world.sends(0, 3)
    world.teardown()


@pytest.mark.parametrize("between", [Direct, Gateway])
def test_a_topic_is_terminated_with_unanswered_messages(between: type[Direct]) -> None:
    """The close must come before the errors: a client that gets an error first never reopens the
    producer."""
    world = small(between)
    world.begins(patient=True)
    world.sends(0, 2)
    world.everything_moves()
    world.terminates(0)
    world.everything_moves()
    assert not any(
        party.state is State.OPEN
        for party in world.client.producers.values()
        if party.topic == TOPICS[0]
    )
    world.teardown()
