"""Random actions of clients and moves of a topic: no message is lost, none acknowledged returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.names import FullTopicName
from gateway.wire.pulsar.frames import Kind
from tests.support.examples import examples
from tests.unit.lab.sandbox.playbook import URLS, Client, command_of, kinds_of

Id = tuple[int, int]

CONSUMERS = 3
KEYS = "abc"

OFTEN = ["send", "send", "flow", "ack", "come"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*OFTEN * 3, "return", "leave", "leave", "move"]), st.integers(0, 17)
    ),
    min_size=30,
    max_size=80,
)


@dataclass
class World:
    """One subscription, its producer, and changing consumers."""

    type: int
    cluster: SandboxCluster = field(default_factory=lambda: SandboxCluster(URLS))
    consumers: dict[int, Client] = field(default_factory=dict)
    held: dict[int, list[Id]] = field(default_factory=dict)
    sent: list[Id] = field(default_factory=list)
    done: set[Id] = field(default_factory=set)

    def client(self) -> Client:
        return Client(self.cluster, self.cluster.owner(self.name))

    @property
    def name(self) -> FullTopicName:
        return FullTopicName("persistent", "public/default", "t")

    def send(self, number: int) -> None:
        producer = self.client()
        producer.produce()
        self.sent += producer.send(b"x", partition_key=KEYS[number % len(KEYS)])
        producer.session.close()

    def come(self, number: int) -> None:
        number %= CONSUMERS
        client = self.client()
        answer = client.subscribe(subType=self.type, consumer_name=f"c{number}", permits=0)[0]
        if number not in self.consumers and kinds_of([answer]) == ["Success"]:
            self.consumers[number], self.held[number] = client, []
        else:
            client.session.close()

    def leave(self, number: int) -> None:
        client = self.consumers.pop(number % CONSUMERS, None)
        if client is not None:
            client.session.close()
            self.held.pop(number % CONSUMERS)

    def flow(self, number: int) -> None:
        client = self.consumers.get(number % CONSUMERS)
        if client is not None:
            client.flow(number % 5 + 1)

    def ack(self, number: int) -> None:
        held = self.held.get(number % CONSUMERS)
        if held:
            id = held.pop(number % len(held))
            self.consumers[number % CONSUMERS].acknowledge(id)
            self.done.add(id)

    def return_(self, number: int) -> None:
        held = self.held.get(number % CONSUMERS)
        if held:
            some = held[: number % len(held) + 1] if self.type in {1, 3} else list(held)
            ids = [{"ledgerId": ledger, "entryId": entry} for ledger, entry in some]
            self.held[number % CONSUMERS] = [id for id in held if id not in some]
            redeliver = {"consumer_id": 1, "message_ids": ids}
            client = self.consumers[number % CONSUMERS]
            client.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, **redeliver)

    def move(self, number: int) -> None:
        if self.sent:
            self.cluster.move(self.name, assigned=bool(number % 2))
            self.collect()
            self.consumers.clear()
            self.held.clear()

    def collect(self) -> None:
        """Take deliveries; no acknowledged message is among them."""
        for number, client in self.consumers.items():
            for frame in client.take():
                command = command_of(frame)
                if kinds_of([command]) == ["Message"]:
                    id = (command.message_id.ledgerId, command.message_id.entryId)
                    assert id not in self.done
                    self.held[number].append(id)

    def check(self) -> None:
        """No message is at two consumers, and open consumers have all messages."""
        held = [id for ids in self.held.values() for id in ids]
        assert len(held) == len(set(held))
        for number in list(self.consumers):
            self.consumers[number].flow(1000)
        self.collect()
        held = [id for ids in self.held.values() for id in ids]
        assert not self.consumers or sorted(held) == self.left

    @property
    def left(self) -> list[Id]:
        return [id for id in self.sent if id not in self.done]

    def rest(self) -> list[Id]:
        """Return the messages that a consumer gets after all others have left."""
        for number in list(self.consumers):
            self.leave(number)
        last = self.client()
        last.subscribe(permits=0)
        last.flow(1000)
        found = [command_of(frame).message_id for frame in last.take()]
        return [(id.ledgerId, id.entryId) for id in found]


@given(st.integers(0, 3), STEPS)
@examples(200)
def test_unacknowledged_messages_survive(type: int, steps: list[tuple[str, int]]) -> None:
    world = World(type)
    world.come(0)
    for step, number in steps:
        getattr(world, "return_" if step == "return" else step)(number)
        world.collect()
    if type in {1, 3}:
        world.check()
    assert world.rest() == world.left
