"""The account of a producer or consumer: what has passed, and how much more may pass."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from gateway.wire.counters import ENDLESS, Counters
from gateway.wire.subject import NOBODY, Subject


class Action(StrEnum):
    """The actions of clients that the gateway admits or denies, and that rules can limit."""

    PRODUCE = "produce"
    CONSUME = "consume"
    LOOKUP = "lookup"
    CONNECT = "connect"


class Right(StrEnum):
    """The rights that rules grant on a topic. `LOOKUP`: find the topic, and learn that it exists.
    `ADMINISTER`: requests that only brokers and administrators send."""

    LOOKUP = "lookup"
    PRODUCE = "produce"
    CONSUME = "consume"
    ADMINISTER = "administer"


class Patience(NamedTuple):
    """How many messages and bytes of one account may wait in the gateway. Frames beyond these
    bounds are refused."""

    messages: float
    bytes: float


class Waited(NamedTuple):
    """How often an account waited under one rule, and for how many seconds in total."""

    times: int
    seconds: float

    def minus(self, earlier: Waited) -> Waited:
        """Return the waits that were added since `earlier`, an earlier value for the same account
        and rule."""
        return Waited(self.times - earlier.times, self.seconds - earlier.seconds)


class Waits:
    """The finished waits of one account, or of several accounts, by the id of the rule that made
    them wait."""

    __slots__ = ("_began", "_rule", "by_rule")

    def __init__(self) -> None:
        self.by_rule: dict[str, Waited] = {}
        self._rule: str | None = None
        self._began = 0.0

    def begin(self, rule: str, now: float) -> None:
        """Begin to measure a wait that a rule causes. `now`: seconds of the monotonic clock."""
        self._rule, self._began = rule, now

    def end(self, now: float) -> None:
        """End the current wait and count it. If no wait is in progress, do nothing. `now`: seconds
        of the monotonic clock."""
        if self._rule is not None:
            self._add(self._rule, Waited(1, max(0.0, now - self._began)))
            self._rule = None

    def add(self, other: Waits) -> None:
        """Add the finished waits of another account to these."""
        for rule, waited in other.by_rule.items():
            self._add(rule, waited)

    def _add(self, rule: str, more: Waited) -> None:
        before = self.by_rule.get(rule, NEVER)
        self.by_rule[rule] = Waited(before.times + more.times, before.seconds + more.seconds)


NEVER = Waited(0, 0.0)


class Burst(NamedTuple):
    """How many messages and bytes may pass at once under a limit; `ENDLESS` without a limit."""

    messages: int
    bytes: int


class Account(Counters):
    """The counters and the allowance of one open producer or consumer of a `subject`.

    Counters only grow. The *allowance* is the difference between a ceiling and its counter. A frame
    may pass while both allowances are above zero, so a limit is exact to one frame; a frame larger
    than the allowance passes and leaves debt. A lease raises the ceilings, and `hold` sets them to
    the counters. An account without limits has ceilings that it never reaches.

    `asked`: messages that a consumer has requested in advance.
    `id`: id of the producer or consumer in its session, which sets it. `messages` counts each
    message of a batch, `surplus` the messages beyond the first of each frame. `queued`: bytes that
    wait for allowance. `needs`: bytes of the frame that waits unread for allowance,
    which the account's next lease covers; 0: none waits, or its size is not known.
    `damaged`: frames with a wrong checksum, if checksums are verified.
    `ends`: end offsets of the topic's partitions, see `Services.ends`; None where they have none.
    `errors`: frames to which the broker responded with an error; `receipts` counts them too.
    `redelivered`: frames that the broker marked as delivered before. `generation`: generation of
    the rules that admitted the account. `patience`: bounds of the frames that wait; None if no
    frame is refused. `refused`: number of refused frames. `waits`: None before the first wait.

    The scanner writes counts, policy writes ceilings and waits, the plane writes `queued`, and
    telemetry reads all.
    """

    __slots__ = (
        "action",
        "asked",
        "damaged",
        "ends",
        "errors",
        "generation",
        "id",
        "needs",
        "patience",
        "queued",
        "refused",
        "subject",
        "waits",
    )

    def __init__(self, action: Action, subject: Subject = NOBODY, generation: int = 0) -> None:
        self.subject = subject
        self.action = action
        self.generation = generation
        super().__init__()
        self.id = self.queued = self.needs = self.damaged = self.asked = self.errors = (
            self.refused
        ) = 0
        self.patience: Patience | None = None
        self.waits: Waits | None = None
        self.ends: dict[int, int] | None = None

    @property
    def topic(self) -> str:
        """Return the name under which metrics count the topic; empty if the account has no
        topic."""
        topic = self.subject.topic
        return "" if topic is None else topic.name

    @property
    def frames(self) -> int:
        """Return how many frames were forwarded: all messages (`messages`) less those beyond the
        first of each frame (`surplus`). So scanners need not count frames as well."""
        return self.messages - self.surplus

    @property
    def is_endless(self) -> bool:
        """Return whether no limit applies to this account."""
        return self.messages_ceiling == self.bytes_ceiling == ENDLESS

    @property
    def is_waiting(self) -> bool:
        """Return whether frames of this account are queued because its allowance is used up."""
        return self.held and self.queued > 0

    @property
    def is_short(self) -> bool:
        """Return whether the account's next frame has to wait for allowance."""
        return self.lacks(self.needs)

    @property
    def outstanding(self) -> int:
        """Return the number of in-flight frames: frames that were forwarded to the broker and have
        no receipt yet."""
        return self.frames - self.receipts

    @property
    def wanted(self) -> int:
        """Return how many messages a consumer has requested from the broker and not received
        yet."""
        return max(0, self.asked - self.messages)

    def count(self, messages: int) -> None:
        """Count one forwarded frame, and the `messages` in it."""
        self.messages += messages
        self.surplus += messages - 1

    def begin_wait(self, rule: str, now: float) -> None:
        """Begin to measure a wait of this account's frames that a rule causes. `now`: seconds of
        the monotonic clock."""
        if self.waits is None:
            self.waits = Waits()
        self.waits.begin(rule, now)

    def end_wait(self, now: float) -> None:
        """End the current wait and count it. If no wait is in progress, do nothing. `now`: seconds
        of the monotonic clock."""
        if self.waits is not None:
            self.waits.end(now)

    def hold(self) -> None:
        """Take away the account's unused allowance: a ceiling above its counter is lowered to the
        counter. Debt is kept."""
        self.messages_ceiling = min(self.messages_ceiling, self.messages)
        self.bytes_ceiling = min(self.bytes_ceiling, self.bytes)

    def grant(self, messages: int = ENDLESS, size: int = ENDLESS) -> None:
        """Add `messages` and `size` bytes to the account's allowance. If the account is in debt,
        the grant reduces the debt first."""
        self.messages_ceiling = _raised(self.messages_ceiling, messages)
        self.bytes_ceiling = _raised(self.bytes_ceiling, size)


def _raised(ceiling: int, by: int) -> int:
    return min(ENDLESS, ceiling + by)
