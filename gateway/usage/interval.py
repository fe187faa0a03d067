"""The sums of one interval: what each key has used, until a record of it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.telemetry.figures import OTHER, others_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.usage.confirming import Counts
    from gateway.wire.account import Waited
    from gateway.wire.subject import TopicName

MOST_KEYS = 100_000
"""Keys of one interval. Clients choose most parts of a key, and each takes some 700 bytes until its
record is written. The use of further keys is counted under `__other__`."""


ENDED_AT_ONCE = 1000
"""Keys whose second is ended before other tasks run."""


class Key(NamedTuple):
    """The fields by which sums are kept: client, topic and operation, as records have them. A field
    is None if it is unknown or does not apply."""

    operation: str
    protocol: str | None
    listener: str | None
    cluster: str | None
    topic: TopicName | None = None
    subscription: str | None = None
    principal: str | None = None
    method: str | None = None
    network: str | None = None
    library: str | None = None
    client_id: str | None = None

    def folded(self) -> Key:
        """Return the key that replaces this key if there are too many keys: one for all such keys
        of the tenant."""
        topic = None if self.topic is None else others_of(self.topic.tenant)
        return Key(*self[:4], topic, principal=OTHER)


class Sums:
    """The use of one key in an interval. `frames`, `messages`, `bytes`: what is billed. `sent_…`:
    what passed to the broker or to consumers. `peak_…`: the most that passed in one second. `held`:
    the most bytes that waited at a time. `open`: how many producers, consumers or connections were
    open at some time. `milliseconds`: how long connections were open, summed up over all
    connections."""

    __slots__ = (
        "_second_bytes",
        "_second_held",
        "_second_messages",
        "bytes",
        "errors",
        "frames",
        "held",
        "messages",
        "milliseconds",
        "open",
        "peak_bytes",
        "peak_messages",
        "refused",
        "sent_bytes",
        "sent_messages",
        "waits",
    )

    def __init__(self) -> None:
        self.frames = self.messages = self.bytes = self.sent_messages = self.sent_bytes = 0
        self.refused = self.errors = self.held = self.open = self.milliseconds = 0
        self.peak_messages = self.peak_bytes = 0
        self._second_messages = self._second_bytes = self._second_held = 0
        self.waits: dict[str, tuple[int, float]] = {}

    def bill(self, more: Counts) -> None:
        """Add messages and bytes that are billed."""
        self.frames += more.frames
        self.messages += more.messages
        self.bytes += more.bytes

    def send(self, more: Counts) -> None:
        """Add counts of what passed in this second."""
        self.sent_messages += more.messages
        self.sent_bytes += more.bytes
        self._second_messages += more.messages
        self._second_bytes += more.bytes

    def hold(self, size: int) -> None:
        """Add bytes that wait for allowance in this second."""
        self._second_held += size

    def wait(self, rule: str, more: Waited) -> None:
        """Add waits for the allowance of a rule."""
        times, seconds = self.waits.get(rule, (0, 0.0))
        self.waits[rule] = times + more.times, seconds + more.seconds

    def end_second(self) -> None:
        """End a second: update the peaks, and begin the next second."""
        self.peak_messages = max(self.peak_messages, self._second_messages)
        self.peak_bytes = max(self.peak_bytes, self._second_bytes)
        self.held = max(self.held, self._second_held)
        self._second_messages = self._second_bytes = self._second_held = 0


class Interval:
    """The sums of all keys in one interval. `most`: how many keys have sums of their own."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._sums: dict[Key, Sums] = {}
        self._touched: dict[int, Sums] = {}  # in this second, by identity

    def __len__(self) -> int:
        return len(self._sums)

    def of(self, key: Key) -> Sums:
        """Return the sums of a key, to which the caller adds."""
        sums = self._sums.get(key)
        if sums is None:
            if len(self._sums) >= self._most:
                key = key.folded()
                sums = self._sums.get(key)
            if sums is None:
                sums = self._sums[key] = Sums()
        self._touched[id(sums)] = sums
        return sums

    def end_second(self) -> Iterator[None]:
        """End a second for all keys: update their peaks. The iterator yields between parts that
        take less than a millisecond each."""
        touched, self._touched = self._touched, {}
        for number, sums in enumerate(touched.values(), 1):
            sums.end_second()
            if number % ENDED_AT_ONCE == 0:
                yield

    def drain(self) -> Iterator[tuple[Key, Sums]]:
        """Yield each key with its sums, and remove it. They are removed one by one, because freeing
        10,000 at once would take 8 ms. Call this after the last second of the interval has ended.
        """
        while self._sums:
            yield self._sums.popitem()
