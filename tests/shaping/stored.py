"""The messages of a load that a broker has stored, read from it directly."""

from collections import defaultdict
from dataclasses import dataclass, field

import pulsar  # type: ignore[import-untyped, unused-ignore]

from tests.real.clients import EARLIEST, Client, Consumer, close_client, open_client

SUBSCRIPTION = "stored"
PATIENCE_MS = 5000
"""A message that takes longer counts as missing."""
SILENCE_MS = 500
"""How long to listen for more messages than expected."""
QUEUE = 10_000


@dataclass
class Stored:
    """The numbers of each sender's messages: `tag` and stream, as loads write them."""

    numbers: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    count: int = 0
    doubled: int = 0
    disordered: int = 0
    _last: dict[str, int] = field(default_factory=dict)

    def note(self, content: bytes) -> None:
        """Record a message after those before it."""
        text, sender = content.decode().split()
        number, known = int(text), self.numbers[sender]
        self.count += 1
        if number in known:
            self.doubled += 1
        elif number < self._last.get(sender, -1):
            self.disordered += 1
        known.add(number)
        self._last[sender] = max(number, self._last.get(sender, -1))


def keep(url: str, topic: str) -> None:
    """Make the broker keep all later messages of a topic."""
    client = open_client(url)
    _subscribe(client, topic).close()
    close_client(client)


def read(url: str, topic: str, expected: int) -> Stored:
    """Return all stored messages, of which at least `expected` should exist."""
    client = open_client(url)
    consumer, found = _subscribe(client, topic), Stored()
    try:
        while True:
            patience = PATIENCE_MS if found.count < expected else SILENCE_MS
            found.note(consumer.receive(patience).data())
    except pulsar.Timeout:
        return found
    finally:
        close_client(client)


def _subscribe(client: Client, topic: str) -> Consumer:
    return client.subscribe(
        topic, SUBSCRIPTION, initial_position=EARLIEST, receiver_queue_size=QUEUE
    )
